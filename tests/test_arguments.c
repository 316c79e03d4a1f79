/*
 * Bad input: every kind of it gets the right status and a sentence that names what was wrong, and writes nothing.
 *
 * A case is a good call plus a few edits. Everything that a call can reach (the call itself, its tensors, their
 * shapes, strides and memory) lies in one struct, the scene, so that an edit is an offset and a number, the cases are
 * tables, and "nothing was written" is one memcmp of the scene with what it was before.
 */
#define _POSIX_C_SOURCE 200809L
#include <onepass.h>

#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define HOLDS(condition) CHECK(condition, "%s does not hold", #condition)

/* ---------------------------------------------------------------- the scene -- */

enum {
    ROOM = 512, /* bytes behind each tensor, far more than a good call touches */
    EXTENTS = ONEPASS_MAX_DIMENSIONS + 4,
    POISON = 0xA5
};

typedef struct part {
    onepass_tensor tensor;
    int64_t shape[EXTENTS];
    int64_t strides[EXTENTS];
    _Alignas(64) unsigned char memory[ROOM];
} part;

typedef struct scene {
    onepass_call call;
    unsigned char tail[16]; /* what a call of a later version would have behind ours */
    part prediction, target, upstream, value, gradient_p, gradient_t;
} scene;

static scene stage, before;

static void place_tensor(part *part, int32_t ndim) {
    memset(part->memory, POISON, ROOM);
    part->tensor = (onepass_tensor){part->memory, ONEPASS_F32, ndim, part->shape, NULL};
    part->shape[0] = 2;
    part->shape[1] = 3;
    for (int i = 2; i < EXTENTS; i++)
        part->shape[i] = 1;
}

/* The good call that all cases start from: mean squared error of (2, 3) floats, everything wanted. */
static scene *good_scene(void) {
    scene *s = &stage;
    memset(s, 0, sizeof *s);
    place_tensor(&s->prediction, 2);
    place_tensor(&s->target, 2);
    place_tensor(&s->upstream, 0);
    place_tensor(&s->value, 0);
    place_tensor(&s->gradient_p, 2);
    place_tensor(&s->gradient_t, 2);
    memcpy(s->prediction.memory, (float[]){1, 2, 3, 4, 5, 6}, 6 * sizeof(float));
    memcpy(s->target.memory, (float[]){0, 0, 0, 1, 1, 1}, 6 * sizeof(float));
    memcpy(s->upstream.memory, (float[]){1}, sizeof(float));
    s->call.size = sizeof s->call;
    s->call.loss = "mse";
    s->call.operand[ONEPASS_PREDICTION] = &s->prediction.tensor;
    s->call.operand[ONEPASS_TARGET] = &s->target.tensor;
    s->call.upstream = &s->upstream.tensor;
    s->call.value = &s->value.tensor;
    s->call.gradient[ONEPASS_PREDICTION] = &s->gradient_p.tensor;
    s->call.gradient[ONEPASS_TARGET] = &s->gradient_t.tensor;
    return s;
}

/* ---------------------------------------------------------------- the edits -- */

typedef enum edit_kind {
    NO_EDIT,
    SET_INTEGER,
    SET_REAL,
    SET_TEXT,
    SET_MEMBER,  /* a pointer to somewhere in the scene */
    SET_SHAPE,   /* of a part: number of dimensions, then extents */
    SET_STRIDES, /* of a part */
} edit_kind;

typedef struct edit {
    edit_kind kind;
    size_t offset, size;
    int64_t integer[4];
    double real;
    const char *text;
} edit;

#define FIELD(type, field) offsetof(type, field), sizeof(((type *)0)->field)
#define INTEGER(field, number)                                                                                         \
    { SET_INTEGER, FIELD(scene, field), {(int64_t)(number)}, 0, NULL }
#define NOTHING(field)                                                                                                 \
    { SET_INTEGER, FIELD(scene, field), {0}, 0, NULL }
#define REAL(field, number)                                                                                            \
    { SET_REAL, FIELD(scene, field), {0}, (number), NULL }
#define TEXT(field, string)                                                                                            \
    { SET_TEXT, FIELD(scene, field), {0}, 0, (string) }
#define MEMBER(field, member)                                                                                          \
    { SET_MEMBER, FIELD(scene, field), {(int64_t)offsetof(scene, member)}, 0, NULL }
#define SHAPE(part, ndim, ...)                                                                                         \
    { SET_SHAPE, FIELD(scene, part), {(ndim), __VA_ARGS__}, 0, NULL }
#define STRIDES(part, ...)                                                                                             \
    { SET_STRIDES, FIELD(scene, part), {__VA_ARGS__}, 0, NULL }
#define OWN_INTEGER(field, number)                                                                                     \
    { SET_INTEGER, FIELD(part, field), {(int64_t)(number)}, 0, NULL }
#define OWN_SHAPE(ndim, ...)                                                                                           \
    { SET_SHAPE, 0, sizeof(part), {(ndim), __VA_ARGS__}, 0, NULL }
#define OWN_STRIDES(...)                                                                                               \
    { SET_STRIDES, 0, sizeof(part), {__VA_ARGS__}, 0, NULL }

static void apply(scene *s, const edit *edit, size_t base) {
    unsigned char *at = (unsigned char *)s + base + edit->offset;
    part *part = (void *)at;
    const void *pointer;
    int32_t small;
    switch (edit->kind) {
    case NO_EDIT:
        break;
    case SET_INTEGER:
        small = (int32_t)edit->integer[0];
        memcpy(at, edit->size == sizeof small ? (void *)&small : (void *)edit->integer, edit->size);
        break;
    case SET_REAL:
        memcpy(at, &edit->real, sizeof edit->real);
        break;
    case SET_TEXT:
        memcpy(at, &edit->text, sizeof edit->text);
        break;
    case SET_MEMBER:
        pointer = (unsigned char *)s + edit->integer[0];
        memcpy(at, &pointer, sizeof pointer);
        break;
    case SET_SHAPE:
        part->tensor.ndim = (int32_t)edit->integer[0];
        memcpy(part->shape, edit->integer + 1, 3 * sizeof(int64_t));
        break;
    case SET_STRIDES:
        memcpy(part->strides, edit->integer, 4 * sizeof(int64_t));
        part->tensor.strides = part->strides;
        break;
    }
}

/* ---------------------------------------------------------------- the cases -- */

enum {
    EDITS = 8
};

