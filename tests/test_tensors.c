/*
 * Bad tensors: types, shapes, strides and addresses that none may have, shapes that do not go together, and outputs
 * that lie over something. Each is refused with a sentence that names the tensor, and nothing is written.
 */
#include <onepass.h>

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "check.h"
#include "refusals.h"

/* ---------------------------------------------------------------- one tensor -- */

#define HUGE_EXTENT ((int64_t)1 << 32)

/* What may be wrong with a tensor, whichever it is: these run for each of the ten. */
static const argument_case tensor_cases[] = {
    {"type 0", ONEPASS_INVALID_ARGUMENT, "type|0", {OWN_INTEGER(tensor.dtype, 0)}},
    {"type 6", ONEPASS_INVALID_ARGUMENT, "type|6", {OWN_INTEGER(tensor.dtype, 6)}},
    {"type -1", ONEPASS_INVALID_ARGUMENT, "type|-1", {OWN_INTEGER(tensor.dtype, -1)}},
    {"ndim negative", ONEPASS_INVALID_SHAPE, "-1|dimensions", {OWN_INTEGER(tensor.ndim, -1)}},
    {"ndim above the most", ONEPASS_INVALID_SHAPE, "17|16|dimensions", {OWN_INTEGER(tensor.ndim, 17)}},
    {"ndim greatest", ONEPASS_INVALID_SHAPE, "2147483647|16", {OWN_INTEGER(tensor.ndim, INT32_MAX)}},
    {"ndim least", ONEPASS_INVALID_SHAPE, "-2147483648", {OWN_INTEGER(tensor.ndim, INT32_MIN)}},
    {"no shape", ONEPASS_INVALID_ARGUMENT, "shape|null", {OWN_INTEGER(tensor.ndim, 2), OWN_INTEGER(tensor.shape, 0)}},
    {"first extent negative", ONEPASS_INVALID_SHAPE, "-1", {OWN_SHAPE(2, -1, 3)}},
    {"last extent negative", ONEPASS_INVALID_SHAPE, "-3", {OWN_SHAPE(2, 2, -3)}},
    {"two extents negative", ONEPASS_INVALID_SHAPE, "-2", {OWN_SHAPE(2, -2, -3)}},
    {"extent least", ONEPASS_INVALID_SHAPE, "-9223372036854775808", {OWN_SHAPE(2, 2, INT64_MIN)}},
    {"a negative extent beside an empty one", ONEPASS_INVALID_SHAPE, "-1", {OWN_SHAPE(2, 0, -1)}},
    {"as many elements as 2^64", ONEPASS_INVALID_SHAPE, "4294967296", {OWN_SHAPE(2, HUGE_EXTENT, HUGE_EXTENT)}},
    {"as many elements as 2^64, zero strides",
     ONEPASS_INVALID_SHAPE,
     "4294967296",
     {OWN_SHAPE(2, HUGE_EXTENT, HUGE_EXTENT), OWN_STRIDES(0, 0)}},
    {"as many elements as 2^63", ONEPASS_INVALID_SHAPE, "", {OWN_SHAPE(2, INT64_MAX / 2 + 1, 2), OWN_STRIDES(0, 0)}},
    {"a stride that overflows", ONEPASS_INVALID_SHAPE, "stride", {OWN_SHAPE(2, 2, 3), OWN_STRIDES(1, INT64_MAX)}},
    {"a stride that overflows below", ONEPASS_INVALID_SHAPE, "stride", {OWN_SHAPE(2, 2, 3), OWN_STRIDES(1, INT64_MIN)}},
    {"strides that overflow together",
     ONEPASS_INVALID_SHAPE,
     "stride",
     {OWN_SHAPE(3, 2, 2, 2), OWN_STRIDES(INT64_MAX / 4 * 3, INT64_MAX / 4 * 3, 1)}},
    {"a stride that overflows one step past the end",
     ONEPASS_INVALID_SHAPE,
     "stride",
     {OWN_SHAPE(2, 2, 3), OWN_STRIDES(1, INT64_MAX / 2 - 1)}},
    {"a row stride that overflows one step past the end",
     ONEPASS_INVALID_SHAPE,
     "stride",
     {OWN_SHAPE(2, 2, 3), OWN_STRIDES(INT64_MAX / 2 + 1, 1)}},
    {"a square whose stride overflows one step past the end",
     ONEPASS_INVALID_SHAPE,
     "stride",
     {OWN_SHAPE(2, 2, 2), OWN_STRIDES(1, INT64_MAX / 2 + 1)}},
    {"strides that overflow together, one step past the end",
     ONEPASS_INVALID_SHAPE,
     "stride",
     {OWN_SHAPE(3, 2, 1, 3), OWN_STRIDES(INT64_MAX / 4 * 3, INT64_MIN, INT64_MAX / 16)}},
    {"no memory", ONEPASS_INVALID_ARGUMENT, "data|null", {OWN_INTEGER(tensor.data, 0)}},
};

