/*
 * Bad arguments of vector losses: each is refused with the right status and a sentence that names what was wrong, and
 * nothing is written. And good ones that look odd.
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

/* Two rows of three elements, everything wanted. */
static scene *pair_scene(void) {
    scene *s = good_scene();
    s->call.loss = "cosine_similarity";
    place_row_tensor(&s->weight, ONEPASS_F32, 1, 2, 1);
    place_row_tensor(&s->mask, ONEPASS_BOOL, 1, 2, 1);
    place_row_tensor(&s->divided_by, ONEPASS_F64, 0, 1, 1);
    place_row_tensor(&s->divisor, ONEPASS_F64, 0, 1, 1);
    place_row_tensor(&s->log_sum_exp, ONEPASS_F32, 1, 2, 1);
    place_row_tensor(&s->predicted, ONEPASS_I64, 1, 2, 1);
    place_row_tensor(&s->row_state, ONEPASS_F64, 2, 2, ONEPASS_ROW_STATE);
    memcpy(s->weight.memory, (float[]){1, 1}, 2 * sizeof(float));
    memcpy(s->mask.memory, (char[]){1, 1}, 2);
    memcpy(s->divisor.memory, (double[]){4}, sizeof(double));
    s->call.divided_by = &s->divided_by.tensor;
    return s;
}

static scene *distance_scene(void) {
    scene *s = pair_scene();
    s->call.loss = "pairwise_distance";
    return s;
}

static scene *overlap_scene(void) {
    scene *s = pair_scene();
    s->call.loss = "tversky";
    return s;
}

static scene *embedding_scene(void) {
    scene *s = pair_scene();
    s->call.loss = "cosine_embedding";
    place_row_tensor(&s->third, ONEPASS_F32, 1, 2, 1);
    memcpy(s->third.memory, (float[]){1, -1}, 2 * sizeof(float));
    s->call.operand[2] = &s->third.tensor;
    return s;
}

/* The second of the classes, and the last. */
static scene *label_scene(void) {
    scene *s = pair_scene();
    s->call.loss = "multi_margin";
    place_row_tensor(&s->target, ONEPASS_I64, 1, 2, 1);
    memcpy(s->target.memory, (int64_t[]){1, 2}, 2 * sizeof(int64_t));
    s->call.gradient[1] = NULL;
    return s;
}

static scene *class_weight_scene(void) {
    scene *s = label_scene();
    place_row_tensor(&s->third, ONEPASS_F32, 1, 3, 1);
    memcpy(s->third.memory, (float[]){1, 2, 0.5f}, 3 * sizeof(float));
    s->call.operand[2] = &s->third.tensor;
    return s;
}

/* Lists of labels: the second of the classes, and the last and the first. */
static scene *label_list_scene(void) {
    scene *s = pair_scene();
    s->call.loss = "multilabel_margin";
    place_row_tensor(&s->target, ONEPASS_I32, 2, 2, 3);
    memcpy(s->target.memory, (int32_t[]){1, -1, 2, 2, 0, -1}, 6 * sizeof(int32_t));
    s->call.gradient[1] = NULL;
    return s;
}

/* Beyond the classes, behind the last label of the second row. */
static scene *wrong_label_list_scene(void) {
    scene *s = label_list_scene();
    memcpy(s->target.memory, (int32_t[]){1, -1, 2, 2, -1, 3}, 6 * sizeof(int32_t));
    return s;
}

static scene *hidden_label_list_scene(void) {
    scene *s = wrong_label_list_scene();
    memcpy(s->mask.memory, (char[]){1, 0}, 2);
    return s;
}

/* Labels that are no classes, in the second row. */
static scene *wrong_label_scene(void) {
    scene *s = label_scene();
    memcpy(s->target.memory, (int64_t[]){0, 3}, 2 * sizeof(int64_t));
    return s;
}

static scene *negative_label_scene(void) {
    scene *s = label_scene();
    memcpy(s->target.memory, (int64_t[]){0, -1}, 2 * sizeof(int64_t));
    return s;
}

static scene *hidden_label_scene(void) {
    scene *s = wrong_label_scene();
    memcpy(s->mask.memory, (char[]){1, 0}, 2);
    return s;
}

