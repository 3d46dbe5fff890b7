"""What Python and C have to agree on.

Generated from _native/interface.h by tools/regen_kernel_interface.py; do not edit.
"""

# ruff: noqa: D103

from __future__ import annotations

from struct import Struct

INTERFACE = 0x160F190
"""The hash of the header."""

AXES = 3

F32, F64, F16, BF16, I8, I16, I32, I64, U8X4, I16X2, BF16X2, ELEMENTS = range(12)

PW_F32, PW_F16, PW_BF16, PW_BOOLEAN, PW_ELEMENTS = range(5)

ISA_BASELINE, ISA_AVX2, ISA_AVX512, ISAS = range(4)

ACT_NONE, ACT_RELU, ACT_LEAKY, ACT_CLAMP, ACT_FUNCTION, ACTIVATIONS = range(6)

WINOGRAD_NEVER, WINOGRAD_BY_COST, WINOGRAD_ALWAYS = range(3)

WINOGRAD_REFUSED, WINOGRAD_ALLOWED, WINOGRAD_JUDGED = range(3)

AS_PLANNED, PLAN_AGAIN, PACK_AGAIN = range(3)

(
    COMPRESSED_4,
    COMPRESSED_U8,
    COMPRESSED_I8,
    COMPRESSED_TABLE,
    COMPRESSED_F16,
    COMPRESSED_BF16,
    COMPRESSED_FORMS,
) = range(7)

POOLED_MAX, POOLED_SUM, POOLINGS = range(3)

NEAREST, BILINEAR, BICUBIC, MODES = range(4)

ZEROS, BORDER, REFLECTION, BEYONDS = range(4)


_layer = Struct("=qqqqqqqqqqqqqqqqqqqqqqqqdddqddqqqd").pack


def layer_fields(
    *,
    forward: int,
    element: int,
    isa: int,
    groups: int,
    channels_in: int,
    channels_out: int,
    folded: int,
    longer: int,
    winograd: int,
    channel_block: int,
    form: int,
    halves: int,
    frees: int,
    unread: int,
    kernel: tuple[int, ...],
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
    activation: int,
    low: float,
    high: float,
    slope: float,
    function: int,
    scale: float,
    offset: float,
    level2_bytes: int,
    sure_level2_bytes: int,
    level3_bytes: int,
    multiply_adds: float,
) -> bytes:
    kernel_0, kernel_1, kernel_2 = kernel
    strides_0, strides_1, strides_2 = strides
    dilations_0, dilations_1, dilations_2 = dilations
    return _layer(
        forward,
        element,
        isa,
        groups,
        channels_in,
        channels_out,
        folded,
        longer,
        winograd,
        channel_block,
        form,
        halves,
        frees,
        unread,
        kernel_0,
        kernel_1,
        kernel_2,
        strides_0,
        strides_1,
        strides_2,
        dilations_0,
        dilations_1,
        dilations_2,
        activation,
        low,
        high,
        slope,
        function,
        scale,
        offset,
        level2_bytes,
        sure_level2_bytes,
        level3_bytes,
        multiply_adds,
    )


_run = Struct("=qqqqqqqqqqqqqqqqqqqqq").pack


def run_fields(
    *,
    pads_begin: tuple[int, ...],
    output: tuple[int, ...],
    threads: int,
    scratch_bytes: int,
    thread_bytes: int,
    winograd: int,
    extent: int,
    crop: int,
    data_of_whole: tuple[int, ...],
    pads_begin_of_whole: tuple[int, ...],
    output_of_whole: tuple[int, ...],
) -> bytes:
    pads_begin_0, pads_begin_1, pads_begin_2 = pads_begin
    output_0, output_1, output_2 = output
    data_of_whole_0, data_of_whole_1, data_of_whole_2 = data_of_whole
    pads_begin_of_whole_0, pads_begin_of_whole_1, pads_begin_of_whole_2 = pads_begin_of_whole
    output_of_whole_0, output_of_whole_1, output_of_whole_2 = output_of_whole
    return _run(
        pads_begin_0,
        pads_begin_1,
        pads_begin_2,
        output_0,
        output_1,
        output_2,
        threads,
        scratch_bytes,
        thread_bytes,
        winograd,
        extent,
        crop,
        data_of_whole_0,
        data_of_whole_1,
        data_of_whole_2,
        pads_begin_of_whole_0,
        pads_begin_of_whole_1,
        pads_begin_of_whole_2,
        output_of_whole_0,
        output_of_whole_1,
        output_of_whole_2,
    )


