/* The oracle's losses in long double, with libm's elementary functions: nothing of the library has a part in them. */
#include <math.h>

static long double sigmoid(long double x) {
    return x < 0 ? expl(x) / (1 + expl(x)) : 1 / (1 + expl(-x));
}

static long double softplus(long double x) {
    return x > 0 ? x + log1pl(expl(-x)) : log1pl(expl(x));
}

/* With sinh, since a logarithm of cosh has no digits where cosh is near 1. */
static long double log_cosh(long double x) {
    const long double s = sinhl(x / 2);
    return x > 40 ? x - logl(2) : x < -40 ? -x - logl(2) : log1pl(2 * s * s);
}

/* By log1p near 1, where a difference of nearly equal numbers has no digits. */
static long double log_lag(long double x) {
    return x > 0.5L && x < 2 ? log1pl(x - 1) - (x - 1) : logl(x) - (x - 1);
}

#define T                  long double
#define NAME(loss)         oracle_##loss##_in_wide
#define EXP(x)             expl(x)
#define LOG(x)             logl(x)
#define LOG1P(x)           log1pl(x)
#define TANH(x)            tanhl(x)
#define LOG_COSH(x)        log_cosh(x)
#define SIGMOID(x)         sigmoid(x)
#define SOFTPLUS(x)        softplus(x)
#define SQRT(x)            sqrtl(x)
#define QUICK_SIGMOID(x)   sigmoid(x)
#define RATIO(a, b)        ((a) / (b))
#define BY_PARAMETER(a, b) ((a) / (b))
#define LOG_LAG(x)         log_lag(x)
#define FUSED(a, b, c)     fmal(a, b, c)
#include "oracle_formulas.h"
