/*
 * Bad arguments of losses over rows: each is refused with the right status and a sentence that names what was wrong,
 * and nothing is written. And good ones that look odd.
 */
#include <onepass.h>

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "check.h"
#include "refusals.h"

/* ---------------------------------------------------------------- the good calls -- */

static void place_row_tensor(part *part, int32_t dtype, int32_t ndim, int64_t first, int64_t second) {
    place_tensor(part, ndim);
    part->tensor.dtype = dtype;
    part->shape[0] = first;
    part->shape[1] = second;
}

/* Two rows of three classes, everything wanted. */
static scene *label_scene(void) {
    scene *s = good_scene();
    s->call.loss = "cross_entropy";
    place_row_tensor(&s->target, ONEPASS_I64, 1, 2, 1);
    place_row_tensor(&s->third, ONEPASS_F32, 1, 3, 1);
    place_row_tensor(&s->weight, ONEPASS_F32, 1, 2, 1);
    place_row_tensor(&s->mask, ONEPASS_BOOL, 1, 2, 1);
    place_row_tensor(&s->log_sum_exp, ONEPASS_F32, 1, 2, 1);
    place_row_tensor(&s->predicted, ONEPASS_I64, 1, 2, 1);
    place_row_tensor(&s->row_state, ONEPASS_F64, 2, 2, ONEPASS_ROW_STATE);
    place_row_tensor(&s->divided_by, ONEPASS_F64, 0, 1, 1);
    place_row_tensor(&s->divisor, ONEPASS_F64, 0, 1, 1);
    memcpy(s->target.memory, (int64_t[]){2, 0}, 2 * sizeof(int64_t));
    memcpy(s->third.memory, (float[]){1, 1, 1}, 3 * sizeof(float));
    memcpy(s->weight.memory, (float[]){1, 1}, 2 * sizeof(float));
    memcpy(s->mask.memory, (char[]){1, 1}, 2);
    memcpy(s->divisor.memory, (double[]){4}, sizeof(double));
    s->call.gradient[1] = NULL;
    s->call.operand[ONEPASS_CLASS_WEIGHT] = &s->third.tensor;
    s->call.log_sum_exp = &s->log_sum_exp.tensor;
    s->call.predicted = &s->predicted.tensor;
    s->call.row_state = &s->row_state.tensor;
    s->call.divided_by = &s->divided_by.tensor;
    return s;
}

static scene *probability_scene(void) {
    scene *s = label_scene();
    s->call.loss = "cross_entropy_with_probabilities";
    place_row_tensor(&s->target, ONEPASS_F32, 2, 2, 3);
    memcpy(s->target.memory, (float[]){0.5f, 0.25f, 0.25f, 1, 0, 0}, 6 * sizeof(float));
    s->call.gradient[1] = &s->gradient_t.tensor;
    return s;
}

static scene *picked_scene(void) {
    scene *s = label_scene();
    s->call.loss = "nll";
    s->call.log_sum_exp = s->call.row_state = NULL;
    return s;
}

/* ---------------------------------------------------------------- the call -- */

#define PARAMETER(k, number) INTEGER(call.parameter_count, (k) + 1), REAL(call.parameter[k], number)

