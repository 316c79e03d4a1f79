/* The job that adds up the weights of another, made of that job alone: engines ask for it. */
#include "engine.h"

/* Without weights that count the mask itself is added up: its elements count as 0 and 1. */
void onepass_plan_weights(const job *weighted, job *weights) {
    const bool counts_weights = weighted->weight.data && !weighted->over_elements;
    *weights = (struct job){.family = FAMILY_WEIGHTS,
                            .operand_count = 1,
                            .reduction = ONEPASS_SUM,
                            .compute = weighted->compute,
                            .first = weighted->first,
                            .count = weighted->count,
                            .operand = {counts_weights ? weighted->weight : weighted->mask},
                            .divisor = 1,
                            .threads = weighted->threads};
    if (counts_weights)
        weights->mask = weighted->mask;
}
