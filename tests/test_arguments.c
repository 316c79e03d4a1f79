/*
 * Bad arguments, apart from tensors: every field of the call, the short functions and the accumulator refuse what they
 * must with the right status and a sentence that names it, and write nothing.
 */
#include <onepass.h>

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "refusals.h"

/* ---------------------------------------------------------------- the call -- */

static const argument_case call_cases[] = {
    {"the good call", ONEPASS_OK, "", {{0}}},

    /* The size field. */
    {"size 0", ONEPASS_INVALID_ARGUMENT, "size|0", {INTEGER(call.size, 0)}},
    {"size too small",
     ONEPASS_INVALID_ARGUMENT,
     "size",
     {INTEGER(call.size, offsetof(onepass_call, divisor_tensor) - 8)}},
    {"the size of version 0.1.0", ONEPASS_OK, "", {INTEGER(call.size, offsetof(onepass_call, divisor_tensor))}},
    {"the size of version 0.1.0, and something behind",
     ONEPASS_OK,
     "",
     {INTEGER(call.size, offsetof(onepass_call, divisor_tensor)), INTEGER(call.axis, 7), INTEGER(call.reserved, 1)}},
    {"size implausible", ONEPASS_INVALID_ARGUMENT, "size|4097", {INTEGER(call.size, 4097)}},
    {"size garbage", ONEPASS_INVALID_ARGUMENT, "size", {INTEGER(call.size, SIZE_MAX)}},
    {"size larger, zero tail", ONEPASS_OK, "", {INTEGER(call.size, sizeof(onepass_call) + 16)}},
    {"size larger, tail set",
     ONEPASS_NOT_SUPPORTED,
     "call|version",
     {INTEGER(call.size, sizeof(onepass_call) + 16), INTEGER(tail[9], 1)}},

    /* The loss and its parameters. */
    {"loss null", ONEPASS_INVALID_ARGUMENT, "loss|null", {TEXT(call.loss, NULL)}},
    {"loss empty", ONEPASS_INVALID_ARGUMENT, "loss|mse|smooth_l1|hinge", {TEXT(call.loss, "")}},
    {"loss unknown", ONEPASS_INVALID_ARGUMENT, "loss|mze|mse|smooth_l1|hinge|cross_entropy", {TEXT(call.loss, "mze")}},
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
    {"alpha that is 1 in six digits",
     ONEPASS_INVALID_ARGUMENT,
     "alpha|is 1.0000000001;|at most 1",
     {TEXT(call.loss, "focal"), INTEGER(call.parameter_count, 1), REAL(call.parameter[0], 1.0000000001)}},
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
    {"delta 0",
     ONEPASS_INVALID_ARGUMENT,
     "delta|huber|0",
     {TEXT(call.loss, "huber"), INTEGER(call.parameter_count, 1), REAL(call.parameter[0], 0)}},
    {"tau 0",
     ONEPASS_INVALID_ARGUMENT,
     "tau|quantile",
     {TEXT(call.loss, "quantile"), INTEGER(call.parameter_count, 1), REAL(call.parameter[0], 0)}},
    {"tau 1",
     ONEPASS_INVALID_ARGUMENT,
     "tau|quantile",
     {TEXT(call.loss, "quantile"), INTEGER(call.parameter_count, 1), REAL(call.parameter[0], 1)}},
    {"tau barely below 1",
     ONEPASS_OK,
     "",
     {TEXT(call.loss, "quantile"), INTEGER(call.parameter_count, 1), REAL(call.parameter[0], 1 - 0x1p-53)}},
    {"alpha above 1",
     ONEPASS_INVALID_ARGUMENT,
     "alpha|focal|1.5",
     {TEXT(call.loss, "focal"), INTEGER(call.parameter_count, 1), REAL(call.parameter[0], 1.5)}},
    {"alpha negative, which means none",
     ONEPASS_OK,
     "",
     {TEXT(call.loss, "focal"), INTEGER(call.parameter_count, 1), REAL(call.parameter[0], -1)}},
    {"the second parameter negative",
     ONEPASS_INVALID_ARGUMENT,
     "gamma|focal|-1",
     {TEXT(call.loss, "focal"), INTEGER(call.parameter_count, 2), REAL(call.parameter[0], 0.5),
      REAL(call.parameter[1], -1)}},
    {"two parameters",
     ONEPASS_OK,
     "",
     {TEXT(call.loss, "focal"), INTEGER(call.parameter_count, 2), REAL(call.parameter[0], 0.5),
      REAL(call.parameter[1], 1)}},
    {"three parameters for two",
     ONEPASS_INVALID_ARGUMENT,
     "parameter|focal|3",
     {TEXT(call.loss, "focal"), INTEGER(call.parameter_count, 3)}},
    {"a parameter that is not counted", ONEPASS_OK, "", {TEXT(call.loss, "smooth_l1"), REAL(call.parameter[0], NAN)}},

    /* Codes. */
    {"reduction 4", ONEPASS_INVALID_ARGUMENT, "reduction|4|BATCHMEAN", {INTEGER(call.reduction, 4)}},
    {"batchmean", ONEPASS_OK, "", {INTEGER(call.reduction, ONEPASS_BATCHMEAN)}},
    {"reduction -1", ONEPASS_INVALID_ARGUMENT, "reduction|-1", {INTEGER(call.reduction, -1)}},
    {"device 2", ONEPASS_INVALID_ARGUMENT, "device|2", {INTEGER(call.device, 2)}},
    {"device -1", ONEPASS_INVALID_ARGUMENT, "device|-1", {INTEGER(call.device, -1)}},
    {"a GPU before the first",
     ONEPASS_INVALID_ARGUMENT,
     "device_index|-1",
     {INTEGER(call.device, ONEPASS_CUDA), INTEGER(call.device_index, -1)}},
    {"threads negative on a GPU",
     ONEPASS_INVALID_ARGUMENT,
     "threads|-1",
     {INTEGER(call.device, ONEPASS_CUDA), INTEGER(call.threads, -1)}},
    {"a second CPU", ONEPASS_INVALID_ARGUMENT, "device_index|1", {INTEGER(call.device_index, 1)}},
    {"flags 4",
     ONEPASS_NOT_SUPPORTED,
     "flags is 4|ONEPASS_SKIP_IF_UPSTREAM_IS_ONE|ONEPASS_OVER_ELEMENTS",
     {INTEGER(call.flags, 4)}},
    {"flags, all of them", ONEPASS_NOT_SUPPORTED, "flags is -1", {INTEGER(call.flags, -1)}},
    {"flags, the sign alone", ONEPASS_NOT_SUPPORTED, "flags is -2147483648", {INTEGER(call.flags, INT32_MIN)}},
    {"flags, one more than is known",
     ONEPASS_NOT_SUPPORTED,
     "flags is 5|ONEPASS_SKIP_IF_UPSTREAM_IS_ONE",
     {INTEGER(call.flags, 5), NOTHING(call.value)}},
    {"an expected upstream gradient",
     ONEPASS_INVALID_ARGUMENT,
     "expected_upstream|no loss over rows",
     {REAL(call.expected_upstream, 1)}},
    {"over elements", ONEPASS_OK, "", {INTEGER(call.flags, ONEPASS_OVER_ELEMENTS)}},
    {"over elements, unless one",
     ONEPASS_OK,
     "",
     {INTEGER(call.flags, ONEPASS_OVER_ELEMENTS | ONEPASS_SKIP_IF_UPSTREAM_IS_ONE), NOTHING(call.value)}},
    {"a sum over elements",
     ONEPASS_INVALID_ARGUMENT,
     "ONEPASS_OVER_ELEMENTS|ONEPASS_MEAN",
     {INTEGER(call.flags, ONEPASS_OVER_ELEMENTS), INTEGER(call.reduction, ONEPASS_SUM)}},
    {"over elements and by a divisor",
     ONEPASS_INVALID_ARGUMENT,
     "ONEPASS_OVER_ELEMENTS|divisor",
     {INTEGER(call.flags, ONEPASS_OVER_ELEMENTS), REAL(call.divisor, 3)}},
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
    {"no third operand", ONEPASS_INVALID_ARGUMENT, "operand[2]|variance|null", {TEXT(call.loss, "gaussian_nll")}},
    {"no weight", ONEPASS_OK, "", {NOTHING(call.weight)}},
    {"no mask", ONEPASS_OK, "", {NOTHING(call.mask)}},
    {"neither weight nor mask", ONEPASS_OK, "", {NOTHING(call.weight), NOTHING(call.mask)}},
    {"value alone", ONEPASS_OK, "", {NOTHING(call.gradient[0]), NOTHING(call.gradient[1]), NOTHING(call.upstream)}},
    {"gradients alone", ONEPASS_OK, "", {NOTHING(call.value)}},
    {"one gradient alone", ONEPASS_OK, "", {NOTHING(call.value), NOTHING(call.gradient[0])}},

    /* More operands than the loss has. */
    {"third operand", ONEPASS_NOT_SUPPORTED, "operand", {MEMBER(call.operand[2], target.tensor)}},
    {"fourth operand", ONEPASS_NOT_SUPPORTED, "operand", {MEMBER(call.operand[3], target.tensor)}},
    {"third gradient", ONEPASS_NOT_SUPPORTED, "gradient", {MEMBER(call.gradient[2], gradient_t.tensor)}},
    {"fourth gradient", ONEPASS_NOT_SUPPORTED, "gradient", {MEMBER(call.gradient[3], gradient_t.tensor)}},

    /* Streams and workspaces are a GPU's. */
    {"stream on the CPU", ONEPASS_INVALID_ARGUMENT, "stream|ONEPASS_CPU", {MEMBER(call.stream, tail)}},
    {"workspace on the CPU", ONEPASS_INVALID_ARGUMENT, "workspace|ONEPASS_CPU", {MEMBER(call.workspace, tail)}},
    {"workspace_size on the CPU",
     ONEPASS_INVALID_ARGUMENT,
     "workspace|ONEPASS_CPU",
     {INTEGER(call.workspace_size, 64)}},
    {"workspace_size without workspace",
     ONEPASS_INVALID_ARGUMENT,
     "workspace_size|64|null",
     {INTEGER(call.device, ONEPASS_CUDA), INTEGER(call.workspace_size, 64)}},
    {"workspace beyond the address space",
     ONEPASS_INVALID_ARGUMENT,
     "workspace_size",
     {INTEGER(call.device, ONEPASS_CUDA), MEMBER(call.workspace, target.memory), INTEGER(call.workspace_size, -1)}},
    {"workspace misaligned",
     ONEPASS_INVALID_MEMORY,
     "workspace|misaligned|16",
     {INTEGER(call.device, ONEPASS_CUDA), MEMBER(call.workspace, target.memory[8]), INTEGER(call.workspace_size, 64)}},
    {"workspace over the target",
     ONEPASS_INVALID_MEMORY,
     "workspace|target|overlap",
     {INTEGER(call.device, ONEPASS_CUDA), MEMBER(call.workspace, target.memory[16]), INTEGER(call.workspace_size, 64)}},
    {"workspace over the upstream gradient",
     ONEPASS_INVALID_MEMORY,
     "workspace|upstream|overlap",
     {INTEGER(call.device, ONEPASS_CUDA), MEMBER(call.workspace, upstream.memory), INTEGER(call.workspace_size, 64)}},
    {"workspace over the weight",
     ONEPASS_INVALID_MEMORY,
     "workspace|weight|overlap",
     {INTEGER(call.device, ONEPASS_CUDA), MEMBER(call.workspace, weight.memory), INTEGER(call.workspace_size, 64)}},
    {"workspace over the mask",
     ONEPASS_INVALID_MEMORY,
     "workspace|mask|overlap",
     {INTEGER(call.device, ONEPASS_CUDA), MEMBER(call.workspace, mask.memory), INTEGER(call.workspace_size, 64)}},
    {"workspace over a gradient",
     ONEPASS_INVALID_MEMORY,
     "workspace|gradient|overlap",
     {INTEGER(call.device, ONEPASS_CUDA), MEMBER(call.workspace, gradient_t.memory), INTEGER(call.workspace_size, 8)}},

    /* Gradients that are computed anew unless the upstream gradient is 1. */
    {"unless one", ONEPASS_OK, "", {INTEGER(call.flags, ONEPASS_SKIP_IF_UPSTREAM_IS_ONE), NOTHING(call.value)}},
    {"unless one, of a sum",
     ONEPASS_OK,
     "",
     {INTEGER(call.flags, ONEPASS_SKIP_IF_UPSTREAM_IS_ONE), NOTHING(call.value), INTEGER(call.reduction, ONEPASS_SUM)}},
    {"unless one, with a value",
     ONEPASS_INVALID_ARGUMENT,
     "value is set|ONEPASS_SKIP_IF_UPSTREAM_IS_ONE|null",
     {INTEGER(call.flags, ONEPASS_SKIP_IF_UPSTREAM_IS_ONE)}},
    {"unless one, a value alone",
     ONEPASS_INVALID_ARGUMENT,
     "value is set|ONEPASS_SKIP_IF_UPSTREAM_IS_ONE",
     {INTEGER(call.flags, ONEPASS_SKIP_IF_UPSTREAM_IS_ONE), NOTHING(call.gradient[0]), NOTHING(call.gradient[1])}},
    {"unless one, nothing wanted",
     ONEPASS_INVALID_ARGUMENT,
     "value|gradient",
     {INTEGER(call.flags, ONEPASS_SKIP_IF_UPSTREAM_IS_ONE), NOTHING(call.value), NOTHING(call.gradient[0]),
      NOTHING(call.gradient[1])}},
    {"unless one, without upstream",
     ONEPASS_INVALID_ARGUMENT,
     "ONEPASS_SKIP_IF_UPSTREAM_IS_ONE|upstream|one element",
     {INTEGER(call.flags, ONEPASS_SKIP_IF_UPSTREAM_IS_ONE), NOTHING(call.value), NOTHING(call.upstream)}},
    {"unless one, with none",
     ONEPASS_INVALID_ARGUMENT,
     "ONEPASS_SKIP_IF_UPSTREAM_IS_ONE|one element|mean|sum",
     {INTEGER(call.flags, ONEPASS_SKIP_IF_UPSTREAM_IS_ONE), NOTHING(call.value), INTEGER(call.reduction, ONEPASS_NONE),
      SHAPE(upstream, 2, 2, 3)}},
    {"unless one, upstream of six elements",
     ONEPASS_INVALID_SHAPE,
     "upstream|(2, 3)",
     {INTEGER(call.flags, ONEPASS_SKIP_IF_UPSTREAM_IS_ONE), NOTHING(call.value), SHAPE(upstream, 2, 2, 3)}},
    {"unless one, gradient[0] over the prediction",
     ONEPASS_INVALID_MEMORY,
     "gradient[0]|operand|ONEPASS_SKIP_IF_UPSTREAM_IS_ONE|its own",
     {INTEGER(call.flags, ONEPASS_SKIP_IF_UPSTREAM_IS_ONE), NOTHING(call.value),
      MEMBER(gradient_p.tensor.data, prediction.memory)}},
    {"unless one, gradient[1] over the target",
     ONEPASS_INVALID_MEMORY,
     "gradient[1]|operand|ONEPASS_SKIP_IF_UPSTREAM_IS_ONE|its own",
     {INTEGER(call.flags, ONEPASS_SKIP_IF_UPSTREAM_IS_ONE), NOTHING(call.value),
      MEMBER(gradient_t.tensor.data, target.memory)}},

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
    {"divisor with batchmean",
     ONEPASS_INVALID_ARGUMENT,
     "divisor|mean",
     {REAL(call.divisor, 4), INTEGER(call.reduction, ONEPASS_BATCHMEAN)}},
    {"divisor with none",
     ONEPASS_INVALID_ARGUMENT,
     "divisor|mean",
     {REAL(call.divisor, 4), INTEGER(call.reduction, ONEPASS_NONE), SHAPE(value, 2, 2, 3), SHAPE(upstream, 2, 2, 3)}},
};