static const argument_case call_cases[] = {
    {"the good call", ONEPASS_OK, "", {{0}}},
    {"the good call in place", ONEPASS_OK, "", {MEMBER(call.gradient[0], prediction.tensor)}},
    {"an expected upstream gradient", ONEPASS_OK, "", {REAL(call.expected_upstream, -0.5)}},
    {"an expected upstream gradient that is none",
     ONEPASS_INVALID_ARGUMENT,
     "expected_upstream is nan|finite",
     {REAL(call.expected_upstream, NAN)}},
    {"an infinite one",
     ONEPASS_INVALID_ARGUMENT,
     "expected_upstream is -inf|finite",
     {REAL(call.expected_upstream, -INFINITY)}},
    {"no outputs but the gradient",
     ONEPASS_OK,
     "",
     {NOTHING(call.value), NOTHING(call.log_sum_exp), NOTHING(call.predicted), NOTHING(call.row_state)}},

    /* The axis. */
    {"axis 2", ONEPASS_OK, "", {INTEGER(call.axis, 2)}},
    {"axis -1", ONEPASS_OK, "", {INTEGER(call.axis, -1)}},
    {"axis 3", ONEPASS_INVALID_SHAPE, "axis|3|input|2 dimensions", {INTEGER(call.axis, 3)}},
    {"axis -3", ONEPASS_INVALID_SHAPE, "axis|-3|input", {INTEGER(call.axis, -3)}},
    {"axis greatest", ONEPASS_INVALID_SHAPE, "axis|2147483647", {INTEGER(call.axis, INT32_MAX)}},
    {"axis least", ONEPASS_INVALID_SHAPE, "axis|-2147483648", {INTEGER(call.axis, INT32_MIN)}},
    {"axis 1, whose rows are three", ONEPASS_INVALID_SHAPE, "target|(2,)|(3,)", {INTEGER(call.axis, 1)}},
    {"axis -2, whose rows are three", ONEPASS_INVALID_SHAPE, "target|(2,)|(3,)", {INTEGER(call.axis, -2)}},
    {"reserved", ONEPASS_NOT_SUPPORTED, "reserved|1", {INTEGER(call.reserved, 1)}},

    /* What is missing. */
    {"no input", ONEPASS_INVALID_ARGUMENT, "operand[0]|input|null", {NOTHING(call.operand[0])}},
    {"no target", ONEPASS_INVALID_ARGUMENT, "operand[1]|target|null", {NOTHING(call.operand[1])}},
    {"no class weights", ONEPASS_OK, "", {NOTHING(call.operand[2])}},
    {"a fourth operand", ONEPASS_NOT_SUPPORTED, "operand[3]", {MEMBER(call.operand[3], weight.tensor)}},
    {"a fourth gradient", ONEPASS_NOT_SUPPORTED, "gradient[3]", {MEMBER(call.gradient[3], gradient_v.tensor)}},
    {"log_sum_exp without value",
     ONEPASS_INVALID_ARGUMENT,
     "log_sum_exp|value",
     {NOTHING(call.value), NOTHING(call.predicted)}},
    {"predicted without value",
     ONEPASS_INVALID_ARGUMENT,
     "predicted|value",
     {NOTHING(call.value), NOTHING(call.log_sum_exp)}},
    {"a gradient for labels",
     ONEPASS_INVALID_ARGUMENT,
     "gradient[1]|class indices",
     {MEMBER(call.gradient[1], gradient_t.tensor)}},
    {"a gradient for class weights",
     ONEPASS_NOT_SUPPORTED,
     "gradient[2]|class weights",
     {MEMBER(call.gradient[2], gradient_v.tensor)}},

    /* The divisor. */
    {"divisor_tensor", ONEPASS_OK, "", {MEMBER(call.divisor_tensor, divisor.tensor)}},
    {"divisor and divisor_tensor",
     ONEPASS_INVALID_ARGUMENT,
     "divisor_tensor|divisor",
     {MEMBER(call.divisor_tensor, divisor.tensor), REAL(call.divisor, 2)}},
    {"divisor_tensor and ONEPASS_OVER_ELEMENTS",
     ONEPASS_INVALID_ARGUMENT,
     "divisor_tensor|ONEPASS_OVER_ELEMENTS",
     {MEMBER(call.divisor_tensor, divisor.tensor), INTEGER(call.flags, ONEPASS_OVER_ELEMENTS)}},
    {"divisor_tensor of a sum",
     ONEPASS_INVALID_ARGUMENT,
     "divisor_tensor|mean",
     {MEMBER(call.divisor_tensor, divisor.tensor), INTEGER(call.reduction, ONEPASS_SUM)}},
    {"divided_by of a sum", ONEPASS_INVALID_ARGUMENT, "divided_by|mean", {INTEGER(call.reduction, ONEPASS_SUM)}},
    {"divided_by of a batchmean",
     ONEPASS_INVALID_ARGUMENT,
     "divided_by|mean",
     {INTEGER(call.reduction, ONEPASS_BATCHMEAN)}},
    {"divisor negative", ONEPASS_INVALID_ARGUMENT, "divisor|-1", {REAL(call.divisor, -1)}},
    {"divisor NaN", ONEPASS_INVALID_ARGUMENT, "divisor", {REAL(call.divisor, NAN)}},
    {"skipping with a value",
     ONEPASS_INVALID_ARGUMENT,
     "value|ONEPASS_SKIP_IF_UPSTREAM_IS_ONE",
     {INTEGER(call.flags, ONEPASS_SKIP_IF_UPSTREAM_IS_ONE)}},

    /* Parameters. */
    {"a sixth parameter", ONEPASS_INVALID_ARGUMENT, "parameter|cross_entropy|6", {INTEGER(call.parameter_count, 6)}},
    {"ignore_index of a half", ONEPASS_INVALID_ARGUMENT, "ignore_index|0.5|whole", {PARAMETER(0, 0.5)}},
    {"ignore_index of a large half",
     ONEPASS_INVALID_ARGUMENT,
     "ignore_index|is 12345678.5;|whole number from -2^53 to 2^53",
     {PARAMETER(0, 12345678.5)}},
    {"ignore_index that not every double next to it has",
     ONEPASS_INVALID_ARGUMENT,
     "ignore_index|is 9007199254740994;|at most 9007199254740992",
     {PARAMETER(0, 0x1p53 + 2)}},
    {"ignore_index in no int64", ONEPASS_INVALID_ARGUMENT, "ignore_index", {PARAMETER(0, 1e300)}},
    {"ignore_index NaN", ONEPASS_INVALID_ARGUMENT, "ignore_index|NaN", {PARAMETER(0, NAN)}},
    {"label_smoothing above 1", ONEPASS_INVALID_ARGUMENT, "label_smoothing|1.5", {PARAMETER(1, 1.5)}},
    {"label_smoothing below 0", ONEPASS_INVALID_ARGUMENT, "label_smoothing|-0.5", {PARAMETER(1, -0.5)}},
    {"label_smoothing 1", ONEPASS_OK, "", {PARAMETER(1, 1)}},
    {"z_loss negative", ONEPASS_INVALID_ARGUMENT, "z_loss|-1", {PARAMETER(2, -1)}},
    {"softcap negative", ONEPASS_INVALID_ARGUMENT, "softcap|-1", {PARAMETER(3, -1)}},
    {"softcap no float", ONEPASS_INVALID_ARGUMENT, "softcap|1e+39|at most 1e+30", {PARAMETER(3, 1e39)}},
    {"softcap no float but 0", ONEPASS_INVALID_ARGUMENT, "softcap|1e-50|expected 0, or 1e-30", {PARAMETER(3, 1e-50)}},
    {"softcap nearly a float",
     ONEPASS_INVALID_ARGUMENT,
     "softcap|is 9.99999999e-31;|1e-30 to 1e+30",
     {PARAMETER(3, 9.99999999e-31)}},
    {"softcap infinite", ONEPASS_INVALID_ARGUMENT, "softcap|inf", {PARAMETER(3, INFINITY)}},
    {"temperature 0", ONEPASS_INVALID_ARGUMENT, "temperature|0", {PARAMETER(4, 0)}},
    {"temperature negative", ONEPASS_INVALID_ARGUMENT, "temperature|-2", {PARAMETER(4, -2)}},
    {"temperature NaN", ONEPASS_INVALID_ARGUMENT, "temperature|NaN", {PARAMETER(4, NAN)}},
};

