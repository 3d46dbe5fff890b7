"""The compiled kernel; everything else about the package is in pyproject.toml.

It is optional: where no C compiler is, or one that cannot build it, the
package installs without, and computes with NumPy.  It uses the stable ABI, so
that one wheel serves every Python version of a platform.

DECONV_IR_KERNEL=none leaves it out, for a pipeline that only lints; so does
pre-commit, which sets PRE_COMMIT.
"""

import hashlib
import os
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CCompilerError, ExecError, PlatformError

NATIVE = Path("deconv_ir/kernels/_native")
# So that Python refuses a build from other sources: tools/regen_kernel_interface.py has it, too.
# An int of C holds it.
INTERFACE = hashlib.sha256((NATIVE / "interface.h").read_bytes()).hexdigest()[:7]
# With sanitizers, -O3 takes minutes to compile.
LEVEL = "-O1" if "-fsanitize" in os.environ.get("CFLAGS", "") else "-O3"
# An undeclared function would be taken to return an int, half a pointer.
ERRORS = "-Werror=implicit-function-declaration"
# No code reads the flags of floating-point exceptions: selections need not be branches.
NUMBERS = "-fno-trapping-math"
# Free-threaded builds have no stable ABI.
WANTED = os.environ.get("DECONV_IR_KERNEL") != "none" and not os.environ.get("PRE_COMMIT")
STABLE_ABI = not sysconfig.get_config_var("Py_GIL_DISABLED")


class BuildKernel(build_ext):
    """Builds the kernel, or says in one line that the package goes without."""

    def build_extensions(self) -> None:
        """Compile several files at once: setuptools would compile one after another."""
        compile_in_turn = self.compiler.compile

        def compile_together(sources: list[str], *args: Any, **options: Any) -> list[str]:
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                objects = pool.map(lambda one: compile_in_turn([one], *args, **options), sources)
                return [file for files in objects for file in files]

        self.compiler.compile = compile_together
        super().build_extensions()

    def build_extension(self, ext: Extension) -> None:
        """Build it, if it can be built here."""
        try:
            super().build_extension(ext)
        except (CCompilerError, ExecError, PlatformError):
            print(
                "deconv-ir: no C compiler here could build the kernel: layers will be computed "
                "with NumPy, which is slower",
                file=sys.stderr,
            )


setup(
    cmdclass={"build_ext": BuildKernel},
    ext_modules=[]
    if not WANTED
    else [
        Extension(
            "deconv_ir.kernels._compiled",
            sources=sorted(str(path) for path in NATIVE.rglob("*.c")),
            depends=sorted(str(path) for path in NATIVE.rglob("*.h")),
            include_dirs=[str(NATIVE)],
            define_macros=[("INTERFACE", f"0x{INTERFACE}")],
            extra_compile_args=[LEVEL, ERRORS, NUMBERS, "-std=gnu11", "-fvisibility=hidden"],
            libraries=["m"],
            extra_link_args=["-pthread"],
            py_limited_api=STABLE_ABI,
            optional=True,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if STABLE_ABI else {},
)