/* The same of a call of three operands. */
static const argument_case third_cases[] = {
    {"the good call", ONEPASS_OK, "", {{0}}},
    {"no variance", ONEPASS_INVALID_ARGUMENT, "operand[2]|variance|null", {NOTHING(call.operand[2])}},
    {"no target", ONEPASS_INVALID_ARGUMENT, "operand[1]|target|null", {NOTHING(call.operand[1])}},
    {"the third gradient alone",
     ONEPASS_OK,
     "",
     {NOTHING(call.value), NOTHING(call.gradient[0]), NOTHING(call.gradient[1])}},
    {"nothing wanted",
     ONEPASS_INVALID_ARGUMENT,
     "value|gradient",
     {NOTHING(call.value), NOTHING(call.gradient[0]), NOTHING(call.gradient[1]), NOTHING(call.gradient[2])}},
    {"fourth operand", ONEPASS_NOT_SUPPORTED, "operand", {MEMBER(call.operand[3], target.tensor)}},
    {"fourth gradient", ONEPASS_NOT_SUPPORTED, "gradient", {MEMBER(call.gradient[3], gradient_t.tensor)}},
    {"a loss of two", ONEPASS_NOT_SUPPORTED, "operand", {TEXT(call.loss, "mse")}},
    {"a loss of two, the gradient alone",
     ONEPASS_NOT_SUPPORTED,
     "gradient",
     {TEXT(call.loss, "mse"), NOTHING(call.operand[2])}},
    {"unless one, gradient[2] over the variance",
     ONEPASS_INVALID_MEMORY,
     "gradient[2]|operand|ONEPASS_SKIP_IF_UPSTREAM_IS_ONE|its own",
     {INTEGER(call.flags, ONEPASS_SKIP_IF_UPSTREAM_IS_ONE), NOTHING(call.value),
      MEMBER(gradient_v.tensor.data, third.memory)}},
    {"workspace over the variance",
     ONEPASS_INVALID_MEMORY,
     "workspace|variance|overlap",
     {INTEGER(call.device, ONEPASS_CUDA), MEMBER(call.workspace, third.memory), INTEGER(call.workspace_size, 64)}},
    {"workspace over the third gradient",
     ONEPASS_INVALID_MEMORY,
     "workspace|gradient[2]|overlap",
     {INTEGER(call.device, ONEPASS_CUDA), MEMBER(call.workspace, gradient_v.memory), INTEGER(call.workspace_size, 8)}},
};