/* What else may be wrong with a tensor of numbers, which all but the mask are, and with where it lies. */
static const argument_case number_cases[] = {
    {"type 5, a mask's", ONEPASS_INVALID_ARGUMENT, "type|5", {OWN_INTEGER(tensor.dtype, ONEPASS_BOOL)}},
    {"a stride whose bytes overflow",
     ONEPASS_INVALID_SHAPE,
     "stride",
     {OWN_SHAPE(2, 2, 3), OWN_STRIDES(INT64_MAX / 2, 1)}},
    {"a stride of f16 whose bytes overflow as those of floats",
     ONEPASS_INVALID_SHAPE,
     "stride",
     {OWN_INTEGER(tensor.dtype, ONEPASS_F16), OWN_SHAPE(2, 2, 3), OWN_STRIDES(1, INT64_MAX / 8 + 1)}},
    {"f16 at an odd address",
     ONEPASS_INVALID_MEMORY,
     "align|of 2",
     {OWN_INTEGER(tensor.dtype, ONEPASS_F16), OWN_INTEGER(tensor.data, 0x10001)}},
    {"bf16 at an odd address",
     ONEPASS_INVALID_MEMORY,
     "align|of 2",
     {OWN_INTEGER(tensor.dtype, ONEPASS_BF16), OWN_INTEGER(tensor.data, 0x10003)}},
    {"f32 at a multiple of 2",
     ONEPASS_INVALID_MEMORY,
     "align|of 4",
     {OWN_INTEGER(tensor.dtype, ONEPASS_F32), OWN_INTEGER(tensor.data, 0x10002)}},
    {"f64 at a multiple of 4",
     ONEPASS_INVALID_MEMORY,
     "align|of 8",
     {OWN_INTEGER(tensor.dtype, ONEPASS_F64), OWN_INTEGER(tensor.data, 0x10004)}},
};

/* ---------------------------------------------------------------- shapes together -- */