/* ---------------------------------------------------------------- tensors -- */

static const argument_case shape_cases[] = {
    {"an input without dimensions", ONEPASS_INVALID_SHAPE, "input|dimensions", {SHAPE(prediction, 0, 1)}},
    {"an input of one dimension", ONEPASS_INVALID_SHAPE, "target|(2,)", {SHAPE(prediction, 1, 3)}},
    {"an input of labels", ONEPASS_INVALID_ARGUMENT, "input|6", {INTEGER(prediction.tensor.dtype, ONEPASS_I64)}},
    {"an input of bytes", ONEPASS_INVALID_ARGUMENT, "input|8", {INTEGER(prediction.tensor.dtype, ONEPASS_U8)}},
    {"an input of a mask's type",
     ONEPASS_INVALID_ARGUMENT,
     "input|5",
     {INTEGER(prediction.tensor.dtype, ONEPASS_BOOL)}},
    {"more rows than can be counted",
     ONEPASS_INVALID_SHAPE,
     "input|rows",
     {SHAPE(prediction, 3, (int64_t)1 << 40, 0, (int64_t)1 << 40)}},
    {"more elements than can be counted",
     ONEPASS_INVALID_SHAPE,
     "input|63 bits",
     {SHAPE(prediction, 3, (int64_t)1 << 40, 3, (int64_t)1 << 40)}},

    {"a target of floats",
     ONEPASS_INVALID_ARGUMENT,
     "target|class indices|cross_entropy_with_probabilities",
     {INTEGER(target.tensor.dtype, ONEPASS_F32)}},
    {"a target of a mask's type", ONEPASS_INVALID_ARGUMENT, "target|5", {INTEGER(target.tensor.dtype, ONEPASS_BOOL)}},
    {"a target of no type", ONEPASS_INVALID_ARGUMENT, "target|9", {INTEGER(target.tensor.dtype, 9)}},
    {"a target of three", ONEPASS_INVALID_SHAPE, "target|(3,)|(2,)", {SHAPE(target, 1, 3)}},
    {"a target of one", ONEPASS_INVALID_SHAPE, "target|(1,)|(2,)", {SHAPE(target, 1, 1)}},
    {"a target that would broadcast", ONEPASS_INVALID_SHAPE, "target|(2, 1)|(2,)", {SHAPE(target, 2, 2, 1)}},
    {"a target of the input's shape", ONEPASS_INVALID_SHAPE, "target|(2, 3)|(2,)", {SHAPE(target, 2, 2, 3)}},
    {"a target without dimensions", ONEPASS_INVALID_SHAPE, "target|()|(2,)", {SHAPE(target, 0, 1)}},
    {"a target that is misaligned",
     ONEPASS_INVALID_MEMORY,
     "target|misaligned",
     {MEMBER(target.tensor.data, target.memory[4])}},
    {"a target nowhere", ONEPASS_INVALID_ARGUMENT, "target|null", {NOTHING(target.tensor.data)}},

    {"class weights for two", ONEPASS_INVALID_SHAPE, "class_weight|(2,)|(3,)", {SHAPE(third, 1, 2)}},
    {"class weights of two dimensions", ONEPASS_INVALID_SHAPE, "class_weight|(3, 1)|(3,)", {SHAPE(third, 2, 3, 1)}},
    {"one class weight", ONEPASS_INVALID_SHAPE, "class_weight|()|(3,)", {SHAPE(third, 0, 1)}},
    {"class weights of integers",
     ONEPASS_INVALID_ARGUMENT,
     "class_weight|7",
     {INTEGER(third.tensor.dtype, ONEPASS_I32)}},
    {"weights for three", ONEPASS_INVALID_SHAPE, "weight|(3,)|(2,)", {SHAPE(weight, 1, 3)}},
    {"weights for classes", ONEPASS_INVALID_SHAPE, "weight|(2, 3)|(2,)", {SHAPE(weight, 2, 2, 3)}},
    {"one weight", ONEPASS_OK, "", {SHAPE(weight, 0, 1)}},
    {"a mask for three", ONEPASS_INVALID_SHAPE, "mask|(3,)|(2,)", {SHAPE(mask, 1, 3)}},
    {"a mask of integers", ONEPASS_INVALID_ARGUMENT, "mask|8", {INTEGER(mask.tensor.dtype, ONEPASS_U8)}},
    {"an upstream gradient a row", ONEPASS_INVALID_SHAPE, "upstream|(2,)|one element", {SHAPE(upstream, 1, 2)}},

    {"a value a row of a mean", ONEPASS_INVALID_SHAPE, "value|(2,)|one element", {SHAPE(value, 1, 2)}},
    {"one value of none",
     ONEPASS_INVALID_SHAPE,
     "value|()|(2,)",
     {INTEGER(call.reduction, ONEPASS_NONE), NOTHING(call.upstream), NOTHING(call.divided_by)}},
    {"a value a class of none",
     ONEPASS_INVALID_SHAPE,
     "value|(2, 3)|(2,)",
     {INTEGER(call.reduction, ONEPASS_NONE), NOTHING(call.upstream), NOTHING(call.divided_by), SHAPE(value, 2, 2, 3)}},
    {"a value of labels", ONEPASS_INVALID_ARGUMENT, "value|6", {INTEGER(value.tensor.dtype, ONEPASS_I64)}},
    {"a gradient of the rows' shape", ONEPASS_INVALID_SHAPE, "gradient[0]|(2,)|(2, 3)", {SHAPE(gradient_p, 1, 2)}},
    {"a gradient transposed", ONEPASS_INVALID_SHAPE, "gradient[0]|(3, 2)|(2, 3)", {SHAPE(gradient_p, 2, 3, 2)}},
    {"a gradient of labels",
     ONEPASS_INVALID_ARGUMENT,
     "gradient[0]|6",
     {INTEGER(gradient_p.tensor.dtype, ONEPASS_I64)}},
    {"a gradient whose classes are one", ONEPASS_INVALID_MEMORY, "gradient[0]|overlap", {STRIDES(gradient_p, 3, 0)}},
    {"a gradient whose rows are one", ONEPASS_INVALID_MEMORY, "gradient[0]|overlap", {STRIDES(gradient_p, 0, 1)}},
    {"log_sum_exp of one", ONEPASS_INVALID_SHAPE, "log_sum_exp|()|(2,)", {SHAPE(log_sum_exp, 0, 1)}},
    {"log_sum_exp of labels",
     ONEPASS_INVALID_ARGUMENT,
     "log_sum_exp|6",
     {INTEGER(log_sum_exp.tensor.dtype, ONEPASS_I64)}},
    {"log_sum_exp whose rows are one", ONEPASS_INVALID_MEMORY, "log_sum_exp|overlap", {STRIDES(log_sum_exp, 0)}},
    {"predicted of floats", ONEPASS_INVALID_ARGUMENT, "predicted|3", {INTEGER(predicted.tensor.dtype, ONEPASS_F32)}},
    {"predicted of i32", ONEPASS_INVALID_ARGUMENT, "predicted|7", {INTEGER(predicted.tensor.dtype, ONEPASS_I32)}},
    {"predicted of three", ONEPASS_INVALID_SHAPE, "predicted|(3,)|(2,)", {SHAPE(predicted, 1, 3)}},
    {"predicted whose rows are one", ONEPASS_INVALID_MEMORY, "predicted|overlap", {STRIDES(predicted, 0)}},
    {"row_state of four", ONEPASS_INVALID_SHAPE, "row_state|(2, 4)|(2, 5)", {SHAPE(row_state, 2, 2, 4)}},
    {"row_state of three rows", ONEPASS_INVALID_SHAPE, "row_state|(3, 5)|(2, 5)", {SHAPE(row_state, 2, 3, 5)}},
    {"row_state of one dimension", ONEPASS_INVALID_SHAPE, "row_state|(10,)|(2, 5)", {SHAPE(row_state, 1, 10)}},
    {"row_state of floats",
     ONEPASS_INVALID_ARGUMENT,
     "row_state|dtype 3|F64",
     {INTEGER(row_state.tensor.dtype, ONEPASS_F32)}},
    {"row_state with gaps", ONEPASS_INVALID_SHAPE, "row_state|gaps", {STRIDES(row_state, 6, 1)}},
    {"row_state transposed", ONEPASS_INVALID_SHAPE, "row_state|gaps", {STRIDES(row_state, 1, 2)}},
    {"divided_by of two", ONEPASS_INVALID_SHAPE, "divided_by|(2,)|one element", {SHAPE(divided_by, 1, 2)}},
    {"divided_by of labels", ONEPASS_INVALID_ARGUMENT, "divided_by|6", {INTEGER(divided_by.tensor.dtype, ONEPASS_I64)}},
    {"divisor_tensor of two",
     ONEPASS_INVALID_SHAPE,
     "divisor_tensor|(2,)|one element",
     {MEMBER(call.divisor_tensor, divisor.tensor), SHAPE(divisor, 1, 2)}},
    {"divisor_tensor of integers",
     ONEPASS_INVALID_ARGUMENT,
     "divisor_tensor|6",
     {MEMBER(call.divisor_tensor, divisor.tensor), INTEGER(divisor.tensor.dtype, ONEPASS_I64)}},
};

