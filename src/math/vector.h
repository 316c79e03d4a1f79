/*
 * What the header of a vector loss may use. Such a loss is written in four parts, each compiled as C and as CUDA C, in
 * float and in double:
 *
 *     name_terms   what an element adds to each of the row's sums, in double, of the elements x[0], x[1], ...
 *     name_row     from a row's sums to its value and the factors of its slopes, in double, once a row
 *     name_slope   the slope in the element of operand `which`, in double, of the elements and the factors
 *     name_usual   sets those parameters that choose between formulas as they usually are: for calls that have them so
 *                  there is code that need not ask
 *
 * and ends with a line, outside its include guard,
 *
 *     VECTOR_LOSS(name, (operands), vectors, sums, SHORT, meaning, formula, formula of the slope, accuracy, parameters)
 *
 * vectors   how many of the operands are vectors; one behind them is a number a row, and one behind that class weights
 * sums      how many there are
 * SHORT     or LONG, where an element takes many operations, or PRODUCTS, or SOFTMAX, or CARRIED, or LABELLED, or
 *           MULTILABEL
 *
 * LONG: most of these operations make one number of the first operand's element, name_kept(). Where an engine has kept
 * it, name_kept_terms() and name_kept_slope() are given it as third element; the latter does without the first, but for
 * other operands' slopes.
 *
 * PRODUCTS: every term is a product of two elements, which name_factors() gives as doubles. Products of floats are
 * exact there, so that to add one to another is a single operation, fused, and the bits stay what they are.
 *
 * SOFTMAX: the two vectors are logits. The elements that the functions are given are the probabilities of their
 * softmaxes, and name_row() has row->softmaxes. CARRIED: the same of a loss that needs no sums beside what softmaxes
 * carry, so that it has none, and no name_terms; as third element, name_slope() of the second operand is given what
 * softmaxes_apart() says of the logits. Slopes of the first operand need no factor that row->softmaxes has a part in.
 *
 * LABELLED: there is one vector, of scores of classes, and the number a row is a class index: it says which of the
 * elements is the row's own. The functions are given an element, and as second one the own. In the place of the own
 * one itself the first is -inf, so that it adds nothing, and its slope is what name_row() leaves as
 * factor[VECTOR_OWN_SLOPE]. The last sum is for that slope alone: where nobody wants slopes it may be 0. The parameter
 * VECTOR_OWN_POWER is a power, usually 1 and else 2, and no other chooses between formulas. The third factor is the
 * engines'. So are the class weights, a third operand that may be left out: that of a row's class multiplies the row's
 * own weight, but has no say in what a mean is divided by.
 *
 * MULTILABEL: there is one vector, of scores, and as many class indices a row, of which those before the first -1 are
 * its labels. The functions are given an element that is no label's, and as second one a label's; what they say of
 * each such pair is added up: terms of a tile for one label after the other, slopes as counts, which name_slope() has
 * for factors of 1. The first factor multiplies them. A label's slope is minus the sum over all elements.
 *
 * Products of floats are exact in double, and nothing that floats can be squared to is lost there.
 */
#ifndef ONEPASS_MATH_VECTOR_H
#define ONEPASS_MATH_VECTOR_H

#include "math/elementary.h"
#include "math/wide.h"
#include "vector_sums.h"

#define VECTOR_FUNCTION ALWAYS_INLINE void
#define VECTOR_SLOPE    ALWAYS_INLINE double
#define VECTOR_KEPT     ALWAYS_INLINE real

/* An element as functions of SHORT losses and of PRODUCTS are given it: the CPU engine makes it double before on Arm
 * (cpu/vector_columns.h), and floats with AVX2 and AVX-512. */
#if !defined(__cplusplus) &&                                                                                           \
    ((defined(__ARM_NEON) && !defined(__ARM_FEATURE_SVE)) || (defined(__AVX2__) && !defined(ONEPASS_REAL_F64)))
#define HAS_WIDE_ELEMENTS 1
typedef double vector_element;
#else
#define HAS_WIDE_ELEMENTS 0
typedef real vector_element;
#endif

