/*
 * The lines of formulas.def as functions of one type. Whoever includes this
 * has defined T, NAME(loss), which is what the function of a loss is called, and the
 * elementary functions EXP, EXPM1, LOG, LOG1P, TANH, LOG_COSH, SIGMOID, SOFTPLUS and SQRT,
 * QUICK_SIGMOID, RATIO(a, b), RATIO_OF_SHARES(a, b) and BY_PARAMETER(a, b) = a/b, LOG1P_OF_RATIO(a, b) = log(1 + a/b),
 * LOG_OF_RATIO(a, b) = LOG_OF_SHARES(a, b) = log(a/b), LOG_LAG(a, b) = log(a/b) - (a/b - 1),
 * POWER_PRODUCT(x, y, a, b) = x^y * a * b and FUSED(a, b, c) = a*b + c.
 */
#include <math.h>
#include <string.h>

#define NOTHING       ((T)NAN)
#define HALF_LOG_2_PI ((T)0.918938533204672741780329736405617640L)

/* NaN comes through all of them but sign_of. */
__attribute__((unused)) static T absolute(T number) {
    return number > 0 ? number : 0 - number;
}

__attribute__((unused)) static T sign_of(T number) {
    return (T)((number > 0) - (number < 0));
}

__attribute__((unused)) static T at_least(T number, T least) {
    return number < least ? least : number;
}

/* The logarithm of a count's factorial, nearly, and its derivative. */
__attribute__((unused)) static T stirling(T count) {
    return count <= 1 ? 0 : (count + (T)0.5) * LOG(count) - count + HALF_LOG_2_PI;
}

__attribute__((unused)) static T stirling_slope(T count) {
    return count <= 1 ? 0 : LOG(count) + RATIO((T)0.5, count);
}

/* What e^(-a*d) has fallen by, divided by a. */
__attribute__((unused)) static T fall(T d, T a) {
    return a == 0 ? d : (0 - EXPM1(0 - a * d)) * BY_PARAMETER(1, a);
}

/* The sum of (-u)^i (-w)^j / (i+j+2)!: by Horner's rule in u, of which each coefficient is one step of it in w. */
__attribute__((unused)) static T tweedie_series(T u, T w) {
    const int last = sizeof(T) == 4 ? 12 : 20;
    double factorial = 1;
    T tail = 0, sum = 0;
    for (int n = 2; n <= last; n++)
        factorial *= n;
    for (int n = last; n >= 2; factorial /= n--) {
        tail = n == last ? (T)(1 / factorial) : FUSED(-w, tail, (T)(1 / factorial));
        sum = n == last ? tail : FUSED(-u, sum, tail);
    }
    return sum;
}

#define ORACLE_LOSS(name, domains, defaults, names, ...)                                                               \
    void NAME(name)(const T *operand, const T *k, T *result);                                                          \
    void NAME(name)(const T *operand, const T *k, T *result) {                                                         \
        const T p = operand[0];                                                                                        \
        const T t = operand[1];                                                                                        \
        const T v = operand[2];                                                                                        \
        const T x = p - t;                                                                                             \
        const T half = (T)0.5;                                                                                         \
        names;                                                                                                         \
        const T parts[] = {__VA_ARGS__};                                                                               \
        memcpy(result, parts, sizeof parts);                                                                           \
        (void)v, (void)x, (void)half, (void)k;                                                                         \
    }
#include "formulas.def"
#undef ORACLE_LOSS