/* `words` must all be in the message; they stand apart by '|'. A good case has ONEPASS_OK and no words. */
typedef struct argument_case {
    const char *name;
    onepass_status status;
    const char *words;
    edit edits[EDITS];
} argument_case;

#define HUGE_EXTENT ((int64_t)1 << 32)

static const argument_case call_cases[] = {
    {"the good call", ONEPASS_OK, "", {{0}}},

    /* The size field. */
    {"size 0", ONEPASS_INVALID_ARGUMENT, "size|0", {INTEGER(call.size, 0)}},
    {"size too small", ONEPASS_INVALID_ARGUMENT, "size", {INTEGER(call.size, sizeof(onepass_call) - 8)}},
    {"size larger, zero tail", ONEPASS_OK, "", {INTEGER(call.size, sizeof(onepass_call) + 16)}},
    {"size larger, tail set",
     ONEPASS_NOT_SUPPORTED,
     "call|version",
     {INTEGER(call.size, sizeof(onepass_call) + 16), INTEGER(tail[9], 1)}},

    /* The loss and its parameters. */
    {"loss null", ONEPASS_INVALID_ARGUMENT, "loss|null", {TEXT(call.loss, NULL)}},
    {"loss empty", ONEPASS_INVALID_ARGUMENT, "loss|mse|smooth_l1|hinge", {TEXT(call.loss, "")}},
    {"loss unknown", ONEPASS_INVALID_ARGUMENT, "loss|mze|mse|smooth_l1|hinge", {TEXT(call.loss, "mze")}},
    {"loss in capitals", ONEPASS_INVALID_ARGUMENT, "loss|MSE", {TEXT(call.loss, "MSE")}},
    {"loss, only the beginning of a name", ONEPASS_INVALID_ARGUMENT, "loss", {TEXT(call.loss, "smooth")}},
    {"loss with something behind", ONEPASS_INVALID_ARGUMENT, "loss", {TEXT(call.loss, "mse ")}},
    {"parameter_count negative", ONEPASS_INVALID_ARGUMENT, "parameter|-1", {INTEGER(call.parameter_count, -1)}},
    {"a parameter for a loss without any",
     ONEPASS_INVALID_ARGUMENT,
     "parameter|mse|1",
     {INTEGER(call.parameter_count, 1)}},
    {"two parameters for one",
     ONEPASS_INVALID_ARGUMENT,
     "parameter|smooth_l1|2",
     {TEXT(call.loss, "smooth_l1"), INTEGER(call.parameter_count, 2), REAL(call.parameter[0], 1)}},
    {"more parameters than there is room",
     ONEPASS_INVALID_ARGUMENT,
     "parameter|9",
     {TEXT(call.loss, "hinge"), INTEGER(call.parameter_count, ONEPASS_MAX_PARAMETERS + 1)}},
    {"beta negative",
     ONEPASS_INVALID_ARGUMENT,
     "beta|-1",
     {TEXT(call.loss, "smooth_l1"), INTEGER(call.parameter_count, 1), REAL(call.parameter[0], -1)}},
    {"beta barely negative",
     ONEPASS_INVALID_ARGUMENT,
     "beta",
     {TEXT(call.loss, "smooth_l1"), INTEGER(call.parameter_count, 1), REAL(call.parameter[0], -0x1p-1074)}},
    {"beta NaN",
     ONEPASS_INVALID_ARGUMENT,
     "beta|NaN",
     {TEXT(call.loss, "smooth_l1"), INTEGER(call.parameter_count, 1), REAL(call.parameter[0], NAN)}},
    {"margin NaN",
     ONEPASS_INVALID_ARGUMENT,
     "margin|NaN",
     {TEXT(call.loss, "hinge"), INTEGER(call.parameter_count, 1), REAL(call.parameter[0], NAN)}},
    {"beta 0",
     ONEPASS_OK,
     "",
     {TEXT(call.loss, "smooth_l1"), INTEGER(call.parameter_count, 1), REAL(call.parameter[0], 0)}},
    {"a parameter that is not counted", ONEPASS_OK, "", {TEXT(call.loss, "smooth_l1"), REAL(call.parameter[0], NAN)}},

    /* Codes. */
    {"reduction 3", ONEPASS_INVALID_ARGUMENT, "reduction|3", {INTEGER(call.reduction, 3)}},
    {"reduction -1", ONEPASS_INVALID_ARGUMENT, "reduction|-1", {INTEGER(call.reduction, -1)}},
    {"device 2", ONEPASS_INVALID_ARGUMENT, "device|2", {INTEGER(call.device, 2)}},
    {"device -1", ONEPASS_INVALID_ARGUMENT, "device|-1", {INTEGER(call.device, -1)}},
    {"a GPU", ONEPASS_NO_DEVICE, "CUDA", {INTEGER(call.device, ONEPASS_CUDA)}},
    {"another GPU", ONEPASS_NO_DEVICE, "CUDA", {INTEGER(call.device, ONEPASS_CUDA), INTEGER(call.device_index, 7)}},
    {"a second CPU", ONEPASS_INVALID_ARGUMENT, "device_index|1", {INTEGER(call.device_index, 1)}},
    {"flags", ONEPASS_NOT_SUPPORTED, "flags|1", {INTEGER(call.flags, 1)}},
    {"threads negative", ONEPASS_INVALID_ARGUMENT, "threads|-1", {INTEGER(call.threads, -1)}},
    {"threads least", ONEPASS_INVALID_ARGUMENT, "threads|-2147483648", {INTEGER(call.threads, INT32_MIN)}},
    {"more threads than any machine has", ONEPASS_OK, "", {INTEGER(call.threads, INT32_MAX)}},

    /* What is there and what is wanted. */
    {"nothing wanted",
     ONEPASS_INVALID_ARGUMENT,
     "value|gradient",
     {NOTHING(call.value), NOTHING(call.gradient[0]), NOTHING(call.gradient[1])}},
    {"no prediction", ONEPASS_INVALID_ARGUMENT, "prediction|null", {NOTHING(call.operand[0])}},
    {"no target", ONEPASS_INVALID_ARGUMENT, "target|null", {NOTHING(call.operand[1])}},
    {"value alone", ONEPASS_OK, "", {NOTHING(call.gradient[0]), NOTHING(call.gradient[1]), NOTHING(call.upstream)}},
    {"gradients alone", ONEPASS_OK, "", {NOTHING(call.value)}},
    {"one gradient alone", ONEPASS_OK, "", {NOTHING(call.value), NOTHING(call.gradient[0])}},

    /* Fields whose time has not come. */
    {"third operand", ONEPASS_NOT_SUPPORTED, "operand", {MEMBER(call.operand[2], target.tensor)}},
    {"fourth operand", ONEPASS_NOT_SUPPORTED, "operand", {MEMBER(call.operand[3], target.tensor)}},
    {"third gradient", ONEPASS_NOT_SUPPORTED, "gradient", {MEMBER(call.gradient[2], gradient_t.tensor)}},
    {"fourth gradient", ONEPASS_NOT_SUPPORTED, "gradient", {MEMBER(call.gradient[3], gradient_t.tensor)}},
    {"weight", ONEPASS_NOT_SUPPORTED, "weight", {MEMBER(call.weight, target.tensor)}},
    {"mask", ONEPASS_NOT_SUPPORTED, "mask", {MEMBER(call.mask, target.tensor)}},
    {"stream", ONEPASS_NOT_SUPPORTED, "stream", {MEMBER(call.stream, tail)}},
    {"workspace", ONEPASS_NOT_SUPPORTED, "workspace", {MEMBER(call.workspace, tail)}},
    {"workspace_size", ONEPASS_NOT_SUPPORTED, "workspace", {INTEGER(call.workspace_size, 64)}},

    /* The divisor. */
    {"divisor", ONEPASS_OK, "", {REAL(call.divisor, 4)}},
    {"divisor NaN", ONEPASS_INVALID_ARGUMENT, "divisor|nan", {REAL(call.divisor, NAN)}},
    {"divisor negative", ONEPASS_INVALID_ARGUMENT, "divisor|-2", {REAL(call.divisor, -2)}},
    {"divisor infinite", ONEPASS_INVALID_ARGUMENT, "divisor|inf", {REAL(call.divisor, INFINITY)}},
    {"divisor minus infinite", ONEPASS_INVALID_ARGUMENT, "divisor|inf", {REAL(call.divisor, -INFINITY)}},
    {"divisor with sum",
     ONEPASS_INVALID_ARGUMENT,
     "divisor|mean",
     {REAL(call.divisor, 4), INTEGER(call.reduction, ONEPASS_SUM)}},
    {"divisor with none",
     ONEPASS_INVALID_ARGUMENT,
     "divisor|mean",
     {REAL(call.divisor, 4), INTEGER(call.reduction, ONEPASS_NONE), SHAPE(value, 2, 2, 3), SHAPE(upstream, 2, 2, 3)}},
};

