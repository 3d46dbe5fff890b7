/* All that Python and C have to agree on.
 *
 * tools/regen_kernel_interface.py writes kernels/runtime/interface.py from this file: a function
 * that packs each table, and the enumerators.  A build has the hash of this file, so that Python
 * refuses one from other sources.  Comments count: if the arrays of a call change, so must this.
 *
 * A call takes arrays, as its comment lists them, then its fields in one buffer: integers (I),
 * doubles (D), and vectors (V) of an integer for each spatial axis.
 */
#ifndef DECONV_INTERFACE_H
#define DECONV_INTERFACE_H

#include <stdint.h>

#define AXES 3 /* spatial axes; fewer are preceded by axes of extent 1 */

/* ------------------------------------------------------- enumerations -- */

/* Storage types of elements.  Signed and unsigned integers have the same sums modulo 2^bits.  U8X4: four
 * unsigned bytes of data, or signed ones of weights; the sum of their products has 32 bits; for processors with
 * an instruction for it: has_dots().  I16X2: the same for others.  Data are those of U8X4, whose bytes 0 and 1, then
 * 2 and 3 of each element become two channels of a layer, or one, if no other is left; weights are such pairs, of 16
 * bits.  BF16X2: two bf16 of data, or of weights; the
 * sum of their products is f32, and so are biases and results; ISA_AVX512 if has_pairs(), and ISA_BASELINE. */
enum element { F32, F64, F16, BF16, I8, I16, I32, I64, U8X4, I16X2, BF16X2, ELEMENTS };

/* Those of elementwise programs: computed in f32, and booleans. */
enum pointwise_element { PW_F32, PW_F16, PW_BF16, PW_BOOLEAN, PW_ELEMENTS };

enum isa { ISA_BASELINE, ISA_AVX2, ISA_AVX512, ISAS };

/* The activation of a sum and its bias before they are stored: NaN stays NaN. */
enum activation { ACT_NONE, ACT_RELU, ACT_LEAKY, ACT_CLAMP, ACT_FUNCTION, ACTIVATIONS };

/* Use of Winograd F(m, r) instead of direct sums: never, if it is faster, if it is possible. */
enum winograd_use { WINOGRAD_NEVER, WINOGRAD_BY_COST, WINOGRAD_ALWAYS };

/* Whether a run may choose Winograd; JUDGED: as if no transformed weights were kept, so that what
 * is judged does not depend on earlier runs. */
enum winograd_choice { WINOGRAD_REFUSED, WINOGRAD_ALLOWED, WINOGRAD_JUDGED };

/* What a Packer found: layers cannot use Winograd where that was assumed; filters could not be
 * read, or are not finite. */
enum outcome { AS_PLANNED, PLAN_AGAIN, PACK_AGAIN };

/* Codes of a compressed matrix: of 4 bits, integers, 8 bits with a table, floats. */
enum compressed_form {
    COMPRESSED_4,
    COMPRESSED_U8,
    COMPRESSED_I8,
    COMPRESSED_TABLE,
    COMPRESSED_F16,
    COMPRESSED_BF16,
    COMPRESSED_FORMS
};

enum pooled { POOLED_MAX, POOLED_SUM, POOLINGS };

/* GridSample: how positions are interpolated, and what lies beyond the data. */
enum sampling_mode { NEAREST, BILINEAR, BICUBIC, MODES };
enum sampling_beyond { ZEROS, BORDER, REFLECTION, BEYONDS };

/* ------------------------------------------------------------- fields -- */

/* Of complete sums; low and high are the immediate values of a function, too. */
#define EPILOGUE_FIELDS(I, D, V) \
    I(activation) D(low) D(high) D(slope) I(function) D(scale) D(offset)

/* Kernel(bias or None, numbers, scales, zeros, fields).  With a `form` other than COMPRESSED_FORMS, weights stay
 * in codes: fill() takes one of 16 bits in each element, or one of up to 8 bits in a byte.  A weight is (number -
 * zero) * scale, of f32, rounded to f16 if `halves`: scales and zeros of each output channel, or None; numbers of
 * codes of 4 bits (`form` COMPRESSED_4; 16) and 8 (COMPRESSED_TABLE; 256), or None.  If `frees`, the packed filter is
 * freed once it is transformed for Winograd, and may have to be given again.  If `unread`, it is never given, and only
 * planned for. */
