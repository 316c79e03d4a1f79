/* The answer to a question in plain numbers: terms, their sum, the gradients. */
#include "oracle.h"

#include <stdlib.h>

/* One product in the compute type. */
static double product(double a, double b, int in_float) {
    if (in_float) {
        const float rounded = (float)a * (float)b;
        return rounded;
    }
    return a * b;
}

static int is_hidden(const oracle_question *question, int64_t i) {
    return question->mask && !question->mask[i];
}

/* The terms, weighted, and what each of them counts for in a mean; 0 where the mask hides them. */
typedef struct terms {
    double *part[ORACLE_PARTS]; /* the value and the slopes */
    double *counts;             /* the weight, or 1 */
} terms;

static double *allocate(int64_t count) {
    double *numbers = malloc((size_t)(count ? count : 1) * sizeof *numbers);
    if (!numbers) {
        abort();
    }
    return numbers;
}

static terms compute(const oracle_question *question, const oracle_loss *loss) {
    terms all = {.counts = allocate(question->count)};
    double parameter[ONEPASS_MAX_PARAMETERS];
    oracle_parameters(loss, question->parameter_count, question->parameter, parameter);
    for (int j = 0; j < 1 + loss->operand_count; j++) {
        all.part[j] = allocate(question->count);
    }
    for (int64_t i = 0; i < question->count; i++) {
        double operand[ORACLE_OPERANDS] = {0};
        double result[ORACLE_PARTS];
        for (int j = 0; j < loss->operand_count; j++) {
            operand[j] = question->operand[j][i];
        }
        oracle_term(loss, question->in_float, operand, parameter, result);
        const double weight = question->weight ? question->weight[i] : 1;
        for (int j = 0; j < 1 + loss->operand_count; j++) {
            const double weighted = question->weight ? product(result[j], weight, question->in_float) : result[j];
            all.part[j][i] = is_hidden(question, i) ? 0 : weighted;
        }
        all.counts[i] = is_hidden(question, i) ? 0 : weight;
    }
    return all;
}

static void release(terms *all) {
    free(all->counts);
    for (int j = 0; j < ORACLE_PARTS; j++) {
        free(all->part[j]);
    }
}

static int is_divided(const oracle_question *question) {
    return question->reduction == ONEPASS_MEAN || question->reduction == ONEPASS_BATCHMEAN;
}

static void write_value(const oracle_question *question, const double *term, double divisor) {
    if (question->reduction == ONEPASS_NONE) {
        for (int64_t i = 0; i < question->count; i++) {
            question->value[i] = term[i];
        }
        return;
    }
    const double sum = oracle_sum(term, question->count, question->in_float);
    *question->value = is_divided(question) ? sum / divisor : sum;
}

/* ((slope * w) * s) * g, left to right; the slopes come with their weight already. What is hidden is 0. */
static void write_gradient(const oracle_question *question, double *gradient, const double *slope, double divisor) {
    const int in_float = question->in_float;
    for (int64_t i = 0; i < question->count; i++) {
        const double upstream =
            question->upstream ? question->upstream[question->reduction == ONEPASS_NONE ? i : 0] : 1;
        const double scaled = is_divided(question) ? product(slope[i], 1.0 / divisor, in_float) : slope[i];
        gradient[i] = is_hidden(question, i) ? 0 : product(scaled, upstream, in_float);
    }
}

void oracle_answer(const oracle_question *question) {
    const oracle_loss *loss = oracle_loss_named(question->loss);
    terms all = compute(question, loss);
    const double divisor =
        question->divisor != 0 ? question->divisor : oracle_sum(all.counts, question->count, question->in_float);
    if (question->value) {
        write_value(question, all.part[0], divisor);
    }
    for (int j = 0; j < loss->operand_count; j++) {
        if (question->gradient[j]) {
            write_gradient(question, question->gradient[j], all.part[1 + j], divisor);
        }
    }
    release(&all);
}
