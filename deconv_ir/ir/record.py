"""Records: the base of operations and of the options of a command, which declare their fields.

`attribute` declares how a file states a field, `option` how a command line does; fields of bases
are inherited.  All 300 classes share one set of methods, which a dataclass would compile for each.
Other named values are a `typing.NamedTuple`, or a frozen dataclass.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final, NoReturn, Self, dataclass_transform

REQUIRED: Final[Any] = object()
"""The default of a required field."""


class Field:
    """A field of a record class; see `field`."""

    __slots__ = ("default", "field")

    def __init__(self, default: Any = REQUIRED) -> None:
        self.default = default

    def __set_name__(self, owner: type[Record], name: str) -> None:
        self.field = name


def field(*, default: Any = REQUIRED) -> Any:
    """Declare a field."""
    return Field(default)


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
class Record:
    """The base of all records.

    A subclass declares its fields as ``name: type = field()``; those of its
    bases come first.  Values are given by keyword and stored unchanged.
    """

    fields: ClassVar[dict[str, Field]] = {}
    """The fields by name, in their order."""

    def __init_subclass__(cls) -> None:
        declared = {n: v for n, v in vars(cls).items() if isinstance(v, Field)}
        if not declared:
            return
        cls.fields = {**cls.fields, **declared}
        for name, found in declared.items():
            if found.default is REQUIRED:
                delattr(cls, name)
            else:
                setattr(cls, name, found.default)

    def __init__(self, **values: Any) -> None:
        state = self.__dict__
        for name, declared in self.fields.items():
            value = values.pop(name, declared.default)
            if value is REQUIRED:
                raise TypeError(f"{type(self).__name__} needs a value for {name!r}")
            state[name] = value
        if values:
            raise TypeError(f"{type(self).__name__} has no field {next(iter(values))!r}")

    def _values(self) -> dict[str, Any]:
        state = self.__dict__  # may also hold cached properties
        return {name: state[name] for name in self.fields}

    def replace(self, **changes: Any) -> Self:
        """Return a record with other values in some fields."""
        return type(self)(**(self._values() | changes))

    def __copy__(self) -> Self:
        return self  # immutable

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        # Only the fields: hashes and cached properties are not valid in another process.
        return _restore, (type(self), self._values())

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is frozen: cannot set {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is frozen: cannot delete {name!r}")

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self is other or self._values() == other._values()

    def __hash__(self) -> int:
        # Computed once: operations are keys of caches that every run looks up.
        state = self.__dict__
        if "_hash" not in state:
            state["_hash"] = hash((type(self), *self._values().values()))
        found: int = state["_hash"]
        return found

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self._values().items())
        return f"{type(self).__name__}({shown})"


def _restore(cls: type[Record], values: dict[str, Any]) -> Record:
    return cls(**values)
