/* The cosine of the angle between two vectors, and the loss that draws it to 1 or below a margin. */
#ifndef ONEPASS_LOSS_COSINE_SIMILARITY_H
#define ONEPASS_LOSS_COSINE_SIMILARITY_H

#include "math/vector.h"

VECTOR_FUNCTION cosine_similarity_factors(const vector_element *x, double *left, double *right) {
    const double a = (double)x[0], b = (double)x[1];
    left[0] = a, right[0] = b;
    left[1] = a, right[1] = a;
    left[2] = b, right[2] = b;
}

VECTOR_FUNCTION cosine_similarity_terms(const vector_element *x, const double *parameter, double *term) {
    double left[3], right[3];
    (void)parameter;
    cosine_similarity_factors(x, left, right);
    term[0] = left[0] * right[0];
    term[1] = left[1] * right[1];
    term[2] = left[2] * right[2];
}

/* Norms are at least eps. As PyTorch has it, a slope does not know of that, but for the norm 0, which has none. */
VECTOR_FUNCTION cosine_similarity_row(const vector_sums *row, const double *parameter, vector_slopes *out) {
    const double norm_a = wide_root(row->sum[1]), norm_b = wide_root(row->sum[2]);
    const double a = wide_at_least(norm_a, parameter[0]), b = wide_at_least(norm_b, parameter[0]);
    const double per_a = 1 / a, per_b = 1 / b;
    out->value = row->sum[0] * per_a * per_b;
    out->factor[0] = per_a * per_b;
    out->factor[1] = out->value * per_a * (norm_a == a ? per_a : wide_reciprocal_or_0(norm_a));
    out->factor[2] = out->value * per_b * (norm_b == b ? per_b : wide_reciprocal_or_0(norm_b));
}

VECTOR_SLOPE cosine_similarity_slope(int which, const vector_element *x, const double *parameter,
                                     const double *factor) {
    const double a = (double)x[0], b = (double)x[1];
    (void)parameter;
    return which == 0 ? factor[0] * b - factor[1] * a : factor[0] * a - factor[2] * b;
}

VECTOR_FUNCTION cosine_embedding_factors(const vector_element *x, double *left, double *right) {
    cosine_similarity_factors(x, left, right);
}

VECTOR_FUNCTION cosine_embedding_terms(const vector_element *x, const double *parameter, double *term) {
    cosine_similarity_terms(x, parameter, term);
}

/* PyTorch adds a number to the squares of the norms here. */
VECTOR_FUNCTION cosine_embedding_row(const vector_sums *row, const double *parameter, vector_slopes *out) {
    const double square_a = row->sum[1] + 1e-12, square_b = row->sum[2] + 1e-12;
    const double per_a = 1 / wide_root(square_a), per_b = 1 / wide_root(square_b);
    const double cosine = row->sum[0] * per_a * per_b;
    const double beyond = cosine - parameter[0];
    const double sign = row->number == 1 ? -1 : row->number == -1 ? wide_choose(beyond < 0, 0, 1) : 0;
    out->value = row->number == 1 ? 1 - cosine : row->number == -1 ? wide_at_least(beyond, 0) : 0;
    out->factor[0] = sign * per_a * per_b;
    out->factor[1] = sign * cosine * per_a * per_a;
    out->factor[2] = sign * cosine * per_b * per_b;
}

VECTOR_SLOPE cosine_embedding_slope(int which, const vector_element *x, const double *parameter, const double *factor) {
    return cosine_similarity_slope(which, x, parameter, factor);
}

VECTOR_FUNCTION cosine_similarity_usual(double *parameter) {
    (void)parameter;
}

VECTOR_FUNCTION cosine_embedding_usual(double *parameter) {
    (void)parameter;
}

#endif

VECTOR_LOSS(cosine_similarity, (input1, input2), 2, 3, PRODUCTS, "cosine of the angle between two vectors",
            "sum(a*b)/(max(norm(a), eps)*max(norm(b), eps))", "(b/norm(b) - cosine*a/norm(a))/norm(a)",
            ACCURACY("", ULP_OF(1, "sum(abs(a*b))/(norm(a)*norm(b))"), ULP_OF(1, "1/norm(a)"), ULP_OF(1, "1/norm(b)")),
            PARAMETERS({"eps", "the least that a norm counts as", 1e-8, AT_LEAST(0)}))

VECTOR_LOSS(cosine_embedding, (input1, input2, target), 2, 3, PRODUCTS,
            "1 - cosine for the target 1, the cosine beyond a margin for -1",
            "y == 1 ? 1 - cosine : y == -1 ? max(0, cosine - margin) : 0", "-y times the slope of the cosine",
            ACCURACY("", ULP_OF(1, "2**-26"), ULP_OF(1, "1/norm(a)"), ULP_OF(1, "1/norm(b)")),
            PARAMETERS({"margin", "how large the cosine may be for the target -1", 0, ANY_FINITE}))