_predict = Struct("=qqqd").pack


def predict_fields(
    *, level2_bytes: int, sure_level2_bytes: int, level3_bytes: int, multiply_adds: float
) -> bytes:
    return _predict(level2_bytes, sure_level2_bytes, level3_bytes, multiply_adds)


_program = Struct("=qq").pack


def program_fields(*, isa: int, output: int) -> bytes:
    return _program(isa, output)


_input = Struct("=qq").pack


def input_fields(*, element: int, trailing: int) -> bytes:
    return _input(element, trailing)


_instruction = Struct("=qqqqqdd").pack


def instruction_fields(
    *,
    operation: int,
    out: int,
    operand: int,
    second: int,
    third: int,
    immediate: float,
    second_immediate: float,
) -> bytes:
    return _instruction(operation, out, operand, second, third, immediate, second_immediate)


_pool = Struct("=qqqqqqqqqqqqqqq").pack


def pool_fields(
    *,
    isa: int,
    pooled: int,
    kernel: tuple[int, ...],
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
    pads_begin: tuple[int, ...],
    threads: int,
) -> bytes:
    kernel_0, kernel_1, kernel_2 = kernel
    strides_0, strides_1, strides_2 = strides
    dilations_0, dilations_1, dilations_2 = dilations
    pads_begin_0, pads_begin_1, pads_begin_2 = pads_begin
    return _pool(
        isa,
        pooled,
        kernel_0,
        kernel_1,
        kernel_2,
        strides_0,
        strides_1,
        strides_2,
        dilations_0,
        dilations_1,
        dilations_2,
        pads_begin_0,
        pads_begin_1,
        pads_begin_2,
        threads,
    )


_average_windows = Struct("=qq").pack


def average_windows_fields(*, isa: int, threads: int) -> bytes:
    return _average_windows(isa, threads)


_resample = Struct("=qq").pack


def resample_fields(*, isa: int, threads: int) -> bytes:
    return _resample(isa, threads)


_sample = Struct("=qqqqq").pack


def sample_fields(*, isa: int, mode: int, beyond: int, align: int, threads: int) -> bytes:
    return _sample(isa, mode, beyond, align, threads)


_select = Struct("=qqqq").pack


def select_fields(*, isa: int, smallest: int, by_index: int, threads: int) -> bytes:
    return _select(isa, smallest, by_index, threads)


_standardize = Struct("=qqqdqqq").pack


def standardize_fields(
    *, isa: int, row: int, inner: int, eps: float, inside: int, divides: int, threads: int
) -> bytes:
    return _standardize(isa, row, inner, eps, inside, divides, threads)


_sum_rows = Struct("=qqq").pack


def sum_rows_fields(*, isa: int, mean: int, threads: int) -> bytes:
    return _sum_rows(isa, mean, threads)


_softmax = Struct("=qqq").pack


def softmax_fields(*, isa: int, logarithm: int, threads: int) -> bytes:
    return _softmax(isa, logarithm, threads)


_pack_columns = Struct("=qqqqq").pack


def pack_columns_fields(*, isa: int, terms: int, columns: int, row: int, column: int) -> bytes:
    return _pack_columns(isa, terms, columns, row, column)


_multiply = Struct("=qqqqdddqddq").pack


def multiply_fields(
    *,
    isa: int,
    is_packed: int,
    pairs: int,
    activation: int,
    low: float,
    high: float,
    slope: float,
    function: int,
    scale: float,
    offset: float,
    threads: int,
) -> bytes:
    return _multiply(
        isa, is_packed, pairs, activation, low, high, slope, function, scale, offset, threads
    )


_multiply_codes = Struct("=qqqqdddqddq").pack


def multiply_codes_fields(
    *,
    isa: int,
    halves: int,
    looks_up: int,
    activation: int,
    low: float,
    high: float,
    slope: float,
    function: int,
    scale: float,
    offset: float,
    threads: int,
) -> bytes:
    return _multiply_codes(
        isa, halves, looks_up, activation, low, high, slope, function, scale, offset, threads
    )


_multiply_compressed = Struct("=qqqqqdddqddq").pack