static void test_null_call(void) {
    HOLDS(onepass_run(NULL) == ONEPASS_INVALID_ARGUMENT);
    CHECK(sentence_has(onepass_message(), "call|null"), "\"%s\"", onepass_message());
    HOLDS(onepass_run(&good_scene()->call) == ONEPASS_OK);
    HOLDS(onepass_message()[0] == '\0');
}

/* Without a GPU the reason is given; with one the scene's memory, which is the CPU's, is refused. */
static void test_gpu(void) {
    onepass_machine_info info = {.size = sizeof info};
    HOLDS(onepass_machine(&info) == ONEPASS_OK);
    scene *s = good_scene();
    s->call.device = ONEPASS_CUDA;
    memcpy(&before, s, sizeof before);
    if (info.gpu_count > 0)
        expect_refusal(onepass_run(&s->call), ONEPASS_INVALID_MEMORY, "prediction|host memory", "a GPU");
    else
        expect_refusal(onepass_run(&s->call), ONEPASS_NO_DEVICE, "ONEPASS_CUDA", "a GPU");
    CHECK(info.gpu_count > 0 || strstr(onepass_message(), info.gpu_reason) != NULL, "the reason is \"%s\", not \"%s\"",
          info.gpu_reason, onepass_message());
    before.call.device_index = s->call.device_index = INT32_MAX;
    expect_refusal(onepass_run(&s->call), ONEPASS_NO_DEVICE, info.gpu_count > 0 ? "2147483647" : "CUDA",
                   "the last GPU");
    HOLDS(memcmp(&before, s, sizeof before) == 0);
}

