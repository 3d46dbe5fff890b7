/* The processor: CPUID, instruction sets. */
#ifndef DECONV_CPU_H
#define DECONV_CPU_H

#include <stdint.h>

#include "interface.h"

#if defined(__x86_64__)
#define DECONV_X86 1
#endif

/* The definition for an instruction set, such as name_avx2. */
#ifdef DECONV_X86
#define BY_ISA(isa, name)                                                                     \
    ((isa) == ISA_AVX512 ? name##_avx512 : (isa) == ISA_AVX2 ? name##_avx2 : name##_baseline)
#else
#define BY_ISA(isa, name) ((void)(isa), name##_baseline)
#endif

const char *isa_name(enum isa isa);
int isa_available(int64_t isa);
/* Instructions that add products of four bytes to sums of 32 bits: of signed bytes alone, or of
 * unsigned ones with signed ones. */
enum dots { DOTS_NONE, DOTS_SIGNED, DOTS_MIXED };
/* Those of the processor, for vectors of this set. */
enum dots dots_of(enum isa isa);
/* AVX-512 BF16. */
int processor_has_pairs(void);

/* The results of CPUID; an empty vendor and zeros if it is not available. */
struct processor {
    char vendor[13];
    int family, model;
    int64_t level2, level3;
    int is_virtual; /* whether a hypervisor runs this system */
    int lowered; /* whether this build compiles AVX-512 code to pairs of AVX2 vectors, for tests */
};
void processor_ask(struct processor *processor);

/* Make this thread's non-temporal stores visible to other threads. */
void finish_streams(void);

#endif
