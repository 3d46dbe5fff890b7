/* What the models of cycles must know of the processor, beside its instructions. */
#include "native.h"

#include <stdatomic.h>
#include <unistd.h>
#ifdef DECONV_X86
#include <cpuid.h>
#endif

int64_t second_level_cache(void) {
#ifdef _SC_LEVEL2_CACHE_SIZE
    const long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
    if (bytes > 0) return bytes;
#endif
    return 256 << 10;
}

#ifdef DECONV_X86
/* Whether a multiply-add of 64 bytes takes two units of 32.  No flag tells, and timing it gives
 * another answer in one process of a hundred, with other plans and other last digits; but these
 * families are known to. */
static int long_vectors_are_halved(void) {
#ifdef DECONV_LOWER_AVX512
    return 1;
#else
    enum { AMD = 0x68747541, INTEL = 0x756e6547 }; /* the first letters of the vendor's name */
    unsigned a, vendor, c, d, version;
    if (!__get_cpuid(0, &a, &vendor, &c, &d) || !__get_cpuid(1, &version, &a, &c, &d)) return 0;
    const unsigned family = (version >> 8 & 15) + (version >> 20 & 255);
    const unsigned model = (version >> 4 & 15) + (version >> 12 & 0xf0);
    if (vendor == AMD) /* Zen 4, and Zen 5 of notebooks */
        return family == 0x19 || (family == 0x1a && (model >> 4 == 2 || model >> 4 == 6));
    /* Cannon, Ice, Tiger and Rocket Lake; server processors have two units of 64. */
    return vendor == INTEL && family == 6 &&
           (model == 0x66 || model == 0x7d || model == 0x7e || model == 0x8c || model == 0x8d ||
            model == 0xa7);
#endif
}
#endif

double vectors_per_cycle(const struct kernels *kernels) {
#ifdef DECONV_X86
    /* Asked for once: on a virtual machine it takes microseconds. */
    static atomic_int known; /* 0: not yet; else vectors a cycle */
    if (kernels->lanes * kernels->size == 64) {
        if (known == 0) known = long_vectors_are_halved() ? 1 : 2;
        return known;
    }
#endif
    (void)kernels;
    return 2;
}