static void test_prepare(void) {
    HOLDS(onepass_prepare(ONEPASS_CPU, 0) == ONEPASS_OK && onepass_message()[0] == '\0');
    onepass_status bad = ONEPASS_INVALID_ARGUMENT;
    expect_refusal(onepass_prepare(2, 0), bad, "device|2", "prepare, device 2");
    expect_refusal(onepass_prepare(-1, 0), bad, "device|-1", "prepare, device -1");
    expect_refusal(onepass_prepare(ONEPASS_CPU, 1), bad, "device_index|1", "prepare, a second CPU");
    expect_refusal(onepass_prepare(ONEPASS_CUDA, -1), bad, "device_index|-1", "prepare, GPU -1");
    expect_refusal(onepass_prepare(ONEPASS_CUDA, INT32_MAX), ONEPASS_NO_DEVICE, "", "prepare, the last GPU");
}

/* ---------------------------------------------------------------- scaling -- */

/* What onepass_scale takes: an upstream gradient and gradients. */
static scene *scale_scene(void) {
    scene *s = good_scene();
    s->call.loss = NULL;
    s->call.operand[0] = s->call.operand[1] = s->call.weight = s->call.mask = s->call.value = NULL;
    memset(s->gradient_p.memory, 0, ROOM);
    memset(s->gradient_t.memory, 0, ROOM);
    memset(s->gradient_v.memory, 0, ROOM);
    return s;
}

