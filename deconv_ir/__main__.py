"""``python -m deconv_ir``: all commands in one."""

import importlib

# The package is in the folder `cli`; type checkers know it by that name.
importlib.import_module("deconv_cli.start").group()