static scene *triplet_scene(void) {
    scene *s = pair_scene();
    s->call.loss = "triplet_margin";
    s->call.operand[2] = &s->third.tensor;
    s->call.gradient[2] = &s->gradient_v.tensor;
    return s;
}

/* ---------------------------------------------------------------- the call -- */

#define PARAMETER(k, number) INTEGER(call.parameter_count, (k) + 1), REAL(call.parameter[k], number)

static const argument_case call_cases[] = {
    {"the good call", ONEPASS_OK, "", {{0}}},
    {"the good call in place", ONEPASS_OK, "", {MEMBER(call.gradient[0], prediction.tensor)}},
    {"both in place",
     ONEPASS_OK,
     "",
     {MEMBER(call.gradient[0], prediction.tensor), MEMBER(call.gradient[1], target.tensor)}},
    {"no outputs but a gradient",
     ONEPASS_OK,
     "",
     {NOTHING(call.value), NOTHING(call.gradient[0]), NOTHING(call.divided_by)}},
    {"no outputs but the value", ONEPASS_OK, "", {NOTHING(call.gradient[0]), NOTHING(call.gradient[1])}},

    /* The axis. */
    {"axis 2", ONEPASS_OK, "", {INTEGER(call.axis, 2)}},
    {"axis -1", ONEPASS_OK, "", {INTEGER(call.axis, -1)}},
    {"axis 3", ONEPASS_INVALID_SHAPE, "axis|3|2 dimensions", {INTEGER(call.axis, 3)}},
    {"axis -3", ONEPASS_INVALID_SHAPE, "axis|-3", {INTEGER(call.axis, -3)}},
    {"axis greatest", ONEPASS_INVALID_SHAPE, "axis|2147483647", {INTEGER(call.axis, INT32_MAX)}},
    {"axis least", ONEPASS_INVALID_SHAPE, "axis|-2147483648", {INTEGER(call.axis, INT32_MIN)}},
    {"axis 1, of which there is one row", ONEPASS_INVALID_SHAPE, "weight|(2,)", {INTEGER(call.axis, 1)}},
    {"axis 1 without weight and mask",
     ONEPASS_OK,
     "",
     {INTEGER(call.axis, 1), NOTHING(call.weight), NOTHING(call.mask)}},
    {"axis -2 without weight and mask",
     ONEPASS_OK,
     "",
     {INTEGER(call.axis, -2), NOTHING(call.weight), NOTHING(call.mask)}},
    {"reserved", ONEPASS_INVALID_ARGUMENT, "reserved|cosine_similarity", {INTEGER(call.reserved, 1)}},

    /* What is missing, and what is too much. */
    {"no first operand", ONEPASS_INVALID_ARGUMENT, "operand[0]|null", {NOTHING(call.operand[0])}},
    {"no second operand", ONEPASS_INVALID_ARGUMENT, "operand[1]|null", {NOTHING(call.operand[1])}},
    {"a third operand", ONEPASS_NOT_SUPPORTED, "operand[2]", {MEMBER(call.operand[2], third.tensor)}},
    {"a fourth operand", ONEPASS_NOT_SUPPORTED, "operand[3]", {MEMBER(call.operand[3], third.tensor)}},
    {"a third gradient", ONEPASS_NOT_SUPPORTED, "gradient[2]", {MEMBER(call.gradient[2], gradient_v.tensor)}},
    {"nothing wanted",
     ONEPASS_INVALID_ARGUMENT,
     "value|gradient",
     {NOTHING(call.value), NOTHING(call.gradient[0]), NOTHING(call.gradient[1]), NOTHING(call.divided_by)}},
    {"log_sum_exp", ONEPASS_INVALID_ARGUMENT, "log_sum_exp", {MEMBER(call.log_sum_exp, log_sum_exp.tensor)}},
    {"predicted", ONEPASS_INVALID_ARGUMENT, "predicted", {MEMBER(call.predicted, predicted.tensor)}},
    {"row_state", ONEPASS_INVALID_ARGUMENT, "row_state", {MEMBER(call.row_state, row_state.tensor)}},
    {"a reduction that is none", ONEPASS_INVALID_ARGUMENT, "reduction|4", {INTEGER(call.reduction, 4)}},

    /* The divisor. */
    {"divisor", ONEPASS_OK, "", {REAL(call.divisor, 3)}},
    {"divisor_tensor", ONEPASS_OK, "", {MEMBER(call.divisor_tensor, divisor.tensor)}},
    {"divisor and divisor_tensor",
     ONEPASS_INVALID_ARGUMENT,
     "divisor_tensor|divisor",
     {MEMBER(call.divisor_tensor, divisor.tensor), REAL(call.divisor, 2)}},
    {"divisor_tensor of a sum",
     ONEPASS_INVALID_ARGUMENT,
     "divisor_tensor|mean",
     {MEMBER(call.divisor_tensor, divisor.tensor), INTEGER(call.reduction, ONEPASS_SUM)}},
    {"divided_by of a sum", ONEPASS_INVALID_ARGUMENT, "divided_by|mean", {INTEGER(call.reduction, ONEPASS_SUM)}},
    {"divisor negative", ONEPASS_INVALID_ARGUMENT, "divisor|-1", {REAL(call.divisor, -1)}},
    {"divisor NaN", ONEPASS_INVALID_ARGUMENT, "divisor", {REAL(call.divisor, NAN)}},
    {"divisor_tensor of two",
     ONEPASS_INVALID_SHAPE,
     "divisor_tensor|(2,)|one element",
     {MEMBER(call.divisor_tensor, divisor.tensor), SHAPE(divisor, 1, 2)}},
    {"divided_by of two", ONEPASS_INVALID_SHAPE, "divided_by|(2,)|one element", {SHAPE(divided_by, 1, 2)}},

    /* Parameters. */
    {"a second parameter",
     ONEPASS_INVALID_ARGUMENT,
     "parameter|cosine_similarity|2",
     {INTEGER(call.parameter_count, 2)}},
    {"eps negative", ONEPASS_INVALID_ARGUMENT, "eps|-1", {PARAMETER(0, -1)}},
    {"eps NaN", ONEPASS_INVALID_ARGUMENT, "eps|NaN", {PARAMETER(0, NAN)}},
};