/* Of probabilities. */
static const argument_case probability_cases[] = {
    {"the good call", ONEPASS_OK, "", {{0}}},
    {"both in place",
     ONEPASS_OK,
     "",
     {MEMBER(call.gradient[0], prediction.tensor), MEMBER(call.gradient[1], target.tensor)}},
    {"probabilities of labels", ONEPASS_INVALID_ARGUMENT, "target|6", {INTEGER(target.tensor.dtype, ONEPASS_I64)}},
    {"probabilities of the rows' shape", ONEPASS_INVALID_SHAPE, "target|(2,)|(2, 3)", {SHAPE(target, 1, 2)}},
    {"probabilities that would broadcast", ONEPASS_INVALID_SHAPE, "target|(1, 3)|(2, 3)", {SHAPE(target, 2, 1, 3)}},
    {"a gradient for them of another shape",
     ONEPASS_INVALID_SHAPE,
     "gradient[1]|(3, 2)|(2, 3)",
     {SHAPE(gradient_t, 2, 3, 2)}},
    {"a fifth parameter", ONEPASS_INVALID_ARGUMENT, "parameter|5", {INTEGER(call.parameter_count, 5)}},
    {"label_smoothing above 1", ONEPASS_INVALID_ARGUMENT, "label_smoothing|2", {PARAMETER(0, 2)}},
    {"gradients over each other's operands",
     ONEPASS_INVALID_MEMORY,
     "gradient|overlaps",
     {MEMBER(call.gradient[0], target.tensor), MEMBER(call.gradient[1], prediction.tensor)}},
};