static const argument_case shape_cases[] = {
    /* Extents that do not overflow alone but do together. */
    {"common shape overflows",
     ONEPASS_INVALID_SHAPE,
     "4294967296",
     {SHAPE(prediction, 2, HUGE_EXTENT, 1), STRIDES(prediction, 0, 0), SHAPE(target, 2, 1, HUGE_EXTENT),
      STRIDES(target, 0, 0)}},

    /* Addresses that leave the address space. */
    {"prediction over the end of memory",
     ONEPASS_INVALID_SHAPE,
     "prediction|address",
     {INTEGER(prediction.tensor.data, -16)}},
    {"target over the end of memory", ONEPASS_INVALID_SHAPE, "target|address", {INTEGER(target.tensor.data, -16)}},
    {"gradient over the end of memory",
     ONEPASS_INVALID_SHAPE,
     "gradient|address",
     {INTEGER(gradient_p.tensor.data, -16)}},
    {"prediction before the beginning of memory",
     ONEPASS_INVALID_SHAPE,
     "prediction|address",
     {INTEGER(prediction.tensor.data, 64), STRIDES(prediction, -1000, 1)}},

    /* Shapes that do not broadcast. */
    {"(4, 3) with (4,)",
     ONEPASS_INVALID_SHAPE,
     "prediction|target|(4, 3)|(4,)|(4, 1)",
     {SHAPE(prediction, 2, 4, 3), SHAPE(target, 1, 4), SHAPE(gradient_p, 2, 4, 3), SHAPE(gradient_t, 2, 4, 3)}},
    {"(4,) with (4, 3)",
     ONEPASS_INVALID_SHAPE,
     "prediction|target|(4, 3)|(4,)|(4, 1)",
     {SHAPE(prediction, 1, 4), SHAPE(target, 2, 4, 3), SHAPE(gradient_p, 2, 4, 3), SHAPE(gradient_t, 2, 4, 3)}},
    {"(2, 3) with (3, 2)", ONEPASS_INVALID_SHAPE, "prediction|target|(2, 3)|(3, 2)", {SHAPE(target, 2, 3, 2)}},
    {"(2, 3) with (5,)", ONEPASS_INVALID_SHAPE, "prediction|target|(2, 3)|(5,)", {SHAPE(target, 1, 5)}},
    {"(2, 3) with (2, 0)", ONEPASS_INVALID_SHAPE, "prediction|target|(2, 3)|(2, 0)", {SHAPE(target, 2, 2, 0)}},
    {"(2, 3) with (4, 2, 3), gradients of the prediction's shape",
     ONEPASS_INVALID_SHAPE,
     "gradient|(4, 2, 3)|(2, 3)",
     {SHAPE(target, 3, 4, 2, 3)}},

    /* The value's shape. */
    {"value (1,) for mean", ONEPASS_OK, "", {SHAPE(value, 1, 1)}},
    {"value (1, 1) for sum", ONEPASS_OK, "", {INTEGER(call.reduction, ONEPASS_SUM), SHAPE(value, 2, 1, 1)}},
    {"value (2,) for mean", ONEPASS_INVALID_SHAPE, "value|(2,)|one element", {SHAPE(value, 1, 2)}},
    {"value (0,) for mean", ONEPASS_INVALID_SHAPE, "value|(0,)|one element", {SHAPE(value, 1, 0)}},
    {"value (2, 3) for sum",
     ONEPASS_INVALID_SHAPE,
     "value|(2, 3)|one element",
     {INTEGER(call.reduction, ONEPASS_SUM), SHAPE(value, 2, 2, 3)}},
    {"value (2, 3) for none",
     ONEPASS_OK,
     "",
     {INTEGER(call.reduction, ONEPASS_NONE), SHAPE(value, 2, 2, 3), SHAPE(upstream, 2, 2, 3)}},
    {"value () for none",
     ONEPASS_INVALID_SHAPE,
     "value|()|(2, 3)",
     {INTEGER(call.reduction, ONEPASS_NONE), SHAPE(upstream, 2, 2, 3)}},
    {"value (3,) for none",
     ONEPASS_INVALID_SHAPE,
     "value|(3,)|(2, 3)",
     {INTEGER(call.reduction, ONEPASS_NONE), SHAPE(value, 1, 3), SHAPE(upstream, 2, 2, 3)}},
    {"value (3, 2) for none",
     ONEPASS_INVALID_SHAPE,
     "value|(3, 2)|(2, 3)",
     {INTEGER(call.reduction, ONEPASS_NONE), SHAPE(value, 2, 3, 2), SHAPE(upstream, 2, 2, 3)}},
    {"value (6,) for none",
     ONEPASS_INVALID_SHAPE,
     "value|(6,)|(2, 3)",
     {INTEGER(call.reduction, ONEPASS_NONE), SHAPE(value, 1, 6), SHAPE(upstream, 2, 2, 3)}},

    /* The gradients' shape. */
    {"prediction's gradient (3, 2)", ONEPASS_INVALID_SHAPE, "gradient|(3, 2)|(2, 3)", {SHAPE(gradient_p, 2, 3, 2)}},
    {"prediction's gradient (6,)", ONEPASS_INVALID_SHAPE, "gradient|(6,)|(2, 3)", {SHAPE(gradient_p, 1, 6)}},
    {"prediction's gradient ()", ONEPASS_INVALID_SHAPE, "gradient|()|(2, 3)", {SHAPE(gradient_p, 0, 0)}},
    {"target's gradient (2, 2)", ONEPASS_INVALID_SHAPE, "gradient|(2, 2)|(2, 3)", {SHAPE(gradient_t, 2, 2, 2)}},
    {"prediction's gradient in the shape of a broadcast prediction",
     ONEPASS_INVALID_SHAPE,
     "gradient|(3,)|(2, 3)",
     {SHAPE(prediction, 1, 3), SHAPE(gradient_p, 1, 3)}},
    {"target's gradient in the shape of a broadcast target",
     ONEPASS_INVALID_SHAPE,
     "gradient|(2, 1)|(2, 3)",
     {SHAPE(target, 2, 2, 1), SHAPE(gradient_t, 2, 2, 1)}},
    {"gradients in the common shape of a broadcast target", ONEPASS_OK, "", {SHAPE(target, 2, 2, 1)}},

    /* The upstream gradient's shape. */
    {"upstream (1, 1) for mean", ONEPASS_OK, "", {SHAPE(upstream, 2, 1, 1)}},
    {"upstream (2, 3) for mean", ONEPASS_INVALID_SHAPE, "upstream|(2, 3)|one element", {SHAPE(upstream, 2, 2, 3)}},
    {"upstream (0,) for sum",
     ONEPASS_INVALID_SHAPE,
     "upstream|(0,)|one element",
     {INTEGER(call.reduction, ONEPASS_SUM), SHAPE(upstream, 1, 0)}},
    {"upstream () for none",
     ONEPASS_INVALID_SHAPE,
     "upstream|()|(2, 3)",
     {INTEGER(call.reduction, ONEPASS_NONE), SHAPE(value, 2, 2, 3)}},
    {"upstream (3,) for none",
     ONEPASS_INVALID_SHAPE,
     "upstream|(3,)|(2, 3)",
     {INTEGER(call.reduction, ONEPASS_NONE), SHAPE(value, 2, 2, 3), SHAPE(upstream, 1, 3)}},
    {"upstream shared by zero strides for none",
     ONEPASS_OK,
     "",
     {INTEGER(call.reduction, ONEPASS_NONE), SHAPE(value, 2, 2, 3), SHAPE(upstream, 2, 2, 3), STRIDES(upstream, 0, 0)}},

    /* Nothing to compute. */
    {"empty, no memory",
     ONEPASS_OK,
     "",
     {SHAPE(prediction, 2, 0, 3), NOTHING(prediction.tensor.data), SHAPE(target, 2, 0, 3), NOTHING(target.tensor.data),
      SHAPE(gradient_p, 2, 0, 3), NOTHING(gradient_p.tensor.data), SHAPE(gradient_t, 2, 0, 3),
      NOTHING(gradient_t.tensor.data)}},
    {"empty, strides and extents that would overflow",
     ONEPASS_OK,
     "",
     {SHAPE(prediction, 3, 0, INT64_MAX, INT64_MAX), STRIDES(prediction, INT64_MAX, INT64_MIN, INT64_MAX),
      SHAPE(target, 3, 0, INT64_MAX, INT64_MAX), NOTHING(call.gradient[0]), NOTHING(call.gradient[1])}},
    {"empty, and nothing wanted",
     ONEPASS_INVALID_ARGUMENT,
     "value|gradient",
     {SHAPE(prediction, 2, 0, 3), SHAPE(target, 2, 0, 3), NOTHING(call.value), NOTHING(call.gradient[0]),
      NOTHING(call.gradient[1])}},
    {"empty, but a value without memory",
     ONEPASS_INVALID_ARGUMENT,
     "value|null",
     {SHAPE(prediction, 2, 0, 3), SHAPE(target, 2, 0, 3), SHAPE(gradient_p, 2, 0, 3), SHAPE(gradient_t, 2, 0, 3),
      NOTHING(value.tensor.data)}},
    /* A weight is broadcast to the common shape and does not enlarge it. */
    {"weight of the common shape", ONEPASS_OK, "", {SHAPE(weight, 2, 2, 3)}},
    {"weight for each row", ONEPASS_OK, "", {SHAPE(weight, 2, 2, 1)}},
    {"weight for each column", ONEPASS_OK, "", {SHAPE(weight, 1, 3)}},
    {"weight with zero strides", ONEPASS_OK, "", {SHAPE(weight, 2, 2, 3), STRIDES(weight, 0, 0)}},
    {"weight in double", ONEPASS_OK, "", {INTEGER(weight.tensor.dtype, ONEPASS_F64)}},
    {"weight of another length", ONEPASS_INVALID_SHAPE, "weight|(4,)|(2, 3)", {SHAPE(weight, 1, 4)}},
    {"weight for each row, aligned at the wrong end",
     ONEPASS_INVALID_SHAPE,
     "weight|(2,)|(2, 3)|reshape|(2, 1)",
     {SHAPE(weight, 1, 2)}},
    {"weight transposed", ONEPASS_INVALID_SHAPE, "weight|(3, 2)|(2, 3)", {SHAPE(weight, 2, 3, 2)}},
    {"weight with another dimension", ONEPASS_INVALID_SHAPE, "weight|(4, 2, 3)|(2, 3)", {SHAPE(weight, 3, 4, 2, 3)}},
    {"weight with another dimension of length 1",
     ONEPASS_INVALID_SHAPE,
     "weight|(1, 2, 3)|(2, 3)",
     {SHAPE(weight, 3, 1, 2, 3)}},
    {"weight that would enlarge what is broadcast",
     ONEPASS_INVALID_SHAPE,
     "weight|(2, 3)|(1, 3)",
     {SHAPE(prediction, 2, 1, 3), SHAPE(target, 1, 3), SHAPE(weight, 2, 2, 3)}},
    {"empty weight", ONEPASS_INVALID_SHAPE, "weight|(0, 3)|(2, 3)", {SHAPE(weight, 2, 0, 3)}},

    /* And so is a mask, whose elements are bytes. */
    {"mask of the common shape", ONEPASS_OK, "", {SHAPE(mask, 2, 2, 3)}},
    {"mask for each row", ONEPASS_OK, "", {SHAPE(mask, 2, 2, 1)}},
    {"mask for each column", ONEPASS_OK, "", {SHAPE(mask, 1, 3)}},
    {"mask with zero strides", ONEPASS_OK, "", {SHAPE(mask, 2, 2, 3), STRIDES(mask, 0, 0)}},
    {"mask transposed in memory", ONEPASS_OK, "", {SHAPE(mask, 2, 2, 3), STRIDES(mask, 1, 2)}},
    {"mask at an odd address", ONEPASS_OK, "", {SHAPE(mask, 2, 2, 1), MEMBER(mask.tensor.data, mask.memory[1])}},
    {"mask of numbers", ONEPASS_INVALID_ARGUMENT, "mask|type|3|BOOL", {INTEGER(mask.tensor.dtype, ONEPASS_F32)}},
    {"mask of another length", ONEPASS_INVALID_SHAPE, "mask|(4,)|(2, 3)", {SHAPE(mask, 1, 4)}},
    {"mask for each row, aligned at the wrong end",
     ONEPASS_INVALID_SHAPE,
     "mask|(2,)|(2, 3)|reshape|(2, 1)",
     {SHAPE(mask, 1, 2)}},
    {"mask with another dimension", ONEPASS_INVALID_SHAPE, "mask|(4, 2, 3)|(2, 3)", {SHAPE(mask, 3, 4, 2, 3)}},
    {"mask that would enlarge what is broadcast",
     ONEPASS_INVALID_SHAPE,
     "mask|(2, 3)|(1, 3)",
     {SHAPE(prediction, 2, 1, 3), SHAPE(target, 1, 3), SHAPE(mask, 2, 2, 3)}},
    {"empty mask", ONEPASS_INVALID_SHAPE, "mask|(0, 3)|(2, 3)", {SHAPE(mask, 2, 0, 3)}},

    {"empty, gradients that are not",
     ONEPASS_INVALID_SHAPE,
     "gradient|(2, 3)|(0, 3)",
     {SHAPE(prediction, 2, 0, 3), SHAPE(target, 2, 0, 3)}},
};