static const argument_case distance_cases[] = {
    {"the good call", ONEPASS_OK, "", {{0}}},
    {"p 1", ONEPASS_OK, "", {PARAMETER(0, 1)}},
    {"p 2", ONEPASS_OK, "", {PARAMETER(0, 2)}},
    {"p 3", ONEPASS_INVALID_ARGUMENT, "p|3", {PARAMETER(0, 3)}},
    {"p 0", ONEPASS_INVALID_ARGUMENT, "p|0", {PARAMETER(0, 0)}},
    {"p one and a half", ONEPASS_INVALID_ARGUMENT, "p|1.5", {PARAMETER(0, 1.5)}},
    {"p infinite", ONEPASS_INVALID_ARGUMENT, "p|inf", {PARAMETER(0, INFINITY)}},
    {"p NaN", ONEPASS_INVALID_ARGUMENT, "p|NaN", {PARAMETER(0, NAN)}},
    {"eps NaN", ONEPASS_INVALID_ARGUMENT, "eps|NaN", {PARAMETER(0, 2), PARAMETER(1, NAN)}},
    {"a third parameter",
     ONEPASS_INVALID_ARGUMENT,
     "parameter|pairwise_distance|3",
     {INTEGER(call.parameter_count, 3)}},
};

static const argument_case overlap_cases[] = {
    {"the good call", ONEPASS_OK, "", {{0}}},
    {"alpha NaN", ONEPASS_INVALID_ARGUMENT, "alpha|NaN", {PARAMETER(0, NAN)}},
    {"alpha negative", ONEPASS_INVALID_ARGUMENT, "alpha|-1", {PARAMETER(0, -1)}},
    {"beta negative", ONEPASS_INVALID_ARGUMENT, "beta|-1", {PARAMETER(0, 0.5), PARAMETER(1, -1)}},
    {"smooth negative",
     ONEPASS_INVALID_ARGUMENT,
     "smooth|-1",
     {PARAMETER(0, 0.5), PARAMETER(1, 0.5), PARAMETER(2, -1)}},
    {"a fifth parameter", ONEPASS_INVALID_ARGUMENT, "parameter|tversky|5", {INTEGER(call.parameter_count, 5)}},
};