/* Of the negative log-likelihood, which has no softmax. */
static const argument_case picked_cases[] = {
    {"the good call", ONEPASS_OK, "", {{0}}},
    {"log_sum_exp",
     ONEPASS_INVALID_ARGUMENT,
     "log_sum_exp|nll|softmax",
     {MEMBER(call.log_sum_exp, log_sum_exp.tensor)}},
    {"row_state", ONEPASS_INVALID_ARGUMENT, "row_state|nll|softmax", {MEMBER(call.row_state, row_state.tensor)}},
    {"a second parameter", ONEPASS_INVALID_ARGUMENT, "parameter|nll|2", {INTEGER(call.parameter_count, 2)}},
};

/* Of a loss whose every element has a value. */
static const argument_case pairwise_cases[] = {
    {"axis", ONEPASS_INVALID_ARGUMENT, "axis|mse", {INTEGER(call.axis, 1)}},
    {"log_sum_exp", ONEPASS_INVALID_ARGUMENT, "log_sum_exp|mse", {MEMBER(call.log_sum_exp, third.tensor)}},
    {"predicted", ONEPASS_INVALID_ARGUMENT, "predicted|mse", {MEMBER(call.predicted, third.tensor)}},
    {"row_state", ONEPASS_INVALID_ARGUMENT, "row_state|mse", {MEMBER(call.row_state, third.tensor)}},
    {"reserved", ONEPASS_INVALID_ARGUMENT, "reserved|mse", {INTEGER(call.reserved, 1)}},
    {"a target of labels", ONEPASS_INVALID_ARGUMENT, "target|6", {INTEGER(target.tensor.dtype, ONEPASS_I64)}},
};

