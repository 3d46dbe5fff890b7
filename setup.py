"""The compiled kernel; everything else about the package is in pyproject.toml.

It is optional: where no C compiler is, or one that cannot build it, the
package installs without, and computes with NumPy.  It uses the stable ABI, so
that one wheel serves every Python version of a platform.
"""

import os
import sysconfig
from pathlib import Path

from setuptools import Extension, setup

NATIVE = Path("deconv_ir/kernels/_native")
# With sanitizers, -O3 takes minutes to compile.
LEVEL = "-O1" if "-fsanitize" in os.environ.get("CFLAGS", "") else "-O3"
# Free-threaded builds have no stable ABI.
STABLE_ABI = not sysconfig.get_config_var("Py_GIL_DISABLED")

setup(
    ext_modules=[
        Extension(
            "deconv_ir.kernels._compiled",
            sources=sorted(str(path) for path in NATIVE.rglob("*.c")),
            depends=sorted(str(path) for path in NATIVE.rglob("*.h")),
            include_dirs=[str(NATIVE)],
            extra_compile_args=[LEVEL, "-std=gnu11", "-fvisibility=hidden"],
            libraries=["m"],
            extra_link_args=["-pthread"],
            py_limited_api=STABLE_ABI,
            optional=True,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if STABLE_ABI else {},
)