static const argument_case embedding_cases[] = {
    {"the good call", ONEPASS_OK, "", {{0}}},
    {"margin negative", ONEPASS_OK, "", {PARAMETER(0, -0.5)}},
    {"margin NaN", ONEPASS_INVALID_ARGUMENT, "margin|NaN", {PARAMETER(0, NAN)}},
    {"no target", ONEPASS_INVALID_ARGUMENT, "operand[2]|target|null", {NOTHING(call.operand[2])}},
    {"a target of three", ONEPASS_INVALID_SHAPE, "target|(3,)|(2,)", {SHAPE(third, 1, 3)}},
    {"a target of the operands' shape", ONEPASS_INVALID_SHAPE, "target|(2, 3)|(2,)", {SHAPE(third, 2, 2, 3)}},
    {"a target of a mask's type", ONEPASS_INVALID_ARGUMENT, "target|5", {INTEGER(third.tensor.dtype, ONEPASS_BOOL)}},
    {"a target of no type", ONEPASS_INVALID_ARGUMENT, "target|9", {INTEGER(third.tensor.dtype, 9)}},
    {"a target of i64", ONEPASS_OK, "", {INTEGER(third.tensor.dtype, ONEPASS_I64)}},
    {"a target of i32", ONEPASS_OK, "", {INTEGER(third.tensor.dtype, ONEPASS_I32)}},
    {"a target of u8", ONEPASS_OK, "", {INTEGER(third.tensor.dtype, ONEPASS_U8)}},
    {"a target that is misaligned",
     ONEPASS_INVALID_MEMORY,
     "target|misaligned",
     {MEMBER(third.tensor.data, third.memory[2])}},
    {"a target nowhere", ONEPASS_INVALID_ARGUMENT, "target|null", {NOTHING(third.tensor.data)}},
    {"a gradient for the target",
     ONEPASS_INVALID_ARGUMENT,
     "gradient[2]|target",
     {MEMBER(call.gradient[2], gradient_v.tensor)}},
};

