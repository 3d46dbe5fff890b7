/* Undefines the macros of simd/functions.inc.h, after the vector code that uses them. */
#undef LANES
#undef NAME
#undef INLINE
#undef VF
#undef VI
#undef VU
#undef VD
#undef LOAD
#undef STORE
#undef ALL
#undef PICK
#undef WHERE
#undef TRUTH
#undef ABS
#undef SIGN_OF
#undef WITH_SIGN
