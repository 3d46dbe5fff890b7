/* Vectors of 16 bytes: SSE2, NEON, or whatever the compiler makes of them. */
#include "native.h"
#include "pointwise/pointwise.h"
#include "winograd/winograd.h"

#define VECTOR_LANES_32 4
#define VECTOR_LANES_64 2
#define SUFFIX baseline

#ifdef __SSE2__
#include <emmintrin.h>
#define STREAM_STEP 16
#define STREAM(from, to) _mm_stream_si128((void *)(to), _mm_loadu_si128((const void *)(from)))
#endif
#include "simd/element_types.inc.h"
