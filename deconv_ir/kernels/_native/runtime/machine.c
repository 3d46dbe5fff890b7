/* What the processor says of itself; machine.py knows what that means. */
#include "native.h"

#include <string.h>
#include <unistd.h>
#ifdef DECONV_X86
#include <cpuid.h>
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
    p->model = (int)((a >> 4 & 15) + (a >> 12 & 0xf0));
#endif
}
