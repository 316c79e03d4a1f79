/*
 * The losses over rows and of vectors, whose formulas go over many elements: their means and gradients against the
 * oracle of the tests, which computes them in twice double's precision or knows what they may be at most and at least.
 */
#include "check.h"
#include "demo.h"
#include "oracle.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROWS = 128,
    ELEMENTS = 300,
    COUNT = ROWS * ELEMENTS
};
static const int64_t shape[] = {ROWS, ELEMENTS};

/* ----------------------------------------------------------- the inputs -- */

typedef enum kind {
    ANY,         /* -4 to 4 */
    PROBABILITY, /* 0 to 1 */
    SHARE,       /* of 1, which a row's add up to nearly */
    REGION,      /* 0 or 1 */
    SIGN,        /* -1 or 1, one a row */
    CLASS,       /* one a row */
    CLASSES      /* up to 4 of them, and -1 behind the last */
} kind;

static kind kind_of(const onepass_loss_info *loss, int operand) {
    const bool is_last = operand == loss->operand_count - 1, is_target = operand == ONEPASS_TARGET;
    if (!strncmp(loss->name, "tversky", strlen("tversky")))
        return is_target ? REGION : strstr(loss->name, "logits") ? ANY : PROBABILITY;
    switch (loss->over_rows) {
    case ONEPASS_CLASS_INDEX:
    case ONEPASS_CLASS_A_VECTOR:
        return is_target ? CLASS : ANY;
    case ONEPASS_CLASSES_A_VECTOR:
        return is_target ? CLASSES : ANY;
    case ONEPASS_CLASS_PROBABILITIES:
        return is_target ? SHARE : ANY;
    case ONEPASS_NUMBER_A_VECTOR:
        return is_last ? SIGN : ANY;
    default:
        return ANY;
    }
}

static double number_of(kind kind, int64_t at, uint64_t bits) {
    const double from_0_to_1 = ldexp((double)(bits >> 40), -24);
    switch (kind) {
    case PROBABILITY:
        return from_0_to_1;
    case SHARE:
        return (double)(float)(2 * from_0_to_1 / ELEMENTS);
    case REGION:
        return (double)(bits >> 63);
    case SIGN:
        return bits >> 63 ? 1 : -1;
    case CLASS:
        return (double)(bits % ELEMENTS);
    case CLASSES:
        return at % ELEMENTS <= at / ELEMENTS % 4 ? (double)(bits % ELEMENTS) : -1;
    default:
        return 8 * from_0_to_1 - 4;
    }
}

/* An operand, for the library and for the oracle. */
typedef struct operand {
    onepass_tensor tensor;
    double number[COUNT];
    union {
        float number[COUNT];
        int64_t class[COUNT];
    } data;
} operand;

static void fill(operand *operand, kind kind, uint64_t seed) {
    const bool is_class = kind == CLASS || kind == CLASSES;
    const int32_t dimensions = kind == SIGN || kind == CLASS ? 1 : 2;
    for (int64_t i = 0; i < (dimensions == 1 ? ROWS : COUNT); i++) {
        const double number = number_of(kind, i, random_bits(seed * COUNT + (uint64_t)i));
        operand->number[i] = number;
        if (is_class)
            operand->data.class[i] = (int64_t)number;
        else
            operand->data.number[i] = (float)number;
    }
    operand->tensor = (onepass_tensor){&operand->data, is_class ? ONEPASS_I64 : ONEPASS_F32, dimensions, shape, NULL};
}

/* ----------------------------------------------------------- the errors -- */

/* What a call was given and gave. */
static operand operands[ORACLE_OPERANDS];
static float value, gradient[COUNT];

typedef bool check(const onepass_call *call, errors *errors);

static bool check_row_loss(const onepass_call *call, errors *errors) {
    static double row_size[ROWS], slope[COUNT], slope_size[COUNT];
    double mean = NAN, size = 0;
    const bool has_classes = call->operand[ONEPASS_TARGET]->dtype == ONEPASS_I64;
    oracle_answer_rows(&(oracle_rows){.loss = call->loss,
                                      .rows = ROWS,
                                      .classes = ELEMENTS,
                                      .input = operands[ONEPASS_PREDICTION].number,
                                      .label = has_classes ? operands[ONEPASS_TARGET].data.class : NULL,
                                      .probability = has_classes ? NULL : operands[ONEPASS_TARGET].number,
                                      .value = &mean,
                                      .row_value_size = row_size,
                                      .gradient = {slope},
                                      .gradient_size = slope_size});
    for (int row = 0; row < ROWS; row++)
        size += row_size[row] / ROWS;
    errors->value = fabs((double)value - mean) / unit_of(size);
    for (int i = 0; i < COUNT; i++)
        errors->gradient = worse(fabs((double)gradient[i] - slope[i]) / unit_of(slope_size[i]), errors->gradient);
    return errors_are_small(onepass_loss_named(call->loss), *errors);
}

