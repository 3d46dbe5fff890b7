"""The folders of the compiled kernel know only the layers below their own."""

from __future__ import annotations

import check_c_layers
import pytest

SOURCES = check_c_layers.read_sources(check_c_layers.NATIVE)


def test_every_arrow_goes_down() -> None:
    assert len(SOURCES) > 80
    assert list(check_c_layers.violations(SOURCES)) == []


@pytest.mark.parametrize(
    ("path", "planted", "found"),
    [
        (
            "runtime/threads.c",
            '#include "python/call.h"',
            "runtime/threads.c: includes python/call.h, upwards",
        ),
        (
            "simd/rows.h",
            '  #  include "winograd/winograd.h"',
            "simd/rows.h: includes winograd/winograd.h, upwards",
        ),
        (
            "products/attention.c",
            '#include "pooling/pooling.h"',
            "products/attention.c: includes pooling/pooling.h, sideways",
        ),
        (
            "winograd/cost.c",
            '#include "direct/cost.h"',
            "winograd/cost.c: includes direct/cost.h, sideways",
        ),
        (
            "convolution/search.c",
            '#include "module.c"',
            "convolution/search.c: includes module.c, upwards",
        ),
        (
            "pooling/pooling.c",
            '#include "direct/plans.h"',
            "pooling/pooling.c: includes direct/plans.h, which does not exist",
        ),
        (
            "runtime/threads.c",
            "int run_is_interrupted(void);",
            "runtime/threads.c: declares run_is_interrupted, which a header must declare",
        ),
        (
            "runtime/cpu.c",
            "extern PyType_Spec kernel_spec;",
            "runtime/cpu.c: declares kernel_spec, which a header must declare",
        ),
        (
            "runtime/threads.h",
            "int run_is_interrupted(void);",
            "runtime/threads.h: declares run_is_interrupted, which python/call.c defines",
        ),
        (
            "convolution/convolution.h",
            "void *execute(const struct kernel *k,\n              job_function function);",
            "convolution/convolution.h: declares execute, which direct/execute.c defines",
        ),
        (
            "simd/prefetch.h",
            "extern PyType_Spec block_spec, packer_spec;",
            "simd/prefetch.h: declares packer_spec, which layer/packer.c defines",
        ),
        (
            "extra/new.c",
            "int a;",
            "extra/new.c: extra is in no layer (add it to LAYERS of tools/check_c_layers.py)",
        ),
    ],
)
def test_a_planted_arrow_is_found(path: str, planted: str, found: str) -> None:
    text = SOURCES.get(path, "")
    lines = list(check_c_layers.violations(SOURCES | {path: f"{text}\n{planted}\n"}))
    assert found in lines


def test_a_planted_circle_of_headers_is_found() -> None:
    path = "direct/plan.h"
    planted = SOURCES[path] + '#include "direct/direct.h"\n'
    (line,) = check_c_layers.violations(SOURCES | {path: planted})
    assert line.startswith("circle: ")
    assert {"direct/plan.h", "direct/direct.h"} <= set(line.split())


def test_a_planted_circle_of_sources_is_found() -> None:
    path = "direct/taken_taps.c"
    planted = SOURCES[path] + "double f(void) { return direct_cycles(0, 0, 0, 0); }\n"
    (line,) = check_c_layers.violations(SOURCES | {path: planted})
    assert line.startswith("circle: ")
    assert {"direct/taken_taps.c", "direct/cost.c"} <= set(line.split())


@pytest.mark.parametrize(
    "planted",
    [
        '/* #include "module.c" */',
        "/*\n int run_is_interrupted(void);\n */",
        'static const char *text = "int run_is_interrupted(void);";',
        "static int run_is_interrupted(void);",
    ],
)
def test_comments_strings_and_statics_are_no_arrows(planted: str) -> None:
    path = "runtime/cpu.c"
    assert list(check_c_layers.violations(SOURCES | {path: f"{SOURCES[path]}\n{planted}\n"})) == []
