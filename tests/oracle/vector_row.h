/* A row of a question about vector losses, which the formulas of vectors.c and distributions.c answer. */
#ifndef ONEPASS_TESTS_VECTOR_ROW_H
#define ONEPASS_TESTS_VECTOR_ROW_H

#include "bounded.h"
#include "oracle.h"

enum {
    PARAMETERS = 4
};

/* A row of a question, and what is made of it. `slope` has an array for each operand. */
typedef struct vector_row {
    int64_t count;
    const double *x[ORACLE_OPERANDS];
    double k[PARAMETERS];
    int in_float, has_logits;
    bounded value;
    bounded *slope[ORACLE_OPERANDS];
    int at_kink;
} vector_row;

static inline void set_slopes(vector_row *r, int operand, int64_t i, bounded slope) {
    r->slope[operand][i] = slope;
}

void kl_div_with_logits(vector_row *r);
void js_div_with_logits(vector_row *r);
void tv_distance_with_logits(vector_row *r);

#endif