/* How terms are asked for, and what the loss wants of the engines. */
#define VECTOR_TERMS_SHORT(name, x, parameter, term)   name##_terms(x, parameter, term)
#define VECTOR_TERMS_LONG                              VECTOR_TERMS_SHORT
#define VECTOR_TERMS_PRODUCTS                          VECTOR_TERMS_SHORT
#define VECTOR_TERMS_SOFTMAX                           VECTOR_TERMS_SHORT
#define VECTOR_TERMS_CARRIED(name, x, parameter, term) ((void)(x), (void)(parameter), (void)(term))
#define VECTOR_TERMS_LABELLED                          VECTOR_TERMS_SHORT
#define VECTOR_TERMS_MULTILABEL                        VECTOR_TERMS_SHORT
#define HAS_SOFTMAXES_SHORT                            false
#define HAS_SOFTMAXES_LONG                             false
#define HAS_SOFTMAXES_PRODUCTS                         false
#define HAS_SOFTMAXES_SOFTMAX                          true
#define HAS_SOFTMAXES_CARRIED                          true
#define HAS_SOFTMAXES_LABELLED                         false
#define HAS_SOFTMAXES_MULTILABEL                       false
#define HAS_LABELS_SHORT                               false
#define HAS_LABELS_LONG                                false
#define HAS_LABELS_PRODUCTS                            false
#define HAS_LABELS_SOFTMAX                             false
#define HAS_LABELS_CARRIED                             false
#define HAS_LABELS_LABELLED                            true
#define HAS_LABELS_MULTILABEL                          false
#define HAS_LABEL_LISTS_SHORT                          false
#define HAS_LABEL_LISTS_LONG                           false
#define HAS_LABEL_LISTS_PRODUCTS                       false
#define HAS_LABEL_LISTS_SOFTMAX                        false
#define HAS_LABEL_LISTS_CARRIED                        false
#define HAS_LABEL_LISTS_LABELLED                       false
#define HAS_LABEL_LISTS_MULTILABEL                     true
#define IS_LONG_SHORT                                  false
#define IS_LONG_LONG                                   true
#define IS_LONG_PRODUCTS                               false
#define IS_LONG_SOFTMAX                                false
#define IS_LONG_CARRIED                                false
#define IS_LONG_LABELLED                               false
#define IS_LONG_MULTILABEL                             false

ALWAYS_INLINE double wide_magnitude(double x) {
    return __builtin_fabs(x);
}

/* Rounded once, by IEEE 754, on every machine. */
ALWAYS_INLINE double wide_root(double x) {
#if defined(__CUDACC__)
    return __dsqrt_rn(x);
#else
    return __builtin_sqrt(x);
#endif
}

/* The larger; NaN if x is. */
ALWAYS_INLINE double wide_at_least(double x, double least) {
    return wide_choose(x < least, least, x);
}

/* -1, 0 or 1; NaN if x is. */
ALWAYS_INLINE double wide_sign(double x) {
    return wide_choose(x > 0, 1, wide_choose(x < 0, -1, x * 0));
}

/* 1 / x, but 0 where x is: slopes of a distance at which it has none. */
ALWAYS_INLINE double wide_reciprocal_or_0(double x) {
    return wide_choose(x == 0, 0, 1 / x);
}

/* -------------------------------------------------------------- distances -- */

/* A component of the distance of two vectors, to which PyTorch adds a number, so that it is not 0. */
ALWAYS_INLINE double vector_apart(vector_element a, vector_element b, double eps) {
    return ((double)a - (double)b) + eps;
}

/* What it adds to the sum: its power of 1 or 2, ... */
ALWAYS_INLINE double vector_power(double z, double power) {
    return wide_choose(power == 1, wide_magnitude(z), z * z);
}

/* ... from which the distance comes by this, ... */
ALWAYS_INLINE double vector_distance(double sum, double power) {
    return wide_choose(power == 1, sum, wide_root(sum));
}

/* ... and its slope is the product of these. */
ALWAYS_INLINE double vector_distance_factor(double distance, double power) {
    return wide_choose(power == 1, 1, wide_reciprocal_or_0(distance));
}

ALWAYS_INLINE double vector_direction(double z, double power) {
    return wide_choose(power == 1, wide_sign(z), z);
}

#endif