/* ---------------------------------------------------------------- memory together -- */

static const argument_case overlap_cases[] = {
    /* An output over itself. */
    {"gradient with zero strides", ONEPASS_INVALID_MEMORY, "gradient|overlap", {STRIDES(gradient_p, 0, 0)}},
    {"gradient with a zero row stride", ONEPASS_INVALID_MEMORY, "gradient|overlap", {STRIDES(gradient_p, 0, 1)}},
    {"gradient with a zero last stride", ONEPASS_INVALID_MEMORY, "gradient|overlap", {STRIDES(gradient_t, 3, 0)}},
    {"gradient whose rows overlap", ONEPASS_INVALID_MEMORY, "gradient|overlap", {STRIDES(gradient_p, 2, 1)}},
    {"gradient whose rows overlap backwards",
     ONEPASS_INVALID_MEMORY,
     "gradient|overlap",
     {STRIDES(gradient_p, -1, 1), MEMBER(gradient_p.tensor.data, gradient_p.memory[64])}},
    {"gradient whose columns meet its rows", ONEPASS_INVALID_MEMORY, "gradient|overlap", {STRIDES(gradient_t, 4, 2)}},
    {"value of none with zero strides",
     ONEPASS_INVALID_MEMORY,
     "value|overlap",
     {INTEGER(call.reduction, ONEPASS_NONE), SHAPE(value, 2, 2, 3), STRIDES(value, 0, 0), SHAPE(upstream, 2, 2, 3)}},
    {"outputs with strange strides that keep their elements apart",
     ONEPASS_OK,
     "",
     {STRIDES(gradient_p, 1, 2), STRIDES(gradient_t, -7, -1), MEMBER(gradient_t.tensor.data, gradient_t.memory[64]),
      SHAPE(value, 2, 1, 1), STRIDES(value, 0, 0)}},

    /* The value over something. */
    {"value in the prediction",
     ONEPASS_INVALID_MEMORY,
     "value|prediction|overlap",
     {MEMBER(value.tensor.data, prediction.memory[20])}},
    {"value in the target", ONEPASS_INVALID_MEMORY, "value|target|overlap", {MEMBER(value.tensor.data, target.memory)}},
    {"value in the prediction's gradient",
     ONEPASS_INVALID_MEMORY,
     "value|gradient|overlap",
     {MEMBER(value.tensor.data, gradient_p.memory[8])}},
    {"value in the target's gradient",
     ONEPASS_INVALID_MEMORY,
     "value|gradient|overlap",
     {MEMBER(value.tensor.data, gradient_t.memory[8])}},
    {"value over the upstream gradient",
     ONEPASS_INVALID_MEMORY,
     "value|upstream|overlap",
     {MEMBER(value.tensor.data, upstream.memory)}},
    {"wide value that reaches into the upstream gradient",
     ONEPASS_INVALID_MEMORY,
     "value|upstream|overlap",
     {INTEGER(value.tensor.dtype, ONEPASS_F64), MEMBER(value.tensor.data, value.memory),
      MEMBER(upstream.tensor.data, value.memory[4])}},
    {"value right behind the prediction", ONEPASS_OK, "", {MEMBER(value.tensor.data, prediction.memory[24])}},
    {"values of none over the prediction",
     ONEPASS_INVALID_MEMORY,
     "value|prediction|overlap",
     {INTEGER(call.reduction, ONEPASS_NONE), SHAPE(value, 2, 2, 3), SHAPE(upstream, 2, 2, 3),
      MEMBER(value.tensor.data, prediction.memory)}},

    /* A gradient over an operand. */
    {"prediction's gradient over the prediction", ONEPASS_OK, "", {MEMBER(gradient_p.tensor.data, prediction.memory)}},
    {"each gradient over its operand",
     ONEPASS_OK,
     "",
     {MEMBER(gradient_p.tensor.data, prediction.memory), MEMBER(gradient_t.tensor.data, target.memory)}},
    {"in place, dense strides given on one side only",
     ONEPASS_OK,
     "",
     {MEMBER(gradient_p.tensor.data, prediction.memory), STRIDES(prediction, 3, 1)}},
    {"prediction's gradient over the target",
     ONEPASS_INVALID_MEMORY,
     "gradient|target|overlap",
     {MEMBER(gradient_p.tensor.data, target.memory)}},
    {"target's gradient over the prediction",
     ONEPASS_INVALID_MEMORY,
     "gradient|prediction|overlap",
     {MEMBER(gradient_t.tensor.data, prediction.memory)}},
    {"in place with another type of the same size class",
     ONEPASS_INVALID_MEMORY,
     "gradient|prediction|overlap",
     {INTEGER(prediction.tensor.dtype, ONEPASS_F16), INTEGER(gradient_p.tensor.dtype, ONEPASS_BF16),
      MEMBER(gradient_p.tensor.data, prediction.memory)}},
    {"in place with a wider type",
     ONEPASS_INVALID_MEMORY,
     "gradient|prediction|overlap",
     {INTEGER(gradient_p.tensor.dtype, ONEPASS_F64), MEMBER(gradient_p.tensor.data, prediction.memory)}},
    {"in place with a narrower type",
     ONEPASS_INVALID_MEMORY,
     "gradient|prediction|overlap",
     {INTEGER(gradient_p.tensor.dtype, ONEPASS_F16), MEMBER(gradient_p.tensor.data, prediction.memory)}},
    {"in place with other strides",
     ONEPASS_INVALID_MEMORY,
     "gradient|prediction|overlap",
     {MEMBER(gradient_p.tensor.data, prediction.memory), STRIDES(gradient_p, 1, 2)}},
    {"in place, an element further",
     ONEPASS_INVALID_MEMORY,
     "gradient|prediction|overlap",
     {MEMBER(gradient_p.tensor.data, prediction.memory[4])}},
    {"in place over a broadcast prediction",
     ONEPASS_INVALID_MEMORY,
     "gradient|prediction|overlap",
     {SHAPE(prediction, 2, 1, 3), MEMBER(gradient_p.tensor.data, prediction.memory)}},
    {"in place over a prediction with a zero stride",
     ONEPASS_INVALID_MEMORY,
     "gradient|overlap",
     {STRIDES(prediction, 0, 1), STRIDES(gradient_p, 0, 1), MEMBER(gradient_p.tensor.data, prediction.memory)}},
    {"in place where prediction and target are one",
     ONEPASS_INVALID_MEMORY,
     "gradient|target|overlap",
     {MEMBER(target.tensor.data, prediction.memory), MEMBER(gradient_p.tensor.data, prediction.memory)}},

    /* Outputs over outputs and over the upstream gradient. */
    {"both gradients in one place",
     ONEPASS_INVALID_MEMORY,
     "gradient|overlap",
     {MEMBER(gradient_t.tensor.data, gradient_p.memory)}},
    {"gradients that share an element",
     ONEPASS_INVALID_MEMORY,
     "gradient|overlap",
     {MEMBER(gradient_t.tensor.data, gradient_p.memory[20])}},
    {"gradients that interleave: judged by address range",
     ONEPASS_INVALID_MEMORY,
     "gradient|overlap",
     {STRIDES(gradient_p, 6, 2), STRIDES(gradient_t, 6, 2), MEMBER(gradient_t.tensor.data, gradient_p.memory[4])}},
    {"gradients side by side", ONEPASS_OK, "", {MEMBER(gradient_t.tensor.data, gradient_p.memory[24])}},
    {"upstream gradient in the gradient",
     ONEPASS_INVALID_MEMORY,
     "gradient|upstream|overlap",
     {MEMBER(upstream.tensor.data, gradient_p.memory[4])}},
    {"gradient over the upstream gradient of none",
     ONEPASS_INVALID_MEMORY,
     "gradient|upstream|overlap",
     {INTEGER(call.reduction, ONEPASS_NONE), SHAPE(value, 2, 2, 3), SHAPE(upstream, 2, 2, 3),
      MEMBER(gradient_p.tensor.data, upstream.memory)}},

    {"weight in the gradient",
     ONEPASS_INVALID_MEMORY,
     "gradient|weight|overlap",
     {MEMBER(weight.tensor.data, gradient_t.memory[20])}},
    {"weight over the value",
     ONEPASS_INVALID_MEMORY,
     "value|weight|overlap",
     {MEMBER(weight.tensor.data, value.memory)}},
    {"gradient over the weight, which is no operand",
     ONEPASS_INVALID_MEMORY,
     "gradient|weight|overlap",
     {SHAPE(weight, 2, 2, 3), MEMBER(gradient_p.tensor.data, weight.memory)}},
    {"in place where prediction and weight are one",
     ONEPASS_INVALID_MEMORY,
     "gradient|weight|overlap",
     {MEMBER(gradient_p.tensor.data, prediction.memory), SHAPE(weight, 2, 2, 3),
      MEMBER(weight.tensor.data, prediction.memory)}},

    {"mask in the gradient",
     ONEPASS_INVALID_MEMORY,
     "gradient|mask|overlap",
     {MEMBER(mask.tensor.data, gradient_t.memory[23])}},
    {"mask right behind the gradient", ONEPASS_OK, "", {MEMBER(mask.tensor.data, gradient_t.memory[24])}},
    {"mask in the value", ONEPASS_INVALID_MEMORY, "value|mask|overlap", {MEMBER(mask.tensor.data, value.memory[3])}},
    {"gradient over the mask, which is no operand",
     ONEPASS_INVALID_MEMORY,
     "gradient|mask|overlap",
     {SHAPE(mask, 2, 2, 3), MEMBER(gradient_p.tensor.data, mask.memory)}},

    /* Inputs may share what they like. */
    {"mask in the prediction", ONEPASS_OK, "", {MEMBER(mask.tensor.data, prediction.memory[3])}},
    {"weight and target in one place",
     ONEPASS_OK,
     "",
     {SHAPE(weight, 2, 2, 3), MEMBER(weight.tensor.data, target.memory)}},
    {"prediction and target in one place", ONEPASS_OK, "", {MEMBER(target.tensor.data, prediction.memory)}},
    {"upstream gradient in the prediction", ONEPASS_OK, "", {MEMBER(upstream.tensor.data, prediction.memory[4])}},
};

