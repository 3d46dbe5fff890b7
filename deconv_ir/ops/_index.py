"""Which file holds which operation type; written by `make regen`."""

MODULES: dict[str, str] = {
    "Add": "elementwise",
    "Const": "constant",
    "ConvTranspose": "conv_transpose",
    "Convert": "convert",
    "ConvolutionBackpropData": "convolution_backprop_data",
    "ConvolutionBackwardData": "convolution_backward_data",
    "GroupConvolutionBackpropData": "group_convolution_backprop_data",
    "Multiply": "elementwise",
    "Parameter": "parameter",
    "ReLU": "elementwise",
    "Reshape": "reshape",
    "Result": "parameter",
    "ShapeOf": "shape_of",
    "Subtract": "elementwise",
}