def multiply_compressed_fields(
    *,
    isa: int,
    form: int,
    group: int,
    halves: int,
    activation: int,
    low: float,
    high: float,
    slope: float,
    function: int,
    scale: float,
    offset: float,
    threads: int,
) -> bytes:
    return _multiply_compressed(
        isa, form, group, halves, activation, low, high, slope, function, scale, offset, threads
    )


_multiply_quantized = Struct("=qqddqddqdqdddqddq").pack


def multiply_quantized_fields(
    *,
    isa: int,
    plain: int,
    data_low: float,
    data_high: float,
    highest: int,
    out_low: float,
    out_high: float,
    out_highest: int,
    greatest: float,
    activation: int,
    low: float,
    high: float,
    slope: float,
    function: int,
    scale: float,
    offset: float,
    threads: int,
) -> bytes:
    return _multiply_quantized(
        isa,
        plain,
        data_low,
        data_high,
        highest,
        out_low,
        out_high,
        out_highest,
        greatest,
        activation,
        low,
        high,
        slope,
        function,
        scale,
        offset,
        threads,
    )


_quantize = Struct("=qqq").pack


def quantize_fields(*, isa: int, highest: int, threads: int) -> bytes:
    return _quantize(isa, highest, threads)


_dequantizer = Struct("=qqqqqqqdddqddqqqd").pack


def dequantizer_fields(
    *,
    isa: int,
    positions: int,
    columns: int,
    begin: int,
    chunk: int,
    end: int,
    activation: int,
    low: float,
    high: float,
    slope: float,
    function: int,
    scale: float,
    offset: float,
    highest: int,
    adds: int,
    window_planes: int,
    greatest_sum: float,
) -> bytes:
    return _dequantizer(
        isa,
        positions,
        columns,
        begin,
        chunk,
        end,
        activation,
        low,
        high,
        slope,
        function,
        scale,
        offset,
        highest,
        adds,
        window_planes,
        greatest_sum,
    )


_pair_channels = Struct("=qq").pack


def pair_channels_fields(*, isa: int, threads: int) -> bytes:
    return _pair_channels(isa, threads)


_max_codes = Struct("=qqqqqqqqqqqqq").pack


def max_codes_fields(
    *,
    kernel: tuple[int, ...],
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
    pads_begin: tuple[int, ...],
    threads: int,
) -> bytes:
    kernel_0, kernel_1, kernel_2 = kernel
    strides_0, strides_1, strides_2 = strides
    dilations_0, dilations_1, dilations_2 = dilations
    pads_begin_0, pads_begin_1, pads_begin_2 = pads_begin
    return _max_codes(
        kernel_0,
        kernel_1,
        kernel_2,
        strides_0,
        strides_1,
        strides_2,
        dilations_0,
        dilations_1,
        dilations_2,
        pads_begin_0,
        pads_begin_1,
        pads_begin_2,
        threads,
    )


_combine_codes = Struct("=qqddddqdddqddddqq").pack


def combine_codes_fields(
    *,
    isa: int,
    multiplies: int,
    first_low: float,
    first_step: float,
    second_low: float,
    second_step: float,
    activation: int,
    low: float,
    high: float,
    slope: float,
    function: int,
    scale: float,
    offset: float,
    out_low: float,
    out_high: float,
    highest: int,
    threads: int,
) -> bytes:
    return _combine_codes(
        isa,
        multiplies,
        first_low,
        first_step,
        second_low,
        second_step,
        activation,
        low,
        high,
        slope,
        function,
        scale,
        offset,
        out_low,
        out_high,
        highest,
        threads,
    )


_average_codes = Struct("=ddq").pack


def average_codes_fields(*, scale: float, offset: float, threads: int) -> bytes:
    return _average_codes(scale, offset, threads)


_attend = Struct("=qdq").pack


def attend_fields(*, isa: int, scale: float, threads: int) -> bytes:
    return _attend(isa, scale, threads)


_copy_matrices = Struct("=qq").pack


def copy_matrices_fields(*, isa: int, threads: int) -> bytes:
    return _copy_matrices(isa, threads)


_recur = Struct("=qqqqd").pack


def recur_fields(
    *, isa: int, is_gru: int, backwards: int, threads: int, multiply_adds: float
) -> bytes:
    return _recur(isa, is_gru, backwards, threads, multiply_adds)