static const argument_case scale_cases[] = {
    {"size 0", ONEPASS_INVALID_ARGUMENT, "size", {INTEGER(call.size, 0)}},
    {"no upstream gradient", ONEPASS_INVALID_ARGUMENT, "upstream|null", {NOTHING(call.upstream)}},
    {"no gradients", ONEPASS_INVALID_ARGUMENT, "gradient", {NOTHING(call.gradient[0]), NOTHING(call.gradient[1])}},
    {"a loss", ONEPASS_INVALID_ARGUMENT, "loss|onepass_scale", {TEXT(call.loss, "mse")}},
    {"a reduction", ONEPASS_INVALID_ARGUMENT, "reduction", {INTEGER(call.reduction, ONEPASS_NONE)}},
    {"parameters", ONEPASS_INVALID_ARGUMENT, "parameter_count", {INTEGER(call.parameter_count, 1)}},
    {"a divisor", ONEPASS_INVALID_ARGUMENT, "divisor", {REAL(call.divisor, 2)}},
    {"a divisor that is NaN", ONEPASS_INVALID_ARGUMENT, "divisor", {REAL(call.divisor, NAN)}},
    {"a prediction", ONEPASS_INVALID_ARGUMENT, "prediction", {MEMBER(call.operand[0], prediction.tensor)}},
    {"a target", ONEPASS_INVALID_ARGUMENT, "target", {MEMBER(call.operand[1], target.tensor)}},
    {"a fourth operand", ONEPASS_INVALID_ARGUMENT, "operand[3]", {MEMBER(call.operand[3], target.tensor)}},
    {"a value", ONEPASS_INVALID_ARGUMENT, "value", {MEMBER(call.value, value.tensor)}},
    {"a fourth gradient", ONEPASS_INVALID_ARGUMENT, "gradient[3]", {MEMBER(call.gradient[3], gradient_v.tensor)}},
    {"a weight", ONEPASS_INVALID_ARGUMENT, "weight|onepass_scale", {MEMBER(call.weight, weight.tensor)}},
    {"a mask", ONEPASS_INVALID_ARGUMENT, "mask|onepass_scale", {MEMBER(call.mask, mask.tensor)}},
    {"flags", ONEPASS_NOT_SUPPORTED, "flags is 4", {INTEGER(call.flags, 4)}},
    {"over elements", ONEPASS_INVALID_ARGUMENT, "flags|onepass_scale", {INTEGER(call.flags, ONEPASS_OVER_ELEMENTS)}},
    {"unless one",
     ONEPASS_INVALID_ARGUMENT,
     "flags|onepass_scale",
     {INTEGER(call.flags, ONEPASS_SKIP_IF_UPSTREAM_IS_ONE)}},
    {"device 2", ONEPASS_INVALID_ARGUMENT, "device|2", {INTEGER(call.device, 2)}},
    {"threads negative", ONEPASS_INVALID_ARGUMENT, "threads", {INTEGER(call.threads, -1)}},
    {"a stream on the CPU", ONEPASS_INVALID_ARGUMENT, "stream|CPU", {MEMBER(call.stream, tail)}},
    {"f16", ONEPASS_NOT_SUPPORTED, "gradient[0]|16 bits|anew", {INTEGER(gradient_p.tensor.dtype, ONEPASS_F16)}},
    {"bf16", ONEPASS_NOT_SUPPORTED, "gradient[1]|16 bits|anew", {INTEGER(gradient_t.tensor.dtype, ONEPASS_BF16)}},
    {"dtype 5", ONEPASS_INVALID_ARGUMENT, "gradient[1]|dtype|5", {INTEGER(gradient_t.tensor.dtype, 5)}},
    {"two types",
     ONEPASS_INVALID_ARGUMENT,
     "gradient[0]|gradient[1]|types",
     {INTEGER(gradient_t.tensor.dtype, ONEPASS_F64)}},
    {"two shapes", ONEPASS_INVALID_SHAPE, "gradient[0]|(2, 3)|gradient[1]|(6,)", {SHAPE(gradient_t, 1, 6)}},
    {"two types of three",
     ONEPASS_INVALID_ARGUMENT,
     "gradient[0]|gradient[2]|types",
     {MEMBER(call.gradient[2], gradient_v.tensor), INTEGER(gradient_v.tensor.dtype, ONEPASS_F64)}},
    {"two shapes of three",
     ONEPASS_INVALID_SHAPE,
     "gradient[1]|(2, 3)|gradient[2]|(6,)",
     {MEMBER(call.gradient[2], gradient_v.tensor), NOTHING(call.gradient[0]), SHAPE(gradient_v, 1, 6)}},
    {"the third over the second",
     ONEPASS_INVALID_MEMORY,
     "gradient[1]|gradient[2]|overlap",
     {MEMBER(call.gradient[2], gradient_v.tensor), MEMBER(gradient_v.tensor.data, gradient_t.memory)}},
    {"upstream in the third",
     ONEPASS_INVALID_MEMORY,
     "gradient[2]|upstream|overlap",
     {MEMBER(call.gradient[2], gradient_v.tensor), MEMBER(upstream.tensor.data, gradient_v.memory[4])}},
    {"three gradients", ONEPASS_OK, "", {MEMBER(call.gradient[2], gradient_v.tensor)}},
    {"the third alone",
     ONEPASS_OK,
     "",
     {MEMBER(call.gradient[2], gradient_v.tensor), NOTHING(call.gradient[0]), NOTHING(call.gradient[1])}},
    {"upstream of six elements", ONEPASS_INVALID_SHAPE, "upstream|(2, 3)", {SHAPE(upstream, 2, 2, 3)}},
    {"zero strides", ONEPASS_INVALID_MEMORY, "gradient[0]|overlap", {STRIDES(gradient_p, 0, 1)}},
    {"no memory", ONEPASS_INVALID_ARGUMENT, "gradient[0]|null", {NOTHING(gradient_p.tensor.data)}},
    {"misaligned",
     ONEPASS_INVALID_MEMORY,
     "gradient[0]|misaligned",
     {MEMBER(gradient_p.tensor.data, gradient_p.memory[2])}},
    {"one gradient over the other",
     ONEPASS_INVALID_MEMORY,
     "gradient[0]|gradient[1]|overlap",
     {MEMBER(gradient_p.tensor.data, gradient_t.memory[4])}},
    {"the same gradient twice",
     ONEPASS_INVALID_MEMORY,
     "gradient[0]|gradient[1]|overlap",
     {MEMBER(gradient_p.tensor.data, gradient_t.memory)}},
    {"upstream in a gradient",
     ONEPASS_INVALID_MEMORY,
     "gradient[1]|upstream|overlap",
     {MEMBER(upstream.tensor.data, gradient_t.memory[4])}},
    {"one gradient alone", ONEPASS_OK, "", {NOTHING(call.gradient[1])}},
    {"no elements", ONEPASS_OK, "", {SHAPE(gradient_p, 2, 0, 3), SHAPE(gradient_t, 2, 0, 3)}},
    {"f64",
     ONEPASS_OK,
     "",
     {INTEGER(gradient_p.tensor.dtype, ONEPASS_F64), INTEGER(gradient_t.tensor.dtype, ONEPASS_F64)}},
    {"upstream of another type",
     ONEPASS_OK,
     "",
     {INTEGER(upstream.tensor.dtype, ONEPASS_F16), SHAPE(upstream, 2, 1, 1)}},
};

