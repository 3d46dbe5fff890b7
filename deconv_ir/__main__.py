"""``python -m deconv_ir``: the commands as one."""

import importlib

# The folder of the package is `cli`; type checkers see it by that name.
importlib.import_module("deconv_cli.start").group()
