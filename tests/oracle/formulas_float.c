/* The oracle's losses in float, with the library's elementary functions. */
#include "math/real.h"
#include "math/elementary.h"

#include "library_functions.h"

#define T              float
#define NAME(loss)     oracle_##loss##_in_float
#define SQRT(x)        sqrtf(x)
#define FUSED(a, b, c) fmaf(a, b, c)
#include "formulas.h"