/* ---------------------------------------------------------------- three operands -- */

static const argument_case third_cases[] = {
    /* The third operand has its say in the common shape. */
    {"variance for each row", ONEPASS_OK, "", {SHAPE(third, 2, 2, 1)}},
    {"variance for all", ONEPASS_OK, "", {SHAPE(third, 0, 0)}},
    {"variance in double", ONEPASS_OK, "", {INTEGER(third.tensor.dtype, ONEPASS_F64)}},
    {"the shape is the variance's", ONEPASS_OK, "", {SHAPE(prediction, 1, 3), SHAPE(target, 0, 0)}},
    {"variance of another length", ONEPASS_INVALID_SHAPE, "variance|(4,)|(2, 3)", {SHAPE(third, 1, 4)}},
    {"variance for each row, aligned at the wrong end",
     ONEPASS_INVALID_SHAPE,
     "variance|(2,)|(2, 3)|(2, 1)",
     {SHAPE(third, 1, 2)}},
    {"variance with another dimension, gradients without",
     ONEPASS_INVALID_SHAPE,
     "gradient|(4, 2, 3)|(2, 3)",
     {SHAPE(third, 3, 4, 2, 3)}},
    {"variance's gradient in the shape of a broadcast variance",
     ONEPASS_INVALID_SHAPE,
     "gradient[2]|(3,)|(2, 3)",
     {SHAPE(third, 1, 3), SHAPE(gradient_v, 1, 3)}},
    {"variance's gradient () ", ONEPASS_INVALID_SHAPE, "gradient[2]|()|(2, 3)", {SHAPE(gradient_v, 0, 0)}},

    /* And its gradient a place of its own. */
    {"variance's gradient over the variance", ONEPASS_OK, "", {MEMBER(gradient_v.tensor.data, third.memory)}},
    {"each gradient over its operand",
     ONEPASS_OK,
     "",
     {MEMBER(gradient_p.tensor.data, prediction.memory), MEMBER(gradient_t.tensor.data, target.memory),
      MEMBER(gradient_v.tensor.data, third.memory)}},
    {"variance's gradient over the target",
     ONEPASS_INVALID_MEMORY,
     "gradient[2]|target|overlap",
     {MEMBER(gradient_v.tensor.data, target.memory)}},
    {"prediction's gradient over the variance",
     ONEPASS_INVALID_MEMORY,
     "gradient[0]|variance|overlap",
     {MEMBER(gradient_p.tensor.data, third.memory)}},
    {"variance's gradient over the target's",
     ONEPASS_INVALID_MEMORY,
     "gradient[1]|gradient[2]|overlap",
     {MEMBER(gradient_v.tensor.data, gradient_t.memory[8])}},
    {"value in the variance",
     ONEPASS_INVALID_MEMORY,
     "value|variance|overlap",
     {MEMBER(value.tensor.data, third.memory[20])}},
    {"value in the variance's gradient",
     ONEPASS_INVALID_MEMORY,
     "value|gradient[2]|overlap",
     {MEMBER(value.tensor.data, gradient_v.memory[20])}},
    {"in place where target and variance are one",
     ONEPASS_INVALID_MEMORY,
     "gradient|overlap",
     {MEMBER(third.tensor.data, target.memory), MEMBER(gradient_v.tensor.data, target.memory)}},
    {"variance and target in one place", ONEPASS_OK, "", {MEMBER(third.tensor.data, target.memory)}},
};