#define LAYER_FIELDS(I, D, V)                                                          \
    I(forward) I(element) I(isa) I(groups) I(channels_in) I(channels_out) I(folded)    \
    I(longer) I(winograd) I(channel_block) I(form) I(halves) I(frees) I(unread)        \
    V(kernel) V(strides) V(dilations)                                                  \
    EPILOGUE_FIELDS(I, D, V)                                                           \
    I(level2_bytes) I(sure_level2_bytes) I(level3_bytes) D(multiply_adds)

/* Kernel.run(data, out, addend or None, dequantizer or None, windows or None, fields), Kernel.describe(shape, fields).
 * The results of codes are [N, channels, positions] in f32, or their codes, [N, ceil(channels / 4), positions]; the
 * addend has the shape of the results in f32.  `windows`, as the dequantizer says, are sums of data in 32 bits, [N,
 * window_planes, positions], and WINDOWS_BEYOND elements more. */
#define RUN_FIELDS(I, D, V)                                                            \
    V(pads_begin) V(output) I(threads) I(scratch_bytes) I(thread_bytes) I(winograd)    \
    I(extent) I(crop) V(data_of_whole) V(pads_begin_of_whole) V(output_of_whole)

/* Kernel.predict(shape, fields of a run, costs, fields): with a double for each cost constant */
#define PREDICT_FIELDS(I, D, V) \
    I(level2_bytes) I(sure_level2_bytes) I(level3_bytes) D(multiply_adds)

/* Program(inputs, constants, instructions, fields): records of INPUT_FIELDS, doubles, and records
 * of INSTRUCTION_FIELDS; `operand` to `third` and `out` are registers. */
#define PROGRAM_FIELDS(I, D, V) I(isa) I(output)
#define INPUT_FIELDS(I, D, V) I(element) I(trailing)
#define INSTRUCTION_FIELDS(I, D, V) \
    I(operation) I(out) I(operand) I(second) I(third) D(immediate) D(second_immediate)

/* pool(data, out, divisors of the first, second and third axis, fields): four axes; no division if
 * the first is None */
#define POOL_FIELDS(I, D, V) \
    I(isa) I(pooled) V(kernel) V(strides) V(dilations) V(pads_begin) I(threads)

/* average_windows(data, out, windows of the first, second and third axis, fields): four axes; windows
 * are pairs of int64, where they begin and end */
#define AVERAGE_WINDOWS_FIELDS(I, D, V) I(isa) I(threads)

/* resample(data, out, rows, row_weights, columns, column_weights, fields): the last two axes of
 * three; both weights may be None */
#define RESAMPLE_FIELDS(I, D, V) I(isa) I(threads)

/* sample(data, grid, out, fields) */
#define SAMPLE_FIELDS(I, D, V) I(isa) I(mode) I(beyond) I(align) I(threads)

/* select(data, values, indices, fields): TopK along the second of three axes */
#define SELECT_FIELDS(I, D, V) I(isa) I(smallest) I(by_index) I(threads)

/* quantize(data, out, ranges, fields): [N * groups, channels, positions] of f32 to codes from 0 to
 * `highest`, those of four channels in one element of [N * groups, ceil(channels / 4), positions].  `ranges` are
 * pairs of f64, one or one for each channel: the numbers of the codes 0 and `highest`.  [1, 1, positions] may become
 * signed bytes, code - 128, of the same shape. */
#define QUANTIZE_FIELDS(I, D, V) I(isa) I(highest) I(threads)

/* pair_channels(data, out, fields): [N * groups, channels, positions] of f32, rounded to bf16, those of two
 * channels in one element of [N * groups, ceil(channels / 2), positions]; a missing one is 0 */
#define PAIR_CHANNELS_FIELDS(I, D, V) I(isa) I(threads)

/* max_codes(data, out, fields): MaxPool of codes, each byte on its own; four axes */
#define MAX_CODES_FIELDS(I, D, V) V(kernel) V(strides) V(dilations) V(pads_begin) I(threads)

