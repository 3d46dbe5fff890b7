"""IR files: reading, writing, weights.  The only package that imports lxml."""

from deconv_ir.formats.openvino_xml.entry import read, read_bytes
from deconv_ir.formats.openvino_xml.weights import Weights, WeightsInMemory

__all__ = ["Weights", "WeightsInMemory", "read", "read_bytes"]
