"""Hints: what a user can do about a problem, worded for the library and for the commands."""

from __future__ import annotations

import enum
from typing import Any


class Hint(enum.Enum):
    """One thing that a user can do about a problem.

    A member has its wording for users of the library and, if they differ, that for users of the
    commands; ``{}`` stands for values of the problem.  Behaviour depends on members, not on words.

    Examples
    --------
    >>> from deconv_ir import Hint
    >>> hint = Hint.OTHER_SEMANTICS("onednn")
    >>> print(hint)
    semantics='spec' or 'onednn' chooses
    >>> hint.command, hint.member is Hint.OTHER_SEMANTICS
    ('--semantics spec|onednn chooses', True)
    """

    # Words that may be misspelt
    DID_YOU_MEAN = "did you mean {!r}?"
    DID_YOU_MEAN_NUMBER = "did you mean {}?"
    DID_YOU_MEAN_TAG = "did you mean <{}>?"
    KNOWN_ARE = "known are {}"
    ATTRIBUTES_ARE = "it has {}"
    INPUTS_ARE = "their names are {}"
    LAYER_ID_IS = "a layer id names one of them: {}"
    LAYER_AROUND = "the network has the layer {!r}"
    NAMED_IN_BODY = "{!r} names the one in that body"
    COMPUTED_FROM = "it is computed from the constant {!r}"
    RULES_ARE_LISTED = "the documentation lists all rules", "--list-rules shows all rules"

    # Files
    OTHER_WEIGHTS = "weights names another file", "--weights FILE names another file"
    WEIGHTS_CAN_BE_NAMED = "another weights file can be named", "--weights FILE names another file"
    OTHER_MODEL = "the weights of another model?"
    OTHER_BIN = "the .bin does not belong to this .xml, or is cut short"
    LFS_FETCHES = "'git lfs pull' fetches the content"
    OVC_CONVERTS = "ovc {0} writes an IR; 'pip install openvino' installs ovc"
    TORCH_CONVERTS = "openvino.convert_model(module, example_input=x) converts the loaded module"
    TENSORFLOW_EXPORTS = "model.export(folder) in Keras writes what ovc converts"
    OLD_OPTIMIZER_CONVERTS = "mo of OpenVINO 2023, the last release for Caffe, writes an IR"
    WEIGHTS_ALONE = "it has weights but no graph: convert the model that they belong to"
    NUMPY_CONVERTS = "numpy.loadtxt and numpy.save convert it"
    DOWNLOAD_FAILED = "a download may have failed"
    IMAGE_BY_SUFFIX = "an input whose name ends in .png or .jpg is read as an image"
    COMPILED_FROM_IR = "the IR that was compiled is the model"
    GIVE_XML = "give {1}.xml"
    CONVERT_AGAIN = (
        "OpenVINO 2020.4 is the last release that reads it; convert the original model again"
    )
    ONEDNN_DUMPS = "files are those that ONEDNN_GRAPH_DUMP writes"
    ARRAY_IN_GROUP = "name an array in it, as in volume.zarr/0"
    REMOVE_MANIFEST = "remove it, and names of files are names of tensors"
    BASELINE_IS_WRITTEN = "a baseline is written first", "--update-baseline writes one"
    INSTALL_EXTRA = "pip install '.[{}]' in a checkout of deconv-ir"

    # Networks
    OTHER_SEMANTICS = "semantics='spec' or '{0}' chooses", "--semantics spec|{0} chooses"
    WRITE_MINUS_ONE = "write -1"
    CORRECTION = "{} would make {} right"
    COMPUTE_FROM_SHAPE = "compute it from the ShapeOf of the data, or leave it out"
    DIRECT_AGREES = (
        "accuracy='direct' agrees: the differences are those of Winograd",
        "--accuracy direct agrees: the differences are those of Winograd",
    )
    DIRECT_IS_NEARER = (
        "accuracy='direct' leaves {} of the {} elements: the others differ because of Winograd",
        "--accuracy direct leaves {} of the {} elements: the others differ because of Winograd",
    )
    OTHER_OUTPUTS = (
        "run(outputs=...) runs what does not need them",
        "--until or --output-layer runs what does not need them",
    )
    OTHER_END = "end names others", "--to TENSOR names others"
    CONSTANT_FIXES = "the constant {} fixes the shape"
    CONSTANTS_FIX = "the constants {} fix the shape"
    SHAPES_ON_THE_WAY = "from input {}"
    OVERRIDE_SHAPES = (
        "overrides=Overrides(in_shapes=...) reads it with other shapes",
        "--in-shapes ID:SHAPE reads it with other shapes",
    )
    SAVE_AS_IR = "save writes it as an IR"
    USE_TYPE = "use {}"

    # Arrays
    CAST = "cast=True converts it", "--cast converts it"
    CAST_WRAPS = 'cast="wrap" converts it all the same', "--cast=wrap converts it all the same"
    ASTYPE = "array.astype converts it"
    TILES_ARE_NOT_CONVERTED = "tiles are not converted"
    GIVE_MAPPING = "a mapping by name, or a list in order, gives them"
    CHANNELS_LAST = (
        "the channels look last: np.moveaxis(x, -1, 1) puts them first",
        "the channels look last: --layout takes them so, as in --layout nhwc",
    )
    CHANNELS_FIRST = (
        "the channels look first: np.moveaxis(x, 1, -1) puts them last",
        "the channels look first: --layout takes them so, as in --layout 'nhwc->nchw'",
    )
    RESHAPE_TO = (
        "Model.reshape({{{0!r}: {2}}}) gives the model this shape",
        "--shape {0}={1} gives the model this shape",
    )
    BATCH_MISSING = "the axis of the batch looks missing: x[None] adds it"
    ONE_IMAGE_LAST = "this looks like one image, channels last: np.moveaxis(x, -1, 0)[None] fits"
    ONE_IMAGE_FIRST = "this looks like one image, channels first: np.moveaxis(x, 0, -1)[None] fits"
    CONVERT_CHANNEL = "convert it to {} channel"
    CONVERT_CHANNELS = "convert it to {} channels"
    CONVERT_MODE = "convert it to 8-bit greyscale or RGB"
    RESIZE = "resize it, or reshape the model to {}"
    BATCH_OF_ONE = "an image is a batch of 1"
    LAYOUT_STATES_NETWORK = "the layout {0}->{0} states that the network has its channels last"
    ONE_NUMBER = "one number as mean or scale needs no channels"
    TWO_LAYOUTS = "a layout such as chw->hwc states those of the network and of the arrays"

    # Memory and time
    MEMORY_LIMIT = (
        "memory_limit sets another limit",
        "--memory-limit SIZE sets another limit, --tile auto computes from file to file within it",
    )
    SMALLER_TILES = "memory_limit makes tiles smaller", "--memory-limit makes tiles smaller"
    FEWER_JOBS = "jobs=1 takes less", "--jobs 1 takes less"
    RUN_ANYWAY = (
        "modest=False runs it anyway",
        "--shape, which states the shapes of inputs, runs it anyway",
    )
    TWO_PASSES = "statistics of the whole in a first pass allow it", "--two-pass allows it"
    NAME_ONE = "name one of them"
    SVG_HAS_NO_LIMIT = "SVG has no such limit"

    # Examples of documents
    FIX_EXAMPLE_DIM = "deconv-spec fix writes the computed dim"
    FIX_EXAMPLE_DIMS = "deconv-spec fix writes the computed dims"
    FIX_DOUBTFUL_DIM = (
        "if attributes, inputs and comments are right, fix_document(unsafe=True) writes the "
        "computed dim",
        "if attributes, inputs and comments are right, deconv-spec fix --unsafe-fixes writes the "
        "computed dim",
    )
    WITHOUT_DIAGRAM = "diagram = false makes the example without one"
    WITHOUT_ARRAYS = "arrays = false makes the example without them"
    EXACT_ARRAYS = "fewer channels or a smaller filter keep golden arrays exact"

    BOTH = "{}; {}"
    """Two hints."""
    AS_GIVEN = "{}"
    """The text of a plugin."""

    def __init__(self, library: str, command: str | None = None) -> None:
        self.library = library
        self.command = library if command is None else command

    def __call__(self, *values: object) -> Advice:
        """Return the hint for a problem with these values."""
        return Advice(self, values)


