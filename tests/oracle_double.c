/* The oracle's losses in double; see oracle_float.c. */
#define ONEPASS_REAL_F64
#include "loss.h"
#include "transcendental.h"

#include "oracle_library_functions.h"

#define T              double
#define NAME(loss)     oracle_##loss##_in_double
#define SQRT(x)        sqrt(x)
#define FUSED(a, b, c) fma(a, b, c)
#include "oracle_formulas.h"