/* What may be wrong with a tensor, whichever it is: these run for each of the six. */
static const argument_case tensor_cases[] = {
    {"type 0", ONEPASS_INVALID_ARGUMENT, "type|0", {OWN_INTEGER(tensor.dtype, 0)}},
    {"type 5", ONEPASS_INVALID_ARGUMENT, "type|5", {OWN_INTEGER(tensor.dtype, 5)}},
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
    {"a stride whose bytes overflow",
     ONEPASS_INVALID_SHAPE,
     "stride",
     {OWN_SHAPE(2, 2, 3), OWN_STRIDES(INT64_MAX / 2, 1)}},
    {"strides that overflow together",
     ONEPASS_INVALID_SHAPE,
     "stride",
     {OWN_SHAPE(3, 2, 2, 2), OWN_STRIDES(INT64_MAX / 4 * 3, INT64_MAX / 4 * 3, 1)}},
    {"no memory", ONEPASS_INVALID_ARGUMENT, "data|null", {OWN_INTEGER(tensor.data, 0)}},
};

/* What may be wrong with where a tensor lies: these run for each of the six, whose shape they leave as it is. */
static const argument_case place_cases[] = {
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
    {"empty, gradients that are not",
     ONEPASS_INVALID_SHAPE,
     "gradient|(2, 3)|(0, 3)",
     {SHAPE(prediction, 2, 0, 3), SHAPE(target, 2, 0, 3)}},
};

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

    /* Inputs may share what they like. */
    {"prediction and target in one place", ONEPASS_OK, "", {MEMBER(target.tensor.data, prediction.memory)}},
    {"upstream gradient in the prediction", ONEPASS_OK, "", {MEMBER(upstream.tensor.data, prediction.memory[4])}},
};

/* ---------------------------------------------------------------- running them -- */

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* A sentence: something, without a line's end, and with every word that was expected. */
static bool sentence_has(const char *sentence, const char *words) {
    if (sentence[0] == '\0' || sentence[strlen(sentence) - 1] == '\n')
        return false;
    while (*words != '\0') {
        char word[64] = "";
        size_t length = strcspn(words, "|");
        memcpy(word, words, length);
        if (!strstr(sentence, word))
            return false;
        words += length + (words[length] == '|');
    }
    return true;
}

/* The call of the scene, and then a good one: an error must leave no trace but its message. */
static void expect(scene *s, const argument_case *argument_case, const char *whose) {
    memcpy(&before, s, sizeof before);
    onepass_status status = onepass_run(&s->call);
    const char *message = onepass_message();
    CHECK(status == argument_case->status, "%s %s: %s expected, %s came: \"%s\"", whose, argument_case->name,
          onepass_status_name(argument_case->status), onepass_status_name(status), message);
    if (argument_case->status == ONEPASS_OK) {
        CHECK(message[0] == '\0', "%s %s: a message although all is well: \"%s\"", whose, argument_case->name, message);
        return;
    }
    CHECK(sentence_has(message, argument_case->words), "%s %s: the message lacks one of \"%s\": \"%s\"", whose,
          argument_case->name, argument_case->words, message);
    CHECK(sentence_has(message, whose), "%s %s: the message does not name it: \"%s\"", whose, argument_case->name,
          message);
    CHECK(memcmp(&before, s, sizeof before) == 0, "%s %s: something was written", whose, argument_case->name);
    status = onepass_run(&good_scene()->call);
    CHECK(status == ONEPASS_OK && onepass_message()[0] == '\0', "a good call after %s %s: %s \"%s\"", whose,
          argument_case->name, onepass_status_name(status), onepass_message());
}

static void run_cases(const argument_case *cases, size_t count, size_t base, const char *whose) {
    for (size_t i = 0; i < count; i++) {
        scene *s = good_scene();
        for (int e = 0; e < EDITS; e++)
            apply(s, &cases[i].edits[e], base);
        expect(s, &cases[i], whose);
    }
}