class Advice(str):
    """A hint for a certain problem, as text in the wording of the library.

    Attributes
    ----------
    member : Hint
    values : tuple
        The values of the problem that the text names.

    Examples
    --------
    >>> import deconv_ir
    >>> try:
    ...     deconv_ir.load("samples/block/block.xml", weights=b"").run()
    ... except deconv_ir.DeconvError as error:
    ...     isinstance(error.hint, deconv_ir.Advice), error.hint.member
    (True, <Hint.OTHER_BIN: 'the .bin does not belong to this .xml, or is cut short'>)
    """

    __slots__ = ("member", "values")
    member: Hint
    values: tuple[Any, ...]

    def __new__(cls, member: Hint, values: tuple[Any, ...] = ()) -> Advice:
        """Word a hint."""
        found = super().__new__(cls, member.library.format(*values))
        found.member, found.values = member, values
        return found

    @property
    def command(self) -> str:
        """The text in the wording of the commands."""
        values = (v.command if isinstance(v, Advice) else v for v in self.values)
        return self.member.command.format(*values)

    def __reduce__(self) -> tuple[Any, ...]:
        return Advice, (self.member, self.values)


def both(first: Advice | None, second: Advice | None) -> Advice | None:
    """Return a hint for two, each of which may be absent."""
    return Hint.BOTH(first, second) if first and second else first or second
