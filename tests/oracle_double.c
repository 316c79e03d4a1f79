/* The oracle's losses in double; see oracle_float.c. */
#define ONEPASS_REAL_F64
#include "loss.h"
#include "transcendental.h"

#define T                  double
#define NAME(loss)         oracle_##loss##_in_double
#define EXP(x)             real_exp(x)
#define LOG(x)             real_log(x)
#define LOG1P(x)           real_log1p(x)
#define TANH(x)            real_tanh(x)
#define LOG_COSH(x)        real_log_cosh(x)
#define SIGMOID(x)         real_sigmoid(x)
#define SOFTPLUS(x)        real_softplus(x)
#define SQRT(x)            sqrt(x)
#define QUICK_SIGMOID(x)   real_quick_sigmoid(x)
#define RATIO(a, b)        real_ratio(a, b)
#define BY_PARAMETER(a, b) by_parameter(a, b)
#define LOG_LAG(x)         real_log_lag(x)
#define FUSED(a, b, c)     fma(a, b, c)
#include "oracle_formulas.h"