/* combine_codes(first, second, out, fields): [N, ceil(channels / 4), positions] of codes to sums or products of
 * numbers, low + code * step each; `second` may have one position.  `out` is [N, channels, positions] in f32, or, if
 * `highest` is not 0, has the shape of the data and the codes of the results from out_low to out_high, after an
 * activation that is not a function. */
#define COMBINE_CODES_FIELDS(I, D, V)                                                    \
    I(isa) I(multiplies) D(first_low) D(first_step) D(second_low) D(second_step) EPILOGUE_FIELDS(I, D, V) \
    D(out_low) D(out_high) I(highest) I(threads)

/* average_codes(codes, out, fields): [N, ceil(channels / 4), positions] of codes to [N, channels] in f32:
 * offset + scale * their sum */
#define AVERAGE_CODES_FIELDS(I, D, V) D(scale) D(offset) I(threads)

/* Dequantizer(of_channels, offsets, classes or None, ranges or None, fields): sums in 32 bits to sums * scale +
 * offsets[channel], or, with a class for each row of `columns` positions, offsets[channel][classes[row]], which are
 * those of the columns up to `begin`, of the next `chunk` ones, which are repeated, and from `end` on.  `of_channels`
 * is [channels, 6]: the scale, the factor of negative results for ACT_LEAKY, an integer to which sums are added before
 * they are multiplied, the greatest magnitude of the offsets without it, and two factors of windows: windows times the
 * first, an integer, are added to the sums, and windows times the second to the results.  With ranges, results are
 * codes, as in quantize().  `adds`: whether runs have an addend; `window_planes`: the planes of
 * windows of an image, each for as many neighbouring channels, or 0.  `greatest_sum`: the greatest magnitude of a sum,
 * with windows. */
#define DEQUANTIZER_FIELDS(I, D, V)                                                          \
    I(isa) I(positions) I(columns) I(begin) I(chunk) I(end) EPILOGUE_FIELDS(I, D, V) I(highest) \
    I(adds) I(window_planes) D(greatest_sum)

/* standardize(data, out, scale or None, bias or None, fields): rows of `row` elements; scale and
 * bias change after every `inner` elements */
#define STANDARDIZE_FIELDS(I, D, V) \
    I(isa) I(row) I(inner) D(eps) I(inside) I(divides) I(threads)

/* sum_rows(data, out, fields): a sum, or mean, for each element of out */
#define SUM_ROWS_FIELDS(I, D, V) I(isa) I(mean) I(threads)

/* softmax(data, out, fields): along the second of three axes */
#define SOFTMAX_FIELDS(I, D, V) I(isa) I(logarithm) I(threads)

/* pack_columns(b, out, fields): for multiply(), a block of a matrix [terms, columns] from (row, column) on; out
 * held zeros before the first block */
#define PACK_COLUMNS_FIELDS(I, D, V) I(isa) I(terms) I(columns) I(row) I(column)

/* multiply(a, b, bias or None, out, fields): stacks of matrices; a packed b is a single matrix, the
 * bias a single row.  `pairs`: the packed matrix has the bf16 of two terms in an element, to which the rows of a,
 * which are contiguous, are rounded */
#define MULTIPLY_FIELDS(I, D, V) I(isa) I(is_packed) I(pairs) EPILOGUE_FIELDS(I, D, V) I(threads)

/* multiply_codes(a, codes, base, scales, zeros or None, bias or None, out, fields): [M, K] times the transpose of
 * a matrix [N, K] of codes of four bits, whose values are (base[code] - zero) * scale, rounded to f16 if `halves`;
 * scales and zeros are [N, groups] of f16 or f32.  `looks_up`: for few rows, without an activation. */
#define MULTIPLY_CODES_FIELDS(I, D, V) \
    I(isa) I(halves) I(looks_up) EPILOGUE_FIELDS(I, D, V) I(threads)

/* multiply_compressed(a, codes, table or None, scales or None, zeros or None, bias or None, out, fields): [M, K]
 * times a matrix [K, N] of codes, which the other arrays describe as struct compressed_matrix does; `group` terms
 * have the same scale */
#define MULTIPLY_COMPRESSED_FIELDS(I, D, V) \
    I(isa) I(form) I(group) I(halves) EPILOGUE_FIELDS(I, D, V) I(threads)

