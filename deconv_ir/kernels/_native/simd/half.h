/* f16 and bf16, bit by bit, rounding to nearest even. */
#ifndef DECONV_HALF_H
#define DECONV_HALF_H

#include <stdint.h>
#include <string.h>

static inline float bits_to_float(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t float_to_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float bfloat_to_float(uint16_t b) { return bits_to_float((uint32_t)b << 16); }

static inline uint16_t float_to_bfloat(float value) {
    const uint32_t bits = float_to_bits(value);
    const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    /* A NaN must not be carried into infinity. */
    return (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? (bits >> 16) | 0x40 : rounded);
}

static inline float half_to_float(uint16_t h) {
    const uint32_t sign = (uint32_t)(h & 0x8000) << 16, rest = h & 0x7fff;
    if (rest >= 0x7c00) return bits_to_float(sign | 0x7f800000 | (rest & 0x3ff) << 13);
    /* 2^112 is the difference of the exponents' biases; subnormals are exact, too. */
    return bits_to_float(sign | float_to_bits(bits_to_float(rest << 13) * 0x1p112f));
}

static inline uint16_t float_to_half(float value) {
    const uint32_t bits = float_to_bits(value), rest = bits & 0x7fffffff;
    const uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    if (rest > 0x7f800000) return sign | 0x7e00;            /* NaN */
    if (rest >= 0x477ff000) return sign | 0x7c00;           /* rounds to infinity */
    if (rest < 0x38800000) {                                /* subnormal */
        /* Adding 1/2 leaves the mantissa in units of 2^-24, rounded. */
        const uint32_t sum = float_to_bits(bits_to_float(rest) + 0.5f);
        return sign | (uint16_t)(sum - 0x3f000000);
    }
    return sign | (uint16_t)((rest - 0x38000000 + 0xfff + (rest >> 13 & 1)) >> 13);
}

#endif
