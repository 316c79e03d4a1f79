/* The job that finds out what a mean is divided by, made of that mean's job alone: engines ask for it. */
#include "engine.h"

/* Without weights that count the mask itself is added up: its elements count as 0 and 1. A divisor that is a tensor is
 * the sum of its one element. */
static void plan_sum(const job *weighted, const view *summed, int32_t compute, job *weights) {
    *weights = (struct job){.family = FAMILY_WEIGHTS,
                            .operand_count = 1,
                            .reduction = ONEPASS_SUM,
                            .compute = compute,
                            .first = weighted->first,
                            .count = weighted->count,
                            .operand = {*summed},
                            .divisor = 1,
                            .threads = weighted->threads};
}

/* What the rows count for depends on their labels. */
static void plan_row_weights(const job *weighted, job *weights) {
    *weights = *weighted;
    weights->family = FAMILY_ROW_WEIGHTS;
    weights->reduction = ONEPASS_SUM;
    weights->over_weights = weights->skip_if_one = false;
    weights->divisor = 1;
    weights->terms = NULL;
    weights->upstream.data = weights->value.data = weights->divided_by.data = NULL;
    for (int32_t k = 0; k < ONEPASS_MAX_OPERANDS; k++)
        weights->gradient[k].data = NULL;
}

void onepass_plan_weights(const job *weighted, job *weights) {
    const bool counts_weights = weighted->weight.data && !weighted->over_elements;
    if (weighted->divisor_tensor.data) {
        const view *divisor = &weighted->divisor_tensor;
        plan_sum(weighted, divisor, divisor->dtype == ONEPASS_F64 ? ONEPASS_F64 : ONEPASS_F32, weights);
        weights->first = 0;
        weights->count = 1;
    } else if (weighted->family == FAMILY_ROWS && weighted->loss->kind != ROW_PROBABILITIES) {
        plan_row_weights(weighted, weights);
    } else {
        plan_sum(weighted, counts_weights ? &weighted->weight : &weighted->mask, weighted->compute, weights);
        if (counts_weights)
            weights->mask = weighted->mask;
    }
}
