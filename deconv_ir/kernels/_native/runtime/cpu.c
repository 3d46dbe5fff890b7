/* The processor: CPUID, which cpu.py interprets, or on ARM what Linux reports. */
#include "runtime/cpu.h"
#include "runtime/arithmetic.h"

#include <stdatomic.h>
#include <string.h>
#include <unistd.h>
#ifdef DECONV_X86
#include <cpuid.h>
#include <xmmintrin.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#ifndef HWCAP_ASIMDDP
#define HWCAP_ASIMDDP (1 << 20)
#endif
#ifndef HWCAP2_I8MM
#define HWCAP2_I8MM (1 << 13)
#endif
#endif

void finish_streams(void) {
#ifdef DECONV_X86
    _mm_sfence();
#endif
}

const char *isa_name(enum isa isa) {
    static const char *const names[ISAS] = {"baseline", "avx2", "avx512"};
    return names[isa];
}

#ifdef DECONV_X86
/* Not every compiler has this name for __builtin_cpu_supports. */
static int has_f16c(void) {
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && c & bit_F16C;
}
#endif

static int ask_isa(enum isa isa) {
#ifdef DECONV_X86
    __builtin_cpu_init();
#ifdef DECONV_LOWER_AVX512
    if (isa == ISA_AVX512) return ask_isa(ISA_AVX2);
#endif
    if (isa == ISA_AVX512)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512bw") &&
               ask_isa(ISA_AVX2);
    if (isa == ISA_AVX2)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
#endif
    return isa == ISA_BASELINE;
}

/* The result is cached: every call into the extension needs it, and on a virtual machine CPUID
 * takes microseconds. */
int isa_available(int64_t isa) {
    if (isa < 0 || isa >= ISAS) return 0;
    static atomic_int known[ISAS]; /* 0: unknown; 1: no; 2: yes */
    int found = atomic_load(&known[isa]);
    if (!found) {
        found = 1 + ask_isa((enum isa)isa);
        atomic_store(&known[isa], found);
    }
    return found == 2;
}

static enum dots ask_dots(enum isa isa) {
#if defined(DECONV_X86)
    /* AVX-512 VNNI, or AVX-VNNI. */
    unsigned a, b, c, d;
    if (isa == ISA_BASELINE) return DOTS_NONE;
    const int found = isa == ISA_AVX512 ? __get_cpuid_count(7, 0, &a, &b, &c, &d) && c >> 11 & 1
                                        : __get_cpuid_count(7, 1, &a, &b, &c, &d) && a >> 4 & 1;
    return found ? DOTS_MIXED : DOTS_NONE;
#elif defined(__aarch64__) && defined(__linux__)
    (void)isa;
    if (getauxval(AT_HWCAP2) & HWCAP2_I8MM) return DOTS_MIXED;
    return getauxval(AT_HWCAP) & HWCAP_ASIMDDP ? DOTS_SIGNED : DOTS_NONE;
#elif defined(__ARM_FEATURE_DOTPROD) /* of every processor that this system runs on */
    (void)isa;
    return DOTS_SIGNED;
#else
    (void)isa;
    return DOTS_NONE;
#endif
}

/* Cached like isa_available(). */
enum dots dots_of(enum isa isa) {
    static atomic_int known[ISAS]; /* 0: unknown; else 1 more than the result */
    int found = atomic_load(&known[isa]);
    if (!found) {
        found = 1 + (int)ask_dots(isa);
        atomic_store(&known[isa], found);
    }
    return (enum dots)(found - 1);
}

#ifdef DECONV_X86
/* AVX-512 BF16.  Cached like isa_available(). */
int processor_has_pairs(void) {
    static atomic_int known; /* 0: unknown; 1: no; 2: yes */
    int found = atomic_load(&known);
    if (!found) {
        unsigned a, b, c, d;
        found = 1 + (__get_cpuid_count(7, 1, &a, &b, &c, &d) && a >> 5 & 1);
        atomic_store(&known, found);
    }
    return found == 2;
}

/* The third-level cache that a core shares with its neighbours; the C library returns the sum over
 * all cores.  Intel and AMD use the same format under two leaf numbers. */
static int64_t ask_level3(void) {
    static const unsigned leaves[] = {4, 0x8000001D};
    for (int i = 0; i < 2; i++) {
        unsigned a, b, c, d;
        for (unsigned cache = 0; cache < 16; cache++) {
            if (!__get_cpuid_count(leaves[i], cache, &a, &b, &c, &d) || !(a & 31)) break;
            if ((a >> 5 & 7) == 3)
                return (int64_t)((b >> 22) + 1) * ((b >> 12 & 1023) + 1) * ((b & 4095) + 1) *
                       ((int64_t)c + 1);
        }
    }
    return 0;
}
#endif

void processor_ask(struct processor *p) {
    memset(p, 0, sizeof *p);
#ifdef _SC_LEVEL2_CACHE_SIZE
    p->level2 = most(sysconf(_SC_LEVEL2_CACHE_SIZE), 0);
#endif
#ifdef DECONV_LOWER_AVX512
    p->lowered = 1;
#endif
#ifdef DECONV_X86
    unsigned a, b, c, d;
    if (!__get_cpuid(0, &a, &b, &c, &d)) return;
    memcpy(p->vendor, &b, 4);
    memcpy(p->vendor + 4, &d, 4);
    memcpy(p->vendor + 8, &c, 4);
    if (!__get_cpuid(1, &a, &b, &c, &d)) return;
    p->family = (int)((a >> 8 & 15) + (a >> 20 & 255));
    p->is_virtual = (int)(c >> 31);
    p->model = (int)((a >> 4 & 15) + (a >> 12 & 0xf0));
    p->level3 = ask_level3();
#endif
}