/* ---------------------------------------------------------------- overlaps -- */

static void test_overlaps(void) {
    static const named_part outputs[] = {PART("value", value),
                                         GRADIENT("gradient[0]", gradient_p, prediction),
                                         PART("log_sum_exp", log_sum_exp),
                                         PART("predicted", predicted),
                                         PART("row_state", row_state),
                                         PART("divided_by", divided_by)},
                            inputs[] = {
                                PART("input", prediction),      PART("target", target), PART("class_weight", third),
                                PART("weight", weight),         PART("mask", mask),     PART("upstream", upstream),
                                PART("divisor_tensor", divisor)};
    expect_overlaps(label_scene, outputs, COUNT(outputs), inputs, COUNT(inputs));
}

/* A row's state that is an input must not be an output. */
static void test_state_as_input(void) {
    scene *s = label_scene();
    HOLDS(onepass_run(&s->call) == ONEPASS_OK);
    s->call.value = s->call.log_sum_exp = s->call.predicted = NULL;
    HOLDS(onepass_run(&s->call) == ONEPASS_OK);
    s->gradient_p.tensor.data = s->row_state.memory;
    expect_refusal(onepass_run(&s->call), ONEPASS_INVALID_MEMORY, "overlaps|row_state",
                   "a gradient over the rows' state");
}

