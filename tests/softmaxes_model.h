/*
 * Two softmaxes of a row, summed literally in the order of docs/numerics.md: every tile as terms of its own, those that
 * lead apart, what tiles come to by the tree. Exponentials and logarithms are the library's, which have tests of their
 * own. Compiled for each compute type.
 */
#ifndef ONEPASS_TESTS_SOFTMAXES_MODEL_H
#define ONEPASS_TESTS_SOFTMAXES_MODEL_H

#include "math/softmaxes.h"
#include "oracle.h"

#include <math.h>
#include <stdlib.h>

enum {
    MODEL_TILE = 1024
};

/* What a loss has of a row. */
typedef struct softmaxes_model {
    double above, carried;
} softmaxes_model;

static softmax_scale model_scale(double temperature) {
    const double factor = WIDE_LOG2_E / temperature;
    const double low = (fma(-factor, temperature, WIDE_LOG2_E) + WIDE_LOG2_E_LOW) / temperature;
    return (softmax_scale){.factor = factor, .factor_low = low, .softcap = 0, .per_temperature = 1 / temperature};
}

static double model_largest(const double *x, int64_t count) {
    double largest = -INFINITY;
    for (int64_t i = 0; i < count; i++) {
        if (isnan(x[i])) {
            return NAN;
        }
        largest = x[i] > largest ? x[i] : largest;
    }
    return largest + 0; /* -0 is 0 */
}

static double model_tree(const double *tile, int64_t tiles, int level) {
    if (level == 0 || tiles <= 1) {
        return tiles ? tile[0] : 0;
    }
    const int64_t half = INT64_C(1) << (level - 1);
    const double left = model_tree(tile, tiles < half ? tiles : half, level - 1);
    return tiles > half ? left + model_tree(tile + half, tiles - half, level - 1) : left;
}

/* One operand's tile: its shift, and the sums of those that lead and of the others. */
static softmax_tile model_tile(const softmax *softmax, const softmax_scale *scale, const double *x, int64_t count,
                               softmax_shift *shift) {
    double others[MODEL_TILE], leaders = 0;
    *shift = softmax_shift_of(softmax, scale, (real)model_largest(x, count));
    const real most = row_most_of_tile(softmax, shift);
    for (int64_t i = 0; i < count; i++) {
        const real e = softmax_exponential(softmax, shift, (real)x[i] - shift->anchor);
        leaders += e == most;
        others[i] = e == most ? 0 : (double)e;
    }
    return (softmax_tile){.exponent = shift->exponent,
                          .others = oracle_sum(others, count, sizeof(real) == sizeof(float)),
                          .leading = leaders * (double)most,
                          .largest = shift->largest};
}

/* How much more a logit of the second is above the second's largest than that of the first above the first's. */
static real model_apart(real first_largest, real second_largest, double first, double second) {
    return ((real)second - second_largest) - ((real)first - first_largest);
}

/* The second's exponentials, each times how far the logits are apart of their tile's largest ones. */
static double model_carried(const softmax *softmax, const softmax_shift *shift, const double *a, const double *b,
                            int64_t count) {
    double term[MODEL_TILE];
    for (int64_t i = 0; i < count; i++) {
        const real e = softmax_exponential(softmax, &shift[1], (real)b[i] - shift[1].anchor);
        term[i] = e == 0 ? 0 : (double)(e * model_apart(shift[0].largest, shift[1].largest, a[i], b[i]));
    }
    return oracle_sum(term, count, sizeof(real) == sizeof(float));
}

/* The probabilities of one operand, a tile by its own shift. */
static void model_probabilities(const softmax *softmax, const softmax_scale *scale, const double *x, int64_t count,
                                double row_exponent, double per_sum, double *probability) {
    for (int64_t first = 0; first < count; first += MODEL_TILE) {
        const int64_t own = count - first < MODEL_TILE ? count - first : MODEL_TILE;
        const softmax_shift shift = softmax_shift_of(softmax, scale, (real)model_largest(x + first, own));
        const real factor = softmaxes_factor(per_sum, shift.exponent, row_exponent);
        for (int64_t i = first; i < first + own; i++) {
            probability[i] = (double)(softmax_exponential(softmax, &shift, (real)x[i] - shift.anchor) * factor);
        }
    }
}

/* `element` has, for each element, both probabilities and how far the logits are apart. */
static softmaxes_model model_softmaxes(const double *a, const double *b, int64_t count, double temperature,
                                       double *const element[3]) {
    const softmax_scale scale = model_scale(temperature);
    const softmax softmax = softmax_of(&scale);
    const double *x[] = {a, b}, largest[] = {model_largest(a, count), model_largest(b, count)};
    const int64_t tiles = (count + MODEL_TILE - 1) / MODEL_TILE;
    double *part[SOFTMAXES_SUMS], sum[SOFTMAXES_SUMS], exponent[2];
    vector_softmaxes known = {{NAN, NAN}, {NAN, NAN}, NAN, NAN};
    const bool has_softmaxes = softmaxes_exponents(&softmax, &scale, largest, exponent);
    for (int k = 0; k < SOFTMAXES_SUMS; k++) {
        part[k] = calloc((size_t)tiles + 1, sizeof(double));
        if (!part[k]) {
            abort();
        }
    }
    for (int64_t tile = 0; has_softmaxes && tile < tiles; tile++) {
        const int64_t first = tile * MODEL_TILE, own = count - first < MODEL_TILE ? count - first : MODEL_TILE;
        softmax_tile sums[2];
        softmax_shift shift[2];
        double parts[SOFTMAXES_SUMS];
        for (int k = 0; k < 2; k++) {
            sums[k] = model_tile(&softmax, &scale, x[k] + first, own, &shift[k]);
        }
        sums[1].weighted = model_carried(&softmax, shift, a + first, b + first, own);
        softmaxes_parts(sums, exponent, largest, parts);
        for (int k = 0; k < SOFTMAXES_SUMS; k++) {
            part[k][tile] = parts[k];
        }
    }
    for (int k = 0; k < SOFTMAXES_SUMS; k++) {
        sum[k] = model_tree(part[k], tiles, 40);
        free(part[k]);
    }
    if (has_softmaxes) {
        softmaxes_know(&softmax, &scale, largest, sum, &known);
    }
    for (int k = 0; k < 2; k++) {
        model_probabilities(&softmax, &scale, x[k], count, exponent[k], known.per_sum[k], element[k]);
    }
    for (int64_t i = 0; i < count; i++) {
        element[2][i] = (double)model_apart((real)largest[0], (real)largest[1], a[i], b[i]);
    }
    return (softmaxes_model){known.above, known.carried};
}

#endif