static bool is_within(float got, oracle_range range) {
    return got >= (float)range.least && got <= (float)range.most;
}

/* Of a row. */
static bool check_gradient(const float *got, const oracle_range *range, const double *slope, errors *errors) {
    double largest = 0;
    bool right = true;
    for (int i = 0; i < ELEMENTS; i++)
        largest = fmax(largest, fabs(slope[i]));
    for (int i = 0; i < ELEMENTS; i++) {
        errors->gradient = worse(fabs((double)got[i] * ROWS - slope[i]) / unit_of(largest), errors->gradient);
        right = right && is_within(got[i], range[i]);
    }
    return right;
}

static bool check_vector_loss(const onepass_call *call, errors *errors) {
    static double row_value[ROWS], slope[COUNT];
    static oracle_range range[COUNT];
    static unsigned char at_kink[ROWS];
    oracle_range mean = {NAN, NAN};
    oracle_vectors question = {.loss = call->loss,
                               .in_float = 1,
                               .rows = ROWS,
                               .elements = ELEMENTS,
                               .value = &mean,
                               .gradient = {range},
                               .exact_value = row_value,
                               .exact_slope = {slope},
                               .at_kink = at_kink};
    for (int i = 0; i < ORACLE_OPERANDS; i++)
        question.operand[i] = call->operand[i] ? operands[i].number : NULL;
    oracle_answer_vectors(&question);
    double sum = 0, size = 0;
    bool right = is_within(value, mean);
    for (int row = 0; row < ROWS; row++) {
        const int first = row * ELEMENTS;
        sum += row_value[row];
        size += fabs(row_value[row]);
        if (!at_kink[row]) /* where rounding decides which of two gradients is right */
            right = check_gradient(gradient + first, range + first, slope + first, errors) && right;
    }
    errors->value = fabs((double)value - sum / ROWS) / unit_of(size / ROWS);
    return right;
}

/* ------------------------------------------------------------ the table -- */

/* Class weights are left out. */
static bool check_loss(const onepass_loss_info *loss, check *check, bool has_state,
                       const onepass_machine_info *machine) {
    static double state[ROWS * ONEPASS_ROW_STATE];
    static const int64_t state_shape[] = {ROWS, ONEPASS_ROW_STATE};
    const onepass_tensor value_tensor = {&value, ONEPASS_F32, 0, NULL, NULL};
    const onepass_tensor gradient_tensor = {gradient, ONEPASS_F32, 2, shape, NULL};
    const onepass_tensor state_tensor = {state, ONEPASS_F64, 2, state_shape, NULL};
    onepass_call call = ONEPASS_CALL_INIT;
    show_progress(loss->name);
    call.loss = loss->name;
    for (int i = 0; i < loss->operand_count && strcmp(loss->operand[i], "class_weight"); i++) {
        fill(&operands[i], kind_of(loss, i), (uint64_t)i);
        call.operand[i] = &operands[i].tensor;
    }
    call.value = &value_tensor;
    call.gradient[ONEPASS_PREDICTION] = &gradient_tensor;
    call.row_state = has_state ? &state_tensor : NULL;
    call.threads = 1;
    must(onepass_run(&call));
    errors errors = {0, 0};
    const bool right = check(&call, &errors);
    return show_checked(&call, errors, right, machine);
}

bool check_rows(const onepass_machine_info *machine) {
    bool right = true;
    const onepass_loss_info *loss;
    printf(
        "\nLosses of a row of numbers, and of vectors, for %d rows of %d: against their formulas in twice double\n"
        "precision, as the tests have them. The error of a gradient is in units of the numbers that it is a sum of;\n"
        "of vectors, of the largest gradient of the row. Backward is also computed from what forward kept.\n\n",
        ROWS, ELEMENTS);
    show_heading(machine);
    for (int32_t i = 0; (loss = onepass_row_loss_at(i)); i++) {
        const bool has_state = strcmp(loss->name, "nll"); /* which takes its numbers as they are */
        right = check_loss(loss, check_row_loss, has_state, machine) && right;
    }
    for (int32_t i = 0; (loss = onepass_vector_loss_at(i)); i++)
        right = check_loss(loss, check_vector_loss, false, machine) && right;
    return right;
}