static void test_cases(void) {
    run_cases(call_cases, COUNT(call_cases), 0, "");
    run_cases(shape_cases, COUNT(shape_cases), 0, "");
    run_cases(overlap_cases, COUNT(overlap_cases), 0, "");
    static const struct {
        const char *name;
        size_t base;
    } parts[] = {
        {"prediction", offsetof(scene, prediction)}, {"target", offsetof(scene, target)},
        {"upstream", offsetof(scene, upstream)},     {"value", offsetof(scene, value)},
        {"gradient", offsetof(scene, gradient_p)},   {"gradient", offsetof(scene, gradient_t)},
    };
    for (size_t p = 0; p < COUNT(parts); p++) {
        run_cases(tensor_cases, COUNT(tensor_cases), parts[p].base, parts[p].name);
        run_cases(place_cases, COUNT(place_cases), parts[p].base, parts[p].name);
    }
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

static void test_null_call(void) {
    HOLDS(onepass_run(NULL) == ONEPASS_INVALID_ARGUMENT);
    CHECK(sentence_has(onepass_message(), "call|null"), "\"%s\"", onepass_message());
    HOLDS(onepass_run(&good_scene()->call) == ONEPASS_OK);
    HOLDS(onepass_message()[0] == '\0');
}

/* ---------------------------------------------------------------- the short functions -- */

static void expect_refusal(onepass_status status, onepass_status expected, const char *words, const char *what) {
    const char *message = onepass_message();
    CHECK(status == expected, "%s: %s expected, %s came: \"%s\"", what, onepass_status_name(expected),
          onepass_status_name(status), message);
    CHECK(sentence_has(message, words), "%s: the message lacks one of \"%s\": \"%s\"", what, words, message);
}

static void test_short_functions(void) {
    scene *s = good_scene();
    onepass_tensor *p = &s->prediction.tensor, *t = &s->target.tensor, *u = &s->upstream.tensor;
    onepass_tensor *v = &s->value.tensor, *gp = &s->gradient_p.tensor, *gt = &s->gradient_t.tensor;
    memcpy(&before, s, sizeof before);
    onepass_status bad = ONEPASS_INVALID_ARGUMENT;
    expect_refusal(onepass_forward(NULL, ONEPASS_MEAN, p, t, v), bad, "loss|null", "forward, no loss");
    expect_refusal(onepass_forward("mze", ONEPASS_MEAN, p, t, v), bad, "loss|mze", "forward, unknown loss");
    expect_refusal(onepass_forward("mse", (onepass_reduction)9, p, t, v), bad, "reduction|9", "forward, reduction 9");
    expect_refusal(onepass_forward("mse", ONEPASS_MEAN, NULL, t, v), bad, "prediction|null", "forward, no prediction");
    expect_refusal(onepass_forward("mse", ONEPASS_MEAN, p, NULL, v), bad, "target|null", "forward, no target");
    expect_refusal(onepass_forward("mse", ONEPASS_MEAN, p, t, NULL), bad, "value", "forward, no value");
    expect_refusal(onepass_backward("mse", ONEPASS_MEAN, p, t, u, NULL, NULL), bad, "gradient", "backward, nothing");
    expect_refusal(onepass_backward("mse", ONEPASS_MEAN, p, NULL, u, gp, gt), bad, "target", "backward, no target");
    expect_refusal(onepass_forward_backward("mse", ONEPASS_MEAN, NULL, t, v, gp), bad, "prediction",
                   "forward and backward, no prediction");
    HOLDS(memcmp(&before, s, sizeof before) == 0);
    HOLDS(onepass_backward("mse", ONEPASS_MEAN, p, t, NULL, gp, NULL) == ONEPASS_OK);
    HOLDS(onepass_backward("mse", ONEPASS_MEAN, p, t, u, NULL, gt) == ONEPASS_OK);
    HOLDS(onepass_forward("mse", ONEPASS_MEAN, p, t, v) == ONEPASS_OK);
    HOLDS(onepass_forward_backward("mse", ONEPASS_MEAN, p, t, v, gp) == ONEPASS_OK);
    HOLDS(onepass_message()[0] == '\0');
}

static void test_mean_f32(void) {
    const float p[3] = {1, 2, 3}, t[3] = {3, 2, 1};
    const float poison = 77;
    float value = poison, gradient[3] = {poison, poison, poison};
    onepass_status bad = ONEPASS_INVALID_ARGUMENT;
    expect_refusal(onepass_mean_f32(NULL, 3, p, t, &value, gradient), bad, "loss", "mean_f32, no loss");
    expect_refusal(onepass_mean_f32("mse", -1, p, t, &value, gradient), ONEPASS_INVALID_SHAPE, "-1",
                   "mean_f32, count -1");
    expect_refusal(onepass_mean_f32("mse", 3, NULL, t, &value, gradient), bad, "prediction|null",
                   "mean_f32, no prediction");
    expect_refusal(onepass_mean_f32("mse", 3, p, NULL, &value, gradient), bad, "target|null", "mean_f32, no target");
    expect_refusal(onepass_mean_f32("mse", 3, p, t, NULL, NULL), bad, "value|gradient", "mean_f32, nothing wanted");
    expect_refusal(onepass_mean_f32("mse", INT64_MAX, p, t, &value, gradient), ONEPASS_INVALID_SHAPE,
                   "9223372036854775807", "mean_f32, count 2^63 - 1");
    HOLDS(value == poison && gradient[0] == poison && gradient[1] == poison && gradient[2] == poison);
    HOLDS(onepass_mean_f32("mse", 0, NULL, NULL, &value, NULL) == ONEPASS_OK);
    HOLDS(isnan(value));
    HOLDS(onepass_mean_f32("mse", 3, p, t, &value, NULL) == ONEPASS_OK);
    HOLDS(value == 8.0f / 3.0f);
    HOLDS(onepass_mean_f32("mse", 3, p, t, NULL, gradient) == ONEPASS_OK);
    HOLDS(gradient[1] == 0 && gradient[0] == -gradient[2]);
    HOLDS(onepass_message()[0] == '\0');
}

/* ---------------------------------------------------------------- the accumulator -- */

enum {
    WHOLE = 2500 /* two tiles and a bit */
};

/* A call over `count` elements of a slice; zero strides make it fit the scene. */
static scene *slice_scene(int64_t count) {
    scene *s = good_scene();
    part *const operands[] = {&s->prediction, &s->target};
    for (int i = 0; i < 2; i++) {
        operands[i]->tensor.ndim = 1;
        operands[i]->tensor.strides = operands[i]->strides;
        operands[i]->shape[0] = count;
    }
    s->call.loss = "smooth_l1";
    s->call.parameter_count = 1;
    s->call.parameter[0] = 0.5;
    s->call.upstream = s->call.value = s->call.gradient[0] = s->call.gradient[1] = NULL;
    return s;
}

/* What an accumulator begins with: no operands. */
static scene *begin_scene(void) {
    scene *s = slice_scene(0);
    s->call.operand[0] = s->call.operand[1] = NULL;
    return s;
}

static onepass_accumulator *begin(int64_t total) {
    onepass_accumulator *accumulator = NULL;
    HOLDS(onepass_accumulator_begin(&accumulator, &begin_scene()->call, total) == ONEPASS_OK);
    return accumulator;
}

static const struct {
    argument_case what;
    int64_t total;
} begin_cases[] = {
    {{"size 0", ONEPASS_INVALID_ARGUMENT, "size", {INTEGER(call.size, 0)}}, WHOLE},
    {{"total -1", ONEPASS_INVALID_ARGUMENT, "total|-1", {{0}}}, -1},
    {{"loss null", ONEPASS_INVALID_ARGUMENT, "loss", {TEXT(call.loss, NULL)}}, WHOLE},
    {{"loss unknown", ONEPASS_INVALID_ARGUMENT, "loss|mze", {TEXT(call.loss, "mze")}}, WHOLE},
    {{"reduction none", ONEPASS_INVALID_ARGUMENT, "reduction|NONE", {INTEGER(call.reduction, ONEPASS_NONE)}}, WHOLE},
    {{"reduction 7", ONEPASS_INVALID_ARGUMENT, "reduction|7", {INTEGER(call.reduction, 7)}}, WHOLE},
    {{"beta negative", ONEPASS_INVALID_ARGUMENT, "beta", {REAL(call.parameter[0], -1)}}, WHOLE},
    {{"beta NaN", ONEPASS_INVALID_ARGUMENT, "beta", {REAL(call.parameter[0], NAN)}}, WHOLE},
    {{"two parameters", ONEPASS_INVALID_ARGUMENT, "parameter", {INTEGER(call.parameter_count, 2)}}, WHOLE},
    {{"divisor negative", ONEPASS_INVALID_ARGUMENT, "divisor", {REAL(call.divisor, -1)}}, WHOLE},
    {{"weight", ONEPASS_NOT_SUPPORTED, "weight", {MEMBER(call.weight, target.tensor)}}, WHOLE},
    {{"flags", ONEPASS_NOT_SUPPORTED, "flags", {INTEGER(call.flags, 2)}}, WHOLE},
    {{"a GPU", ONEPASS_NO_DEVICE, "CUDA", {INTEGER(call.device, ONEPASS_CUDA)}}, WHOLE},
};

static void test_accumulator_begin(void) {
    char nowhere;
    onepass_accumulator *const untouched = (onepass_accumulator *)(void *)&nowhere;
    onepass_accumulator *accumulator = untouched;
    expect_refusal(onepass_accumulator_begin(NULL, &begin_scene()->call, WHOLE), ONEPASS_INVALID_ARGUMENT,
                   "accumulator|null", "begin, no place for the accumulator");
    expect_refusal(onepass_accumulator_begin(&accumulator, NULL, WHOLE), ONEPASS_INVALID_ARGUMENT, "call|null",
                   "begin, no call");
    for (size_t i = 0; i < COUNT(begin_cases); i++) {
        const argument_case *what = &begin_cases[i].what;
        scene *s = begin_scene();
        for (int e = 0; e < EDITS; e++)
            apply(s, &what->edits[e], 0);
        char name[100];
        snprintf(name, sizeof name, "begin, %s", what->name);
        expect_refusal(onepass_accumulator_begin(&accumulator, &s->call, begin_cases[i].total), what->status,
                       what->words, name);
        CHECK(accumulator == untouched, "%s: the accumulator was written", name);
        if (accumulator != untouched)
            onepass_accumulator_destroy(accumulator);
        accumulator = untouched;
    }
    onepass_accumulator_destroy(NULL);
}

/* Slices that an accumulator which has seen the first tile of WHOLE elements must refuse. */
static const struct {
    argument_case what;
    int64_t first, count;
} add_cases[] = {
    {{"size 0", ONEPASS_INVALID_ARGUMENT, "size", {INTEGER(call.size, 0)}}, 1024, 1024},
    {{"off a tile", ONEPASS_INVALID_ARGUMENT, "first|1025|1024", {{0}}}, 1025, 1024},
    {{"first negative", ONEPASS_INVALID_ARGUMENT, "first|-1024", {{0}}}, -1024, 1024},
    {{"first least", ONEPASS_INVALID_ARGUMENT, "first", {{0}}}, INT64_MIN, 1024},
    {{"first behind the end", ONEPASS_INVALID_SHAPE, "3072|2500", {{0}}}, 3072, 1024},
    {{"first close to overflow", ONEPASS_INVALID_SHAPE, "2500", {{0}}}, INT64_MAX - 1023, 1024},
    {{"beyond the end", ONEPASS_INVALID_SHAPE, "2500", {{0}}}, 2048, 1024},
    {{"ends off a tile", ONEPASS_INVALID_SHAPE, "1024", {{0}}}, 1024, 100},
    {{"the same slice again", ONEPASS_INVALID_ARGUMENT, "0", {{0}}}, 0, 1024},
    {{"a slice that was seen in part", ONEPASS_INVALID_ARGUMENT, "0", {{0}}}, 0, 2048},
    {{"value wanted", ONEPASS_INVALID_ARGUMENT, "value", {MEMBER(call.value, value.tensor)}}, 1024, 1024},
    {{"another loss", ONEPASS_INVALID_ARGUMENT, "loss|smooth_l1", {TEXT(call.loss, "hinge")}}, 1024, 1024},
    {{"another beta", ONEPASS_INVALID_ARGUMENT, "parameters|smooth_l1", {REAL(call.parameter[0], 0.25)}}, 1024, 1024},
    {{"another reduction", ONEPASS_INVALID_ARGUMENT, "reduction", {INTEGER(call.reduction, ONEPASS_SUM)}}, 1024, 1024},
    {{"another divisor", ONEPASS_INVALID_ARGUMENT, "divisor", {REAL(call.divisor, 3)}}, 1024, 1024},
    {{"no prediction", ONEPASS_INVALID_ARGUMENT, "prediction|null", {NOTHING(call.operand[0])}}, 1024, 1024},
    {{"a target that does not broadcast", ONEPASS_INVALID_SHAPE, "target", {SHAPE(target, 1, 512)}}, 1024, 1024},
    {{"a gradient of another shape",
      ONEPASS_INVALID_SHAPE,
      "gradient",
      {MEMBER(call.gradient[0], gradient_p.tensor), SHAPE(gradient_p, 1, 7)}},
     1024,
     1024},
    {{"a gradient with zero strides",
      ONEPASS_INVALID_MEMORY,
      "gradient|overlap",
      {MEMBER(call.gradient[0], gradient_p.tensor), SHAPE(gradient_p, 1, 1024), STRIDES(gradient_p, 0)}},
     1024,
     1024},
    {{"an upstream gradient of another shape",
      ONEPASS_INVALID_SHAPE,
      "upstream",
      {MEMBER(call.upstream, upstream.tensor), SHAPE(upstream, 1, 1024)}},
     1024,
     1024},
};

static void add(onepass_accumulator *accumulator, int64_t first, int64_t count) {
    onepass_status status = onepass_accumulator_add(accumulator, &slice_scene(count)->call, first);
    CHECK(status == ONEPASS_OK && onepass_message()[0] == '\0', "add of %lld elements from %lld: \"%s\"",
          (long long)count, (long long)first, onepass_message());
}

/* After everything that was refused, the accumulator still finishes with the bits of one call over the whole. */
static void finish_and_compare(onepass_accumulator *accumulator) {
    scene *s = slice_scene(WHOLE);
    s->call.value = &s->value.tensor;
    HOLDS(onepass_run(&s->call) == ONEPASS_OK);
    uint32_t whole, pieces = 0;
    memcpy(&whole, s->value.memory, sizeof whole);
    onepass_tensor value = {&pieces, ONEPASS_F32, 0, NULL, NULL};
    for (int again = 0; again < 2; again++) {
        HOLDS(onepass_accumulator_finish(accumulator, &value) == ONEPASS_OK);
        CHECK(pieces == whole, "in pieces %08x, in one call %08x", pieces, whole);
    }
}

static void test_accumulator_add(void) {
    onepass_accumulator *accumulator = begin(WHOLE);
    add(accumulator, 0, 1024);
    expect_refusal(onepass_accumulator_add(NULL, &slice_scene(1024)->call, 1024), ONEPASS_INVALID_ARGUMENT,
                   "accumulator|null", "add, no accumulator");
    expect_refusal(onepass_accumulator_add(accumulator, NULL, 1024), ONEPASS_INVALID_ARGUMENT, "call|null",
                   "add, no call");
    for (size_t i = 0; i < COUNT(add_cases); i++) {
        const argument_case *what = &add_cases[i].what;
        scene *s = slice_scene(add_cases[i].count);
        for (int e = 0; e < EDITS; e++)
            apply(s, &what->edits[e], 0);
        memcpy(&before, s, sizeof before);
        char name[100];
        snprintf(name, sizeof name, "add, %s", what->name);
        expect_refusal(onepass_accumulator_add(accumulator, &s->call, add_cases[i].first), what->status, what->words,
                       name);
        CHECK(memcmp(&before, s, sizeof before) == 0, "%s: something was written", name);
    }
    add(accumulator, 2048, WHOLE - 2048);
    add(accumulator, 1024, 1024);
    finish_and_compare(accumulator);
    onepass_accumulator_destroy(accumulator);
}

static void test_accumulator_merge(void) {
    onepass_accumulator *first = begin(WHOLE), *second = begin(WHOLE), *shorter = begin(WHOLE - 1), *other = NULL;
    scene *s = begin_scene();
    s->call.loss = "hinge";
    HOLDS(onepass_accumulator_begin(&other, &s->call, WHOLE) == ONEPASS_OK);
    add(first, 0, 1024);
    add(second, 0, 1024);
    onepass_status bad = ONEPASS_INVALID_ARGUMENT;
    expect_refusal(onepass_accumulator_merge(NULL, second), bad, "null", "merge into nothing");
    expect_refusal(onepass_accumulator_merge(first, NULL), bad, "null", "merge from nothing");
    expect_refusal(onepass_accumulator_merge(first, first), bad, "", "merge with itself");
    expect_refusal(onepass_accumulator_merge(first, second), bad, "", "merge of what was seen already");
    expect_refusal(onepass_accumulator_merge(first, shorter), bad, "2500|2499", "merge of another total");
    expect_refusal(onepass_accumulator_merge(first, other), bad, "loss", "merge of another loss");
    onepass_accumulator_destroy(second);
    second = begin(WHOLE);
    add(second, 2048, WHOLE - 2048);
    add(first, 1024, 1024);
    HOLDS(onepass_accumulator_merge(first, second) == ONEPASS_OK);
    finish_and_compare(first);
    onepass_accumulator_destroy(first);
    onepass_accumulator_destroy(second);
    onepass_accumulator_destroy(shorter);
    onepass_accumulator_destroy(other);
}

static void test_accumulator_finish(void) {
    onepass_accumulator *accumulator = begin(WHOLE);
    _Alignas(8) unsigned char memory[16];
    const int64_t two = 2;
    onepass_tensor value = {memory, ONEPASS_F32, 0, NULL, NULL};
    memset(memory, POISON, sizeof memory);
    onepass_status bad = ONEPASS_INVALID_ARGUMENT;
    expect_refusal(onepass_accumulator_finish(NULL, &value), bad, "accumulator|null", "finish, no accumulator");
    add(accumulator, 0, 2048);
    expect_refusal(onepass_accumulator_finish(accumulator, &value), ONEPASS_INCOMPLETE, "2 of the 3",
                   "finish too early");
    add(accumulator, 2048, WHOLE - 2048);
    expect_refusal(onepass_accumulator_finish(accumulator, NULL), bad, "value|null", "finish, no value");
    value.shape = &two;
    value.ndim = 1;
    expect_refusal(onepass_accumulator_finish(accumulator, &value), ONEPASS_INVALID_SHAPE, "value|(2,)",
                   "finish into two elements");
    value.ndim = 0;
    value.dtype = 9;
    expect_refusal(onepass_accumulator_finish(accumulator, &value), bad, "value|type|9", "finish into type 9");
    value.dtype = ONEPASS_F64;
    value.data = memory + 4;
    expect_refusal(onepass_accumulator_finish(accumulator, &value), ONEPASS_INVALID_MEMORY, "value|align",
                   "finish into misaligned memory");
    value.data = NULL;
    expect_refusal(onepass_accumulator_finish(accumulator, &value), bad, "value|null", "finish into no memory");
    for (size_t i = 0; i < sizeof memory; i++)
        HOLDS(memory[i] == POISON);
    finish_and_compare(accumulator);
    onepass_accumulator_destroy(accumulator);

    accumulator = begin(0);
    float nothing = 0;
    value = (onepass_tensor){&nothing, ONEPASS_F32, 0, NULL, NULL};
    HOLDS(onepass_accumulator_finish(accumulator, &value) == ONEPASS_OK);
    HOLDS(isnan(nothing));
    onepass_accumulator_destroy(accumulator);
}

/* ---------------------------------------------------------------- messages and threads -- */

static void *complain(void *argument) {
    const char *loss = argument;
    onepass_call call = {.size = sizeof call, .loss = loss};
    uintptr_t wrong = onepass_message()[0] != '\0'; /* another thread's error is not ours */
    for (int i = 0; i < 1000; i++) {
        wrong += onepass_run(&call) != ONEPASS_INVALID_ARGUMENT;
        wrong += strstr(onepass_message(), loss) == NULL;
    }
    return (void *)wrong;
}

static void test_messages_of_threads(void) {
    static char names[2][16] = {"apples", "oranges"};
    pthread_t threads[2];
    onepass_call call = {.size = sizeof call, .loss = "bananas"};
    HOLDS(onepass_run(&call) == ONEPASS_INVALID_ARGUMENT);
    for (int i = 0; i < 2; i++)
        HOLDS(pthread_create(&threads[i], NULL, complain, names[i]) == 0);
    for (int i = 0; i < 2; i++) {
        void *wrong = NULL;
        pthread_join(threads[i], &wrong);
        CHECK(wrong == NULL, "thread %d: %d wrong messages", i, (int)(uintptr_t)wrong);
    }
    CHECK(strstr(onepass_message(), "bananas") != NULL, "\"%s\"", onepass_message());
    HOLDS(onepass_run(&good_scene()->call) == ONEPASS_OK);
    HOLDS(onepass_message()[0] == '\0');
}

/* A name of any length, and one that printf would understand, must not break the sentence or what is behind it. */
static void test_long_names(void) {
    static char name[100000];
    memset(name, 'x', sizeof name - 1);
    onepass_call call = {.size = sizeof call, .loss = name};
    expect_refusal(onepass_run(&call), ONEPASS_INVALID_ARGUMENT, "loss", "a loss with a very long name");
    call.loss = "%s%n%d";
    expect_refusal(onepass_run(&call), ONEPASS_INVALID_ARGUMENT, "loss|%s%n%d", "a loss with a format for a name");
}

/* ---------------------------------------------------------------- asking -- */

static void test_names(void) {
    static const char *const names[] = {
        "ONEPASS_OK",
        "ONEPASS_INVALID_ARGUMENT",
        "ONEPASS_INVALID_SHAPE",
        "ONEPASS_INVALID_MEMORY",
        "ONEPASS_NOT_SUPPORTED",
        "ONEPASS_NO_DEVICE",
        "ONEPASS_OUT_OF_MEMORY",
        "ONEPASS_INCOMPLETE",
    };
    for (size_t i = 0; i < COUNT(names); i++)
        CHECK(strcmp(onepass_status_name((onepass_status)i), names[i]) == 0, "status %d is called %s", (int)i,
              onepass_status_name((onepass_status)i));
    HOLDS(onepass_status_name((onepass_status)99) != NULL);
    HOLDS(onepass_status_name((onepass_status)-1) != NULL);
    HOLDS(onepass_version() == ONEPASS_VERSION);
    char version[32];
    snprintf(version, sizeof version, "%d.%d.%d", ONEPASS_VERSION_MAJOR, ONEPASS_VERSION_MINOR, ONEPASS_VERSION_PATCH);
    CHECK(strcmp(onepass_version_text(), version) == 0, "version %s, header %s", onepass_version_text(), version);
}

static void test_list_of_losses(void) {
    static const struct {
        const char *name, *parameter;
        double standard;
    } losses[] = {{"mse", NULL, 0}, {"smooth_l1", "beta", 1}, {"hinge", "margin", 1}};
    for (size_t i = 0; i < COUNT(losses); i++) {
        const onepass_loss_info *info = onepass_loss_named(losses[i].name);
        CHECK(info != NULL, "%s is not listed", losses[i].name);
        if (info == NULL)
            continue;
        HOLDS(strcmp(info->name, losses[i].name) == 0);
        HOLDS(info->operand_count == 2);
        HOLDS(info->parameter_count == (losses[i].parameter != NULL));
        if (info->parameter_count == 1 && losses[i].parameter != NULL) {
            HOLDS(strcmp(info->parameter[0].name, losses[i].parameter) == 0);
            HOLDS(info->parameter[0].standard == losses[i].standard);
            HOLDS(info->parameter[0].meaning[0] != '\0');
        }
    }
    int32_t count = 0;
    for (const onepass_loss_info *info; (info = onepass_loss_at(count)) != NULL; count++) {
        HOLDS(onepass_loss_named(info->name) == info);
        HOLDS(info->meaning[0] != '\0' && info->value[0] != '\0' && info->slope[0] != '\0');
    }
    CHECK(count >= (int32_t)COUNT(losses), "%d losses are listed", (int)count); /* these and later ones */
    HOLDS(onepass_loss_at(-1) == NULL && onepass_loss_at(INT32_MIN) == NULL && onepass_loss_at(INT32_MAX) == NULL);
    HOLDS(onepass_loss_named(NULL) == NULL && onepass_loss_named("") == NULL && onepass_loss_named("mze") == NULL);
    HOLDS(onepass_loss_named("smooth_l1")->parameter[0].least == 0);
}

/* The list's word is the check's word: what it calls least is accepted, what is below is not, and NaN never is. */
static void test_least_parameters(void) {
    for (int32_t i = 0; onepass_loss_at(i) != NULL; i++) {
        const onepass_loss_info *info = onepass_loss_at(i);
        for (int32_t k = 0; k < info->parameter_count; k++) {
            const onepass_parameter_info *parameter = &info->parameter[k];
            scene *s = good_scene();
            s->call.loss = info->name;
            s->call.parameter_count = k + 1;
            for (int32_t j = 0; j < k; j++)
                s->call.parameter[j] = info->parameter[j].standard;
            s->call.parameter[k] = parameter->least;
            CHECK(onepass_run(&s->call) == ONEPASS_OK, "%s, %s = %g: \"%s\"", info->name, parameter->name,
                  parameter->least, onepass_message());
            s->call.parameter[k] = NAN;
            expect_refusal(onepass_run(&s->call), ONEPASS_INVALID_ARGUMENT, parameter->name, info->name);
            if (isinf(parameter->least))
                continue;
            s->call.parameter[k] = nextafter(parameter->least, -INFINITY);
            expect_refusal(onepass_run(&s->call), ONEPASS_INVALID_ARGUMENT, parameter->name, info->name);
        }
    }
}

static void test_machine(void) {
    expect_refusal(onepass_machine(NULL), ONEPASS_INVALID_ARGUMENT, "null", "machine, nowhere to write");
    onepass_machine_info info, untouched;
    memset(&info, POISON, sizeof info);
    static const size_t wrong[] = {0, 1, sizeof info - 1, SIZE_MAX};
    for (size_t i = 0; i < COUNT(wrong) - 1; i++) {
        info.size = wrong[i];
        memcpy(&untouched, &info, sizeof info);
        expect_refusal(onepass_machine(&info), ONEPASS_INVALID_ARGUMENT, "size", "machine, wrong size");
        HOLDS(memcmp(&untouched, &info, sizeof info) == 0);
    }
    info.size = sizeof info;
    HOLDS(onepass_machine(&info) == ONEPASS_OK);
    HOLDS(onepass_message()[0] == '\0');
    HOLDS(info.instruction_set[0] != '\0' && strstr(info.instruction_sets, info.instruction_set) != NULL);
    HOLDS(info.threads >= 1);
    CHECK(info.gpu_count > 0 ? info.gpu_reason[0] == '\0' : info.gpu_reason[0] != '\0', "%d GPUs, \"%s\"",
          (int)info.gpu_count, info.gpu_reason);
}

/* ---------------------------------------------------------------- in a process of its own -- */

/* A number of threads that no machine has, for a call with a tile for each: the library must take fewer. Where it does
 * not, the OpenMP runtime ends the process. */
static int child_with_many_threads(void) {
    scene *s = good_scene();
    part *const operands[] = {&s->prediction, &s->target};
    for (int i = 0; i < 2; i++) {
        operands[i]->tensor.ndim = 1;
        operands[i]->tensor.strides = operands[i]->strides;
        operands[i]->shape[0] = (int64_t)100000 * ONEPASS_TILE;
    }
    s->call.gradient[0] = s->call.gradient[1] = NULL;
    s->call.threads = INT32_MAX;
    float value = 0;
    s->value.tensor.data = &value;
    return onepass_run(&s->call) == ONEPASS_OK && value == 1 ? 0 : 2; /* the mean of (1 - 0)^2 */
}

/* ONEPASS_ISA is read once, so each value needs a process of its own: this program again, with two arguments. Returns 0
 * if the library does what it must with the name: "known" or "unknown". */
static int child_with_instruction_set(const char *expectation) {
    const char *name = getenv("ONEPASS_ISA");
    onepass_machine_info info = {.size = sizeof info};
    bool known = strcmp(expectation, "known") == 0;
    for (int again = 0; again < 2; again++) {
        scene *s = good_scene();
        memcpy(&before, s, sizeof before);
        onepass_status status = onepass_run(&s->call);
        if (known && status != ONEPASS_OK)
            return 2;
        if (!known && (status == ONEPASS_OK || !sentence_has(onepass_message(), "ONEPASS_ISA") ||
                       !sentence_has(onepass_message(), name) || memcmp(&before, s, sizeof before) != 0)) {
            fprintf(stderr, "run: %s \"%s\"\n", onepass_status_name(status), onepass_message());
            return 3;
        }
        status = onepass_machine(&info);
        if (known && (status != ONEPASS_OK || strcmp(info.instruction_set, name) != 0))
            return 4;
        const char *there = getenv("ONEPASS_TEST_SETS"); /* as the parent was told them, '|' between */
        if (!known && (status == ONEPASS_OK || !sentence_has(onepass_message(), there))) {
            fprintf(stderr, "machine: %s \"%s\"\n", onepass_status_name(status), onepass_message());
            return 5;
        }
    }
    return 0;
}

static int run_child(const char *program, const char *instruction_set, const char *expectation) {
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        if (instruction_set != NULL)
            setenv("ONEPASS_ISA", instruction_set, 1);
        execl(program, program, "--child", expectation, (char *)NULL);
        _exit(127);
    }
    int status = -1;
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
        return -1;
    return WEXITSTATUS(status);
}

