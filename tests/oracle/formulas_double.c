/* The oracle's losses in double; see formulas_float.c. */
#define ONEPASS_REAL_F64
#include "math/real.h"
#include "math/elementary.h"

#include "library_functions.h"

#define T              double
#define NAME(loss)     oracle_##loss##_in_double
#define SQRT(x)        sqrt(x)
#define FUSED(a, b, c) fma(a, b, c)
#include "formulas.h"