static const argument_case label_cases[] = {
    {"the good call", ONEPASS_OK, "", {{0}}},
    {"in place", ONEPASS_OK, "", {MEMBER(call.gradient[0], prediction.tensor)}},
    {"p 2", ONEPASS_OK, "", {PARAMETER(0, 2)}},
    {"p 3", ONEPASS_INVALID_ARGUMENT, "p|3", {PARAMETER(0, 3)}},
    {"p one and a half", ONEPASS_INVALID_ARGUMENT, "p|1.5", {PARAMETER(0, 1.5)}},
    {"no target", ONEPASS_INVALID_ARGUMENT, "operand[1]|target|null", {NOTHING(call.operand[1])}},
    {"a target of three", ONEPASS_INVALID_SHAPE, "target|(3,)|(2,)", {SHAPE(target, 1, 3)}},
    {"a target of the input's shape", ONEPASS_INVALID_SHAPE, "target|(2, 3)|(2,)", {SHAPE(target, 2, 2, 3)}},
    {"a target of numbers", ONEPASS_INVALID_ARGUMENT, "target|class ind", {INTEGER(target.tensor.dtype, ONEPASS_F32)}},
    {"a target of no type", ONEPASS_INVALID_ARGUMENT, "target|9", {INTEGER(target.tensor.dtype, 9)}},
    {"a gradient for the target",
     ONEPASS_INVALID_ARGUMENT,
     "gradient[1]|target",
     {MEMBER(call.gradient[1], gradient_v.tensor)}},
    {"a fourth operand", ONEPASS_NOT_SUPPORTED, "operand[3]", {MEMBER(call.operand[3], third.tensor)}},
};
/* A weight for each of the three classes. */
static const argument_case class_weight_cases[] = {
    {"the good call", ONEPASS_OK, "", {{0}}},
    {"weights of half", ONEPASS_OK, "", {INTEGER(third.tensor.dtype, ONEPASS_F16)}},
    {"weights of double", ONEPASS_OK, "", {INTEGER(third.tensor.dtype, ONEPASS_F64)}},
    {"without weights of rows", ONEPASS_OK, "", {NOTHING(call.weight)}},
    {"a weight a row", ONEPASS_INVALID_SHAPE, "class_weight|(2,)|(3,)", {SHAPE(third, 1, 2)}},
    {"a weight an element", ONEPASS_INVALID_SHAPE, "class_weight|(2, 3)|(3,)", {SHAPE(third, 2, 2, 3)}},
    {"one weight", ONEPASS_INVALID_SHAPE, "class_weight|()|(3,)", {SHAPE(third, 0, 1)}},
    {"weights of labels", ONEPASS_INVALID_ARGUMENT, "class_weight|6", {INTEGER(third.tensor.dtype, ONEPASS_I64)}},
    {"weights nowhere", ONEPASS_INVALID_ARGUMENT, "class_weight|null", {NOTHING(third.tensor.data)}},
    {"weights that are misaligned",
     ONEPASS_INVALID_MEMORY,
     "class_weight|misaligned",
     {MEMBER(third.tensor.data, third.memory[2])}},
    {"a gradient over them",
     ONEPASS_INVALID_MEMORY,
     "gradient[0]|overlaps|class_weight",
     {MEMBER(gradient_p.tensor.data, third.memory)}},
    {"a gradient for them",
     ONEPASS_INVALID_ARGUMENT,
     "gradient[2]|class_weight",
     {MEMBER(call.gradient[2], gradient_v.tensor)}},
};
static const argument_case wrong_label_cases[] = {
    {"a label beyond the classes", ONEPASS_OUT_OF_BOUNDS, "target|3|row 1|3 classes", {{0}}},
};
static const argument_case negative_label_cases[] = {
    {"a label below 0", ONEPASS_OUT_OF_BOUNDS, "target|-1|row 1|3 classes", {{0}}},
};
static const argument_case hidden_label_cases[] = {
    {"a label beyond the classes that the mask hides", ONEPASS_OK, "", {{0}}},
};

static const argument_case label_list_cases[] = {
    {"the good call", ONEPASS_OK, "", {{0}}},
    {"in place",
     ONEPASS_INVALID_MEMORY,
     "gradient[0]|input|overlaps|multilabel_margin|may not lie over",
     {MEMBER(call.gradient[0], prediction.tensor)}},
    {"no target", ONEPASS_INVALID_ARGUMENT, "operand[1]|target|null", {NOTHING(call.operand[1])}},
    {"a label a row", ONEPASS_INVALID_SHAPE, "target|(2,)|(2, 3)", {SHAPE(target, 1, 2)}},
    {"a target of numbers", ONEPASS_INVALID_ARGUMENT, "target|class ind", {INTEGER(target.tensor.dtype, ONEPASS_F32)}},
    {"a gradient for the target",
     ONEPASS_INVALID_ARGUMENT,
     "gradient[1]|target",
     {MEMBER(call.gradient[1], gradient_v.tensor)}},
    {"class weights", ONEPASS_NOT_SUPPORTED, "operand[2]", {MEMBER(call.operand[2], third.tensor)}},
    {"a parameter", ONEPASS_INVALID_ARGUMENT, "parameter_count|1", {PARAMETER(0, 1)}},
};
static const argument_case wrong_label_list_cases[] = {
    {"a label beyond the classes behind the last", ONEPASS_OUT_OF_BOUNDS, "target 3|row 1|0 to 2|-1", {{0}}},
};

