"""`typing.NamedTuple` for modules that each command imports: a class takes a quarter of the time.

typing compiles a constructor and each annotation that is a string for each class.  Here one
constructor is compiled for each number of fields, and the classes share their other methods.
"""

from __future__ import annotations

import sys
from collections import namedtuple
from collections.abc import Iterable, Mapping, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any, ClassVar, Self


def _getters(names: Sequence[str]) -> dict[str, Any]:
    """Return properties by name: of the first element of a tuple, of the second, and so on."""
    own = vars(namedtuple("own", names))
    return {name: own[name] for name in names}


_SHARED = tuple(_getters([f"field{i}" for i in range(24)]).values())
"""The properties of most classes."""

_GLOBALS: dict[str, Any] = {"_new": tuple.__new__, "__builtins__": {}, "__name__": __name__}
_CONSTRUCTORS: dict[int, FunctionType] = {}


def _constructor(names: tuple[str, ...], defaults: tuple[Any, ...]) -> FunctionType:
    """Return ``__new__`` of a class with these fields, whose last ones have defaults."""
    count = len(names)
    template = _CONSTRUCTORS.get(count)
    if template is None:
        values = "".join(f"_{i}, " for i in range(count))
        template = eval(f"lambda _cls, {values}: _new(_cls, ({values}))", dict(_GLOBALS))
        _CONSTRUCTORS[count] = template
    code = template.__code__.replace(co_varnames=("_cls", *names), co_name="__new__")
    return FunctionType(code, _GLOBALS, "__new__", defaults)


class _Named(tuple[Any, ...]):
    """The methods of all classes."""

    __slots__ = ()
    if TYPE_CHECKING:
        _fields: ClassVar[tuple[str, ...]]

    @classmethod
    def _make(cls, values: Iterable[Any]) -> Self:
        """Return a tuple with these values."""
        return cls(*values)

    def _replace(self, /, **changes: Any) -> Self:
        """Return a tuple with other values in some fields."""
        found = tuple.__new__(type(self), map(changes.pop, self._fields, self))
        if changes:
            raise ValueError(f"Got unexpected field names: {list(changes)!r}")
        return found

    __replace__ = _replace

    def _asdict(self) -> dict[str, Any]:
        """Return the values by name."""
        return dict(zip(self._fields, self, strict=True))

    def __getnewargs__(self) -> tuple[Any, ...]:
        return tuple(self)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self._asdict().items())
        return f"{type(self).__name__}({shown})"


class _Meta(type):
    """Makes the classes, whose own type is `type`."""

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> Any:
        """Make a class from the annotations and defaults of its body."""
        annotations: Mapping[str, Any] = namespace.get("__annotations__", {})
        names = tuple(annotations)
        defaults = {n: namespace[n] for n in names if n in namespace}
        if tuple(defaults) != names[len(names) - len(defaults) :]:
            raise TypeError(f"{name}: a field without default follows one with a default")
        if len(names) > len(_SHARED):
            namespace |= _getters(names)
        else:
            namespace |= zip(names, _SHARED, strict=False)
        namespace.setdefault("__doc__", f"{name}({', '.join(names)})")
        new = _constructor(names, tuple(defaults.values()))
        new.__annotations__ = dict(annotations)
        new.__module__, new.__qualname__ = namespace["__module__"], f"{name}.__new__"
        namespace |= {
            "__new__": new,
            "__slots__": (),
            "__match_args__": names,
            "_fields": names,
            "_field_defaults": defaults,
        }
        return type.__new__(type, name, (_Named,), namespace)


class _Base:
    """Stands for the base in ``class Name(NamedTuple)``."""

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        return (_MARK,)


_MARK = type.__new__(_Meta, "NamedTuple", (), {})

if TYPE_CHECKING or sys.version_info >= (3, 14):
    # Annotations of classes are functions since Python 3.14.
    from typing import NamedTuple
else:
    NamedTuple = _Base()

__all__ = ["NamedTuple"]