/* multiply_quantized(a, b, numbers, bases, out, fields): [M, K] in f32, whose rows are contiguous and whose codes,
 * from 0 to `highest`, are those of numbers from data_low to data_high, or [M, K] of signed bytes, code - 128, times a packed matrix [ceil(K / 4), N] of codes,
 * each stored as code + 128, those of four terms in one element.  For whole vectors of columns, `numbers` are scales,
 * offsets and row scales of f64, and `bases` bases and factors of 32 bits: struct column_dequantizer.  `out` is [M, N] in
 * f32, or of signed bytes: code - 128, from 0 to `out_highest`, and `greatest` bounds the magnitude of an offset and
 * what a row adds to it; `plain`: without the instruction of has_dots(). */
#define MULTIPLY_QUANTIZED_FIELDS(I, D, V) \
    I(isa) I(plain) D(data_low) D(data_high) I(highest) D(out_low) D(out_high) I(out_highest) D(greatest) \
    EPILOGUE_FIELDS(I, D, V) I(threads)

/* attend(query, key, value, mask or None, out, fields): stacks of matrices */
#define ATTEND_FIELDS(I, D, V) I(isa) D(scale) I(threads)

/* copy_matrices(data, out, fields): makes a stack of matrices contiguous */
#define COPY_MATRICES_FIELDS(I, D, V) I(isa) I(threads)

/* recur(x, w, r, bias, extra, hidden, steps, projected, fields): the arrays of struct recurrence;
 * `extra` is the state of cells, or a GRU's inner bias; a bit of `backwards` for each direction */
#define RECUR_FIELDS(I, D, V) I(isa) I(is_gru) I(backwards) I(threads) D(multiply_adds)

/* Calls without fields: Kernel.fill(buffer, first, swapped, threads), Kernel.read(descriptor,
 * offset, threads), Kernel.release(), Kernel.unpack(buffer), Packer(threads), Packer.add(kernel,
 * descriptor, offset), Packer.finish(), Program.run(inputs, out, threads), Block(bytes),
 * keep(most_kept, most_in_all), isas(), processor() -> dict, add_in_turn(count), has_pairs(), has_dots(isa). */

#define TABLES(T)                                                                       \
    T(layer, LAYER_FIELDS) T(run, RUN_FIELDS) T(predict, PREDICT_FIELDS)                \
    T(program, PROGRAM_FIELDS) T(input, INPUT_FIELDS)                                   \
    T(instruction, INSTRUCTION_FIELDS) T(pool, POOL_FIELDS)                             \
    T(average_windows, AVERAGE_WINDOWS_FIELDS)                                          \
    T(resample, RESAMPLE_FIELDS) T(sample, SAMPLE_FIELDS) T(select, SELECT_FIELDS)      \
    T(standardize, STANDARDIZE_FIELDS) T(sum_rows, SUM_ROWS_FIELDS)                     \
    T(softmax, SOFTMAX_FIELDS) T(pack_columns, PACK_COLUMNS_FIELDS)                     \
    T(multiply, MULTIPLY_FIELDS) T(multiply_codes, MULTIPLY_CODES_FIELDS)               \
    T(multiply_compressed, MULTIPLY_COMPRESSED_FIELDS)                                  \
    T(multiply_quantized, MULTIPLY_QUANTIZED_FIELDS)                                    \
    T(quantize, QUANTIZE_FIELDS) T(dequantizer, DEQUANTIZER_FIELDS)                     \
    T(pair_channels, PAIR_CHANNELS_FIELDS) T(max_codes, MAX_CODES_FIELDS)               \
    T(combine_codes, COMBINE_CODES_FIELDS) T(average_codes, AVERAGE_CODES_FIELDS)       \
    T(attend, ATTEND_FIELDS)                                                            \
    T(copy_matrices, COPY_MATRICES_FIELDS) T(recur, RECUR_FIELDS)

#define INTEGER_FIELD(name) int64_t name;
#define DOUBLE_FIELD(name) double name;
#define VECTOR_FIELD(name) int64_t name[AXES];
#define FIELDS_STRUCT(table, FIELDS)                       \
    struct table##_fields {                                \
        FIELDS(INTEGER_FIELD, DOUBLE_FIELD, VECTOR_FIELD)  \
    };
TABLES(FIELDS_STRUCT)

#endif