/* ---------------------------------------------------------------- running them -- */

static void test_cases(void) {
    run_cases(good_scene, shape_cases, COUNT(shape_cases), 0, "");
    run_cases(good_scene, overlap_cases, COUNT(overlap_cases), 0, "");
    run_cases(third_scene, third_cases, COUNT(third_cases), 0, "");
    static const struct {
        const char *name;
        size_t base;
    } parts[] = {
        {"prediction", offsetof(scene, prediction)}, {"target", offsetof(scene, target)},
        {"variance", offsetof(scene, third)},        {"weight", offsetof(scene, weight)},
        {"upstream", offsetof(scene, upstream)},     {"value", offsetof(scene, value)},
        {"gradient", offsetof(scene, gradient_p)},   {"gradient", offsetof(scene, gradient_t)},
        {"gradient", offsetof(scene, gradient_v)},
    };
    for (size_t p = 0; p < COUNT(parts); p++) {
        run_cases(third_scene, tensor_cases, COUNT(tensor_cases), parts[p].base, parts[p].name);
        run_cases(third_scene, number_cases, COUNT(number_cases), parts[p].base, parts[p].name);
    }
    run_cases(third_scene, tensor_cases, COUNT(tensor_cases), offsetof(scene, mask), "mask");
}

/* The good call is not only accepted: the empty and the full case give the values that they must. */
static void test_good_values(void) {
    scene *s = good_scene();
    float value;
    HOLDS(onepass_run(&s->call) == ONEPASS_OK);
    memcpy(&value, s->value.memory, sizeof value);
    CHECK(value == (1 + 4 + 9 + 9 + 16 + 25) / 6.0f, "mean squared error is %g", value);
    for (int reduction = ONEPASS_MEAN; reduction <= ONEPASS_SUM; reduction++) {
        s = good_scene();
        s->prediction.shape[0] = s->target.shape[0] = s->gradient_p.shape[0] = s->gradient_t.shape[0] = 0;
        s->prediction.tensor.data = s->target.tensor.data = NULL;
        s->call.reduction = reduction;
        HOLDS(onepass_run(&s->call) == ONEPASS_OK);
        memcpy(&value, s->value.memory, sizeof value);
        CHECK(reduction == ONEPASS_MEAN ? isnan(value) : value == 0, "nothing reduces to %g", value);
        HOLDS(s->gradient_p.memory[0] == POISON && s->gradient_t.memory[0] == POISON);
    }
}

int main(void) {
    test_cases();
    test_good_values();
    return check_finish();
}