static const argument_case triplet_cases[] = {
    {"the good call", ONEPASS_OK, "", {{0}}},
    {"all in place",
     ONEPASS_OK,
     "",
     {MEMBER(call.gradient[0], prediction.tensor), MEMBER(call.gradient[1], target.tensor),
      MEMBER(call.gradient[2], third.tensor)}},
    {"margin NaN", ONEPASS_INVALID_ARGUMENT, "margin|NaN", {PARAMETER(0, NAN)}},
    {"p 3", ONEPASS_INVALID_ARGUMENT, "p|3", {PARAMETER(0, 1), PARAMETER(1, 3)}},
    {"p one and a half", ONEPASS_INVALID_ARGUMENT, "p|1.5", {PARAMETER(0, 1), PARAMETER(1, 1.5)}},
    {"swap a half",
     ONEPASS_INVALID_ARGUMENT,
     "swap|0.5",
     {REAL(call.parameter[0], 1), REAL(call.parameter[1], 2), PARAMETER(3, 0.5)}},
    {"swap 2",
     ONEPASS_INVALID_ARGUMENT,
     "swap|2",
     {REAL(call.parameter[0], 1), REAL(call.parameter[1], 2), PARAMETER(3, 2)}},
    {"no negative", ONEPASS_INVALID_ARGUMENT, "operand[2]|negative|null", {NOTHING(call.operand[2])}},
    {"a negative that does not broadcast", ONEPASS_INVALID_SHAPE, "negative|(4,)", {SHAPE(third, 1, 4)}},
    {"a negative of labels", ONEPASS_INVALID_ARGUMENT, "negative|6", {INTEGER(third.tensor.dtype, ONEPASS_I64)}},
};

/* ---------------------------------------------------------------- tensors -- */