static void test_many_threads(const char *program) {
    int code = run_child(program, NULL, "threads");
    if (code == 127)
        printf("left out: this program cannot start itself here, so a great number of threads is not tested\n");
    else
        CHECK(code == 0, "2^31 - 1 threads: child ended with %d (-1: by a signal)", code);
}

static void test_instruction_set_variable(const char *program) {
    onepass_machine_info info = {.size = sizeof info};
    HOLDS(onepass_machine(&info) == ONEPASS_OK);
    char sets[256];
    snprintf(sets, sizeof sets, "%s", info.instruction_sets);
    for (char *blank = sets; (blank = strchr(blank, ' ')) != NULL;)
        *blank = '|';
    setenv("ONEPASS_TEST_SETS", sets, 1);
    static const char *const unknown[] = {"abacus", "NEON ", "av", "neon,sve"};
    for (size_t i = 0; i < COUNT(unknown); i++) {
        int code = run_child(program, unknown[i], "unknown");
        if (code == 127) {
            printf("left out: this program cannot start itself here, so ONEPASS_ISA is not tested\n");
            return;
        }
        CHECK(code == 0, "ONEPASS_ISA=%s: child ended with %d", unknown[i], code);
    }
    for (char *name = strtok(sets, "|"); name != NULL; name = strtok(NULL, "|")) {
        int code = run_child(program, name, "known");
        CHECK(code == 0, "ONEPASS_ISA=%s: child ended with %d", name, code);
    }
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "--child") == 0)
        return strcmp(argv[2], "threads") == 0 ? child_with_many_threads() : child_with_instruction_set(argv[2]);
    HOLDS(onepass_message()[0] == '\0');
    test_null_call();
    test_cases();
    test_good_values();
    test_short_functions();
    test_mean_f32();
    test_accumulator_begin();
    test_accumulator_add();
    test_accumulator_merge();
    test_accumulator_finish();
    test_messages_of_threads();
    test_long_names();
    test_names();
    test_list_of_losses();
    test_least_parameters();
    test_machine();
    test_many_threads(argv[0]);
    test_instruction_set_variable(argv[0]);
    return check_finish();
}