/* ---------------------------------------------------------------- parameters -- */

static scene *scene_of(const onepass_loss_info *info) {
    return info->over_rows == ONEPASS_CLASS_PROBABILITIES ? probability_scene() : picked_scene();
}

/* What a loss says of itself is what a call finds. */
static void expect_log_sum_exp(const onepass_loss_info *info) {
    scene *s = scene_of(info);
    s->call.loss = info->name;
    s->call.log_sum_exp = &s->log_sum_exp.tensor;
    const onepass_status status = onepass_run(&s->call);
    HOLDS(status == (info->has_log_sum_exp ? ONEPASS_OK : ONEPASS_INVALID_ARGUMENT));
}

static void test_limits_of_parameters(void) {
    int32_t count = 0;
    for (const onepass_loss_info *info; (info = onepass_row_loss_at(count)) != NULL; count++) {
        HOLDS(onepass_loss_named(info->name) == info);
        HOLDS(info->over_rows == ONEPASS_CLASS_INDEX || info->over_rows == ONEPASS_CLASS_PROBABILITIES);
        HOLDS(info->operand_count == 3 && strcmp(info->operand[0], "input") == 0);
        HOLDS(info->meaning[0] != '\0' && info->value[0] != '\0' && info->slope[0] != '\0');
        expect_limits_of_parameters(scene_of, info);
        expect_log_sum_exp(info);
    }
    HOLDS(count >= 4);
    HOLDS(onepass_row_loss_at(-1) == NULL && onepass_row_loss_at(INT32_MAX) == NULL);
    for (int32_t i = 0; onepass_loss_at(i) != NULL; i++)
        HOLDS(onepass_loss_at(i)->over_rows == 0 && onepass_loss_at(i)->has_log_sum_exp == 0);
}

int main(void) {
    run_cases(label_scene, call_cases, COUNT(call_cases), 0, "");
    run_cases(label_scene, shape_cases, COUNT(shape_cases), 0, "");
    run_cases(probability_scene, probability_cases, COUNT(probability_cases), 0, "");
    run_cases(picked_scene, picked_cases, COUNT(picked_cases), 0, "");
    run_cases(good_scene, pairwise_cases, COUNT(pairwise_cases), 0, "");
    test_overlaps();
    test_state_as_input();
    test_limits_of_parameters();
    return check_finish();
}