static const argument_case shape_cases[] = {
    {"operands without dimensions",
     ONEPASS_INVALID_SHAPE,
     "dimensions",
     {SHAPE(prediction, 0, 1), SHAPE(target, 0, 1)}},
    {"operands that do not broadcast", ONEPASS_INVALID_SHAPE, "(2, 4)", {SHAPE(target, 2, 2, 4)}},
    {"operands that do not broadcast either", ONEPASS_INVALID_SHAPE, "(3, 3)", {SHAPE(target, 2, 3, 3)}},
    {"one row for all", ONEPASS_OK, "", {SHAPE(target, 1, 3)}},
    {"one element for all of a row", ONEPASS_OK, "", {SHAPE(target, 2, 2, 1)}},
    {"one number for all", ONEPASS_OK, "", {SHAPE(target, 0, 1)}},
    {"a first operand that is broadcast", ONEPASS_OK, "", {SHAPE(prediction, 1, 3)}},
    {"operands of one dimension",
     ONEPASS_INVALID_SHAPE,
     "weight|(2,)",
     {SHAPE(prediction, 1, 3), SHAPE(target, 1, 3), SHAPE(gradient_p, 1, 3), SHAPE(gradient_t, 1, 3)}},
    {"an operand of labels", ONEPASS_INVALID_ARGUMENT, "6", {INTEGER(prediction.tensor.dtype, ONEPASS_I64)}},
    {"an operand of a mask's type", ONEPASS_INVALID_ARGUMENT, "5", {INTEGER(target.tensor.dtype, ONEPASS_BOOL)}},
    {"an operand that is misaligned",
     ONEPASS_INVALID_MEMORY,
     "misaligned",
     {MEMBER(target.tensor.data, target.memory[2])}},
    {"an operand nowhere", ONEPASS_INVALID_ARGUMENT, "null", {NOTHING(target.tensor.data)}},
    {"more rows than can be counted",
     ONEPASS_INVALID_SHAPE,
     "63 bits",
     {SHAPE(prediction, 3, (int64_t)1 << 40, (int64_t)1 << 40, 3), SHAPE(target, 0, 1)}},

    {"weights for three", ONEPASS_INVALID_SHAPE, "weight|(3,)|(2,)", {SHAPE(weight, 1, 3)}},
    {"weights for elements", ONEPASS_INVALID_SHAPE, "weight|(2, 3)|(2,)", {SHAPE(weight, 2, 2, 3)}},
    {"one weight", ONEPASS_OK, "", {SHAPE(weight, 0, 1)}},
    {"weights of labels", ONEPASS_INVALID_ARGUMENT, "weight|6", {INTEGER(weight.tensor.dtype, ONEPASS_I64)}},
    {"a mask for three", ONEPASS_INVALID_SHAPE, "mask|(3,)|(2,)", {SHAPE(mask, 1, 3)}},
    {"a mask of elements", ONEPASS_INVALID_SHAPE, "mask|(2, 3)|(2,)", {SHAPE(mask, 2, 2, 3)}},
    {"a mask of floats", ONEPASS_INVALID_ARGUMENT, "mask|3", {INTEGER(mask.tensor.dtype, ONEPASS_F32)}},
    {"an upstream gradient a row", ONEPASS_INVALID_SHAPE, "upstream|(2,)|one element", {SHAPE(upstream, 1, 2)}},
    {"one upstream gradient of none",
     ONEPASS_INVALID_SHAPE,
     "upstream|()|(2,)",
     {INTEGER(call.reduction, ONEPASS_NONE), NOTHING(call.divided_by), SHAPE(value, 1, 2)}},

    {"a value a row of a mean", ONEPASS_INVALID_SHAPE, "value|(2,)|one element", {SHAPE(value, 1, 2)}},
    {"one value of none",
     ONEPASS_INVALID_SHAPE,
     "value|()|(2,)",
     {INTEGER(call.reduction, ONEPASS_NONE), NOTHING(call.upstream), NOTHING(call.divided_by)}},
    {"a value an element of none",
     ONEPASS_INVALID_SHAPE,
     "value|(2, 3)|(2,)",
     {INTEGER(call.reduction, ONEPASS_NONE), NOTHING(call.upstream), NOTHING(call.divided_by), SHAPE(value, 2, 2, 3)}},
    {"a value a row of none",
     ONEPASS_OK,
     "",
     {INTEGER(call.reduction, ONEPASS_NONE), NOTHING(call.upstream), NOTHING(call.divided_by), SHAPE(value, 1, 2)}},
    {"a value of labels", ONEPASS_INVALID_ARGUMENT, "value|6", {INTEGER(value.tensor.dtype, ONEPASS_I64)}},

    {"a gradient of the rows' shape", ONEPASS_INVALID_SHAPE, "gradient[0]|(2,)|(2, 3)", {SHAPE(gradient_p, 1, 2)}},
    {"a gradient transposed", ONEPASS_INVALID_SHAPE, "gradient[1]|(3, 2)|(2, 3)", {SHAPE(gradient_t, 2, 3, 2)}},
    {"a gradient of a broadcast operand's shape",
     ONEPASS_INVALID_SHAPE,
     "gradient[1]|(3,)|(2, 3)",
     {SHAPE(target, 1, 3), SHAPE(gradient_t, 1, 3)}},
    {"a gradient of labels",
     ONEPASS_INVALID_ARGUMENT,
     "gradient[0]|6",
     {INTEGER(gradient_p.tensor.dtype, ONEPASS_I64)}},
    {"a gradient whose elements are one", ONEPASS_INVALID_MEMORY, "gradient[0]|overlap", {STRIDES(gradient_p, 3, 0)}},
    {"a gradient whose rows are one", ONEPASS_INVALID_MEMORY, "gradient[1]|overlap", {STRIDES(gradient_t, 0, 1)}},
    {"gradients over each other's operands",
     ONEPASS_INVALID_MEMORY,
     "gradient|overlaps",
     {MEMBER(call.gradient[0], target.tensor), MEMBER(call.gradient[1], prediction.tensor)}},
    {"a gradient over a broadcast operand",
     ONEPASS_INVALID_MEMORY,
     "gradient[1]|overlaps",
     {SHAPE(target, 1, 3), MEMBER(gradient_t.tensor.data, target.memory)}},
};

/* ---------------------------------------------------------------- overlaps -- */

static void test_overlaps(void) {
    static const named_part outputs[] = {PART("value", value), GRADIENT("gradient[0]", gradient_p, prediction),
                                         GRADIENT("gradient[1]", gradient_t, target),
                                         GRADIENT("gradient[2]", gradient_v, third), PART("divided_by", divided_by)},
                            inputs[] = {
                                PART("anchor", prediction),     PART("positive", target), PART("negative", third),
                                PART("weight", weight),         PART("mask", mask),       PART("upstream", upstream),
                                PART("divisor_tensor", divisor)};
    expect_overlaps(triplet_scene, outputs, COUNT(outputs), inputs, COUNT(inputs));
}

