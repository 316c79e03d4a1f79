/*
 * Numbers that carry their largest error: in twice double's precision, and beside each how far one that is computed in
 * double may be from it. Each operation takes its operands' errors on and adds its own, a unit in the last place of its
 * result: half of that is IEEE 754's, and the other half is for factors that are multiplied in elsewhere, or
 * reciprocals. A sum of n terms in the order of order.c adds half a unit for each level of its tree.
 */
#ifndef ONEPASS_TESTS_BOUNDED_H
#define ONEPASS_TESTS_BOUNDED_H

#include "doubled.h"

#include <stdint.h>

/* -------------------------------------------------- numbers with errors -- */

typedef struct bounded {
    doubled is;
    double off; /* at most */
} bounded;

#define UNIT         0x1p-52
#define LEAST_NUMBER 0x1p-1074

static inline bounded exactly(double x) {
    return (bounded){doubled_of(x), 0};
}

static inline double size(bounded a) {
    return fabs(a.is.high);
}

/* A result of one operation. */
static inline bounded rounded(doubled is, double off) {
    return (bounded){is, off + UNIT * fabs(is.high)};
}

static inline bounded plus(bounded a, bounded b) {
    return rounded(doubled_add(a.is, b.is), a.off + b.off);
}

static inline bounded negative(bounded a) {
    return (bounded){doubled_negative(a.is), a.off};
}

static inline bounded minus(bounded a, bounded b) {
    return plus(a, negative(b));
}

static inline bounded times(bounded a, bounded b) {
    const double off = size(a) * b.off + a.off * (size(b) + b.off);
    const bounded product = rounded(doubled_multiply(a.is, b.is), off);
    return (bounded){product.is, size(a) == 0 && a.off == 0 ? 0 : product.off + LEAST_NUMBER};
}

static inline bounded over(bounded a, bounded b) {
    const doubled quotient = doubled_divide(a.is, b.is);
    const double left = size(b) - b.off;
    const double off = left > 0 ? (a.off + fabs(quotient.high) * b.off) / left : b.off > 0 ? INFINITY : 0;
    return rounded(quotient, off + (size(a) == 0 && a.off == 0 ? 0 : LEAST_NUMBER));
}

/* The larger one of a number and a parameter; NaN stays. */
static inline bounded at_least(bounded a, double parameter) {
    const double below = parameter - a.is.high;
    return below > 0 ? (bounded){doubled_of(parameter), fmax(a.off - below, 0)} : a;
}

/* ---------------------------------------------------------------- sums -- */

typedef struct total {
    bounded sum;
    double magnitudes;
} total;

static inline void add_term(total *t, bounded term) {
    t->sum.is = doubled_add(t->sum.is, term.is);
    t->sum.off += term.off;
    t->magnitudes += size(term);
}

/* Lines, lanes and tiles, as many as there are. */
static inline double levels(int64_t count) {
    int tiles = 0;
    while (INT64_C(1024) << tiles < count) {
        tiles++;
    }
    return count < 11 ? (double)count : 10 + tiles;
}

static inline bounded sum_of(const total *t, int64_t count) {
    return (bounded){t->sum.is, t->sum.off + levels(count) * UNIT / 2 * t->magnitudes};
}

#endif
