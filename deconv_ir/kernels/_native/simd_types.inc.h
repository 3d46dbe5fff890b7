/* The four accumulators for one instruction set.
 *
 * Included once by each simd_*.c, which defines VECTOR_BYTES, SUFFIX, SHAPES,
 * ROWS, COLUMNS, and the two conversions of rows of f16. */

#define JOIN_(a, b, c) a##_##b##_##c
#define JOIN(a, b, c) JOIN_(a, b, c)

#define ELEMENT float
#define LANES VECTOR_LANES_32
#define NAME(x) JOIN(x, f32, SUFFIX)
#define IS_FLOAT 1
#define NATIVE(e) ((e) == F32)
#include "microkernel.inc.h"

#define ELEMENT double
#define LANES VECTOR_LANES_64
#define NAME(x) JOIN(x, f64, SUFFIX)
#define IS_FLOAT 1
#define NATIVE(e) ((e) == F64)
#include "microkernel.inc.h"

#define ELEMENT uint32_t
#define LANES VECTOR_LANES_32
#define NAME(x) JOIN(x, u32, SUFFIX)
#define IS_FLOAT 0
#define NATIVE(e) ((e) == I32)
#include "microkernel.inc.h"

#define ELEMENT uint64_t
#define LANES VECTOR_LANES_64
#define NAME(x) JOIN(x, u64, SUFFIX)
#define IS_FLOAT 0
#define NATIVE(e) ((e) == I64)
#include "microkernel.inc.h"

#include "winograd.inc.h"