/* ---------------------------------------------------------------- messages -- */

/* Class probabilities are no advice to whoever has margins. */
static void test_advice(void) {
    scene *s = label_scene();
    s->target.tensor.dtype = ONEPASS_F32;
    expect_refusal(onepass_run(&s->call), ONEPASS_INVALID_ARGUMENT, "multi_margin|class indices", "a target of floats");
    CHECK(!sentence_has(onepass_message(), "probabilities"), "a target of floats: \"%s\"", onepass_message());
}

/* A parameter that is nearly what it may be is told apart from it. */
static void test_digits(void) {
    scene *s = triplet_scene();
    s->call.parameter_count = 2;
    s->call.parameter[1] = nextafter(2, 0);
    expect_refusal(onepass_run(&s->call), ONEPASS_INVALID_ARGUMENT, "p of|is 1.9999999999999998|1 or 2", "nearly 2");
    s->call.parameter[1] = 1.7;
    expect_refusal(onepass_run(&s->call), ONEPASS_INVALID_ARGUMENT, "p of|is 1.7;|1 or 2", "1.7");
}

/* ---------------------------------------------------------------- parameters -- */

static scene *scene_of(const onepass_loss_info *info) {
    return strcmp(info->name, "multi_margin") == 0        ? label_scene()
           : strcmp(info->name, "multilabel_margin") == 0 ? label_list_scene()
           : info->operand_count == 2                     ? pair_scene()
           : strcmp(info->name, "cosine_embedding") == 0  ? embedding_scene()
                                                          : triplet_scene();
}

static void test_limits_of_parameters(void) {
    int32_t count = 0;
    for (const onepass_loss_info *info; (info = onepass_vector_loss_at(count)) != NULL; count++) {
        HOLDS(onepass_loss_named(info->name) == info);
        HOLDS(info->over_rows == 0 || info->over_rows > ONEPASS_CLASS_PROBABILITIES);
        HOLDS(info->operand_count == 2 || info->operand_count == 3);
        HOLDS(info->meaning[0] != '\0' && info->value[0] != '\0' && info->slope[0] != '\0');
        for (int32_t k = 0; k < info->operand_count; k++)
            HOLDS(info->operand[k][0] != '\0');
        expect_limits_of_parameters(scene_of, info);
    }
    HOLDS(count >= 6);
    HOLDS(onepass_vector_loss_at(-1) == NULL && onepass_vector_loss_at(INT32_MAX) == NULL);
}

int main(void) {
    run_cases(pair_scene, call_cases, COUNT(call_cases), 0, "");
    run_cases(pair_scene, shape_cases, COUNT(shape_cases), 0, "");
    run_cases(distance_scene, distance_cases, COUNT(distance_cases), 0, "");
    run_cases(overlap_scene, overlap_cases, COUNT(overlap_cases), 0, "");
    run_cases(embedding_scene, embedding_cases, COUNT(embedding_cases), 0, "");
    run_cases(label_scene, label_cases, COUNT(label_cases), 0, "");
    run_cases(class_weight_scene, class_weight_cases, COUNT(class_weight_cases), 0, "");
    run_cases(label_list_scene, label_list_cases, COUNT(label_list_cases), 0, "");
    run_cases(wrong_label_list_scene, wrong_label_list_cases, COUNT(wrong_label_list_cases), 0, "");
    run_cases(hidden_label_list_scene, hidden_label_cases, COUNT(hidden_label_cases), 0, "");
    run_cases(wrong_label_scene, wrong_label_cases, COUNT(wrong_label_cases), 0, "");
    run_cases(negative_label_scene, negative_label_cases, COUNT(negative_label_cases), 0, "");
    run_cases(hidden_label_scene, hidden_label_cases, COUNT(hidden_label_cases), 0, "");
    run_cases(triplet_scene, triplet_cases, COUNT(triplet_cases), 0, "");
    test_overlaps();
    test_advice();
    test_digits();
    test_limits_of_parameters();
    return check_finish();
}