static void test_scale(void) {
    expect_refusal(onepass_scale(NULL), ONEPASS_INVALID_ARGUMENT, "call|null", "scale, no call");
    for (size_t i = 0; i < COUNT(scale_cases); i++) {
        const argument_case *what = &scale_cases[i];
        scene *s = scale_scene();
        for (int e = 0; e < EDITS; e++)
            apply(s, &what->edits[e], 0);
        memcpy(&before, s, sizeof before);
        const onepass_status status = onepass_scale(&s->call);
        char name[100];
        snprintf(name, sizeof name, "scale, %s", what->name);
        if (what->status == ONEPASS_OK) {
            CHECK_OK(status, name);
            continue;
        }
        expect_refusal(status, what->status, what->words, name);
        CHECK(memcmp(&before, s, sizeof before) == 0, "%s: something was written", name);
    }
}

/* ---------------------------------------------------------------- the short functions -- */

static void test_short_functions(void) {
    scene *s = good_scene();
    onepass_tensor *p = &s->prediction.tensor, *t = &s->target.tensor, *u = &s->upstream.tensor;
    onepass_tensor *v = &s->value.tensor, *gp = &s->gradient_p.tensor, *gt = &s->gradient_t.tensor;
    memcpy(&before, s, sizeof before);
    onepass_status bad = ONEPASS_INVALID_ARGUMENT;
    expect_refusal(onepass_forward(NULL, ONEPASS_MEAN, p, t, v), bad, "loss|null", "forward, no loss");
    expect_refusal(onepass_forward("mze", ONEPASS_MEAN, p, t, v), bad, "loss|mze", "forward, unknown loss");
    expect_refusal(onepass_forward("gaussian_nll", ONEPASS_MEAN, p, t, v), bad, "variance|null",
                   "forward, a loss of three operands");
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
    s->call.weight = s->call.mask = s->call.upstream = s->call.value = NULL;
    s->call.gradient[0] = s->call.gradient[1] = NULL;
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
    {{"reduction batchmean",
      ONEPASS_INVALID_ARGUMENT,
      "BATCHMEAN|ONEPASS_MEAN|divisor",
      {INTEGER(call.reduction, ONEPASS_BATCHMEAN)}},
     WHOLE},
    {{"flags", ONEPASS_NOT_SUPPORTED, "flags is 4", {INTEGER(call.flags, 4)}}, WHOLE},
    {{"over elements", ONEPASS_NOT_SUPPORTED, "flags|accumulator", {INTEGER(call.flags, ONEPASS_OVER_ELEMENTS)}},
     WHOLE},
    {{"unless one", ONEPASS_NOT_SUPPORTED, "flags|accumulator", {INTEGER(call.flags, ONEPASS_SKIP_IF_UPSTREAM_IS_ONE)}},
     WHOLE},
    {{"no such device", ONEPASS_INVALID_ARGUMENT, "device is 2", {INTEGER(call.device, 2)}}, WHOLE},
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
    {{"an element that was seen", ONEPASS_INVALID_ARGUMENT, "1023 to 2046|1023 is the first", {{0}}}, 1023, 1024},
    {{"first negative", ONEPASS_INVALID_ARGUMENT, "first|-1024", {{0}}}, -1024, 1024},
    {{"first least", ONEPASS_INVALID_ARGUMENT, "first", {{0}}}, INT64_MIN, 1024},
    {{"first behind the end", ONEPASS_INVALID_SHAPE, "3072|2500", {{0}}}, 3072, 1024},
    {{"first close to overflow", ONEPASS_INVALID_SHAPE, "2500", {{0}}}, INT64_MAX - 1023, 1024},
    {{"beyond the end", ONEPASS_INVALID_SHAPE, "2500", {{0}}}, 2048, 1024},
    {{"one element beyond the end", ONEPASS_INVALID_SHAPE, "1501|1000|2500", {{0}}}, 1501, 1000},
    {{"the same slice again", ONEPASS_INVALID_ARGUMENT, "0", {{0}}}, 0, 1024},
    {{"a slice that was seen in part", ONEPASS_INVALID_ARGUMENT, "0", {{0}}}, 0, 2048},
    {{"value wanted", ONEPASS_INVALID_ARGUMENT, "value", {MEMBER(call.value, value.tensor)}}, 1024, 1024},
    {{"another loss", ONEPASS_INVALID_ARGUMENT, "loss|smooth_l1", {TEXT(call.loss, "hinge")}}, 1024, 1024},
    {{"another beta", ONEPASS_INVALID_ARGUMENT, "parameters|smooth_l1", {REAL(call.parameter[0], 0.25)}}, 1024, 1024},
    {{"another reduction", ONEPASS_INVALID_ARGUMENT, "reduction", {INTEGER(call.reduction, ONEPASS_SUM)}}, 1024, 1024},
    {{"another divisor", ONEPASS_INVALID_ARGUMENT, "divisor", {REAL(call.divisor, 3)}}, 1024, 1024},
    {{"no such device", ONEPASS_INVALID_ARGUMENT, "device is 2", {INTEGER(call.device, 2)}}, 1024, 1024},
    {{"flags", ONEPASS_NOT_SUPPORTED, "flags is 4", {INTEGER(call.flags, 4)}}, 1024, 1024},
    {{"unless one",
      ONEPASS_NOT_SUPPORTED,
      "flags|accumulator",
      {INTEGER(call.flags, ONEPASS_SKIP_IF_UPSTREAM_IS_ONE), MEMBER(call.upstream, upstream.tensor)}},
     1024,
     1024},
    {{"no prediction", ONEPASS_INVALID_ARGUMENT, "prediction|null", {NOTHING(call.operand[0])}}, 1024, 1024},
    {{"a target that does not broadcast", ONEPASS_INVALID_SHAPE, "target", {SHAPE(target, 1, 512)}}, 1024, 1024},
    {{"a weight, which the first slice had not",
      ONEPASS_INVALID_ARGUMENT,
      "has a weight|neither weight nor mask",
      {MEMBER(call.weight, weight.tensor)}},
     1024,
     1024},
    {{"a mask, which the first slice had not",
      ONEPASS_INVALID_ARGUMENT,
      "has a mask|neither weight nor mask",
      {MEMBER(call.mask, mask.tensor)}},
     1024,
     1024},
    {{"a mask that does not broadcast",
      ONEPASS_INVALID_SHAPE,
      "mask|(7,)|(1024,)",
      {MEMBER(call.mask, mask.tensor), SHAPE(mask, 1, 7)}},
     1024,
     1024},
    {{"a weight that does not broadcast",
      ONEPASS_INVALID_SHAPE,
      "weight|(7,)|(1024,)",
      {MEMBER(call.weight, weight.tensor), SHAPE(weight, 1, 7)}},
     1024,
     1024},
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
    expect_refusal(onepass_accumulator_finish(accumulator, &value), ONEPASS_INCOMPLETE, "2048 of the 2500|2048 to 2499",
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

int main(void) {
    test_null_call();
    run_cases(good_scene, call_cases, COUNT(call_cases), 0, "");
    run_cases(third_scene, third_cases, COUNT(third_cases), 0, "");
    test_gpu();
    test_prepare();
    test_scale();
    test_short_functions();
    test_mean_f32();
    test_accumulator_begin();
    test_accumulator_add();
    test_accumulator_merge();
    test_accumulator_finish();
    return check_finish();
}
