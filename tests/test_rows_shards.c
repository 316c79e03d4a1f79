/*
 * Rows whose classes are shared out, on the CPU: any shares of the classes give the bits of one call over all, and what
 * does not go together is refused.
 */
#include "row_shards.h"

static onepass_status run_here(const onepass_call *call, const char *what) {
    (void)what;
    return onepass_run(call);
}

static const shard_place here = {malloc, free, run_here};

static void test_bits(int cases) {
    for (uint64_t seed = 0; seed < (uint64_t)cases; seed++)
        shard_check(&here, seed, seed % 4 == 3, 0);
    for (uint64_t seed = 0; seed < 4; seed++) /* more tiles than wait on a stack */
        shard_check(&here, seed, seed % 2, 1024 * 400 + 12);
}

/* ------------------------------------------------------------------- refusals -- */

/* One row of 2100 classes, by each kind of call. */
typedef struct scene {
    float input[2100], gradient[2100], class_weight[2100], value;
    double tile_sums[3 * ONEPASS_SMOOTH_TILE_SUMS], label_logit[1], state[ONEPASS_ROW_STATE];
    int64_t label[1], shape[2], tiles[3], states[2], weights[1];
    onepass_tensor input_tensor, label_tensor, value_tensor, gradient_tensor, sums_tensor, logit_tensor, state_tensor,
        weight_tensor;
    onepass_call call;
} scene;

static scene stage;

typedef enum kind {
    SUMS,
    VALUE,
    SLOPES
} kind;

/* Of classes `first` to `end` - 1. */
static void set_stage(kind kind, int64_t first, int64_t end) {
    scene *s = &stage;
    *s = (scene){.label = {7},
                 .shape = {1, kind == VALUE ? 0 : end - first},
                 .tiles = {1, ONEPASS_TILE_SUMS, kind == VALUE ? 3 : (end - first + 1023) / 1024},
                 .states = {1, ONEPASS_ROW_STATE},
                 .weights = {2100},
                 .call = ONEPASS_CALL_INIT};
    s->input_tensor = (onepass_tensor){s->input, ONEPASS_F32, 2, s->shape, NULL};
    s->gradient_tensor = (onepass_tensor){s->gradient, ONEPASS_F32, 2, s->shape, NULL};
    s->label_tensor = (onepass_tensor){s->label, ONEPASS_I64, 1, s->shape, NULL};
    s->value_tensor = (onepass_tensor){&s->value, ONEPASS_F32, 0, NULL, NULL};
    s->sums_tensor = (onepass_tensor){s->tile_sums, ONEPASS_F64, 3, s->tiles, NULL};
    s->logit_tensor = (onepass_tensor){s->label_logit, ONEPASS_F64, 1, s->shape, NULL};
    s->state_tensor = (onepass_tensor){s->state, ONEPASS_F64, 2, s->states, NULL};
    s->weight_tensor = (onepass_tensor){s->class_weight, ONEPASS_F32, 1, s->weights, NULL};
    s->call.loss = "cross_entropy";
    s->call.operand[0] = &s->input_tensor;
    s->call.operand[1] = &s->label_tensor;
    s->call.label_logit = &s->logit_tensor;
    s->call.tile_sums = kind == SLOPES ? NULL : &s->sums_tensor;
    s->call.value = kind == VALUE ? &s->value_tensor : NULL;
    s->call.gradient[0] = kind == SLOPES ? &s->gradient_tensor : NULL;
    s->call.row_state = kind == SLOPES ? &s->state_tensor : NULL;
    s->call.first_class = kind == VALUE ? 0 : first;
    s->call.all_classes = 2100;
}

static void check_refused(onepass_status status, const char *says) {
    static scene before;
    memcpy(&before, &stage, sizeof stage);
    const onepass_status got = onepass_run(&stage.call);
    CHECK(got == status, "expected %s that says \"%s\", got %s: %s", onepass_status_name(status), says,
          onepass_status_name(got), onepass_message());
    CHECK(strstr(onepass_message(), says), "expected a message that says \"%s\", got \"%s\"", says, onepass_message());
    CHECK(memcmp(&before, &stage, sizeof stage) == 0, "%s: something was written", says);
}

#define REFUSED(kind, first, end, edit, status, says)                                                                  \
    do {                                                                                                               \
        set_stage(kind, first, end);                                                                                   \
        edit;                                                                                                          \
        check_refused(status, says);                                                                                   \
    } while (0)

static void test_refusals(void) {
    onepass_call *call = &stage.call;
    set_stage(SUMS, 1024, 2100);
    CHECK_OK(onepass_run(call), "sums of the last two tiles");
    set_stage(VALUE, 0, 0);
    CHECK_OK(onepass_run(call), "a value");
    set_stage(SLOPES, 1030, 1400);
    call->tile_sums = &stage.sums_tensor;
    CHECK_OK(onepass_run(call), "a gradient within a tile");
    REFUSED(SUMS, 0, 1000, , ONEPASS_INVALID_SHAPE, "whole tiles");
    REFUSED(SUMS, 1, 1024, , ONEPASS_INVALID_SHAPE, "whole tiles");
    REFUSED(SUMS, 1024, 1024, , ONEPASS_INVALID_SHAPE, "has 0 classes of 2100");
    REFUSED(SLOPES, 1000, 1025, , ONEPASS_INVALID_SHAPE, "are within one");
    REFUSED(SUMS, 1024, 2048, call->first_class = -1, ONEPASS_INVALID_SHAPE, "first_class is -1");
    REFUSED(SUMS, 1024, 2048, call->first_class = INT64_MAX, ONEPASS_INVALID_SHAPE,
            "within all_classes, which is 2100");
    REFUSED(SUMS, 1024, 2048, call->all_classes = 2047, ONEPASS_INVALID_SHAPE, "which is 2047");
    REFUSED(SUMS, 1024, 2048, call->all_classes = INT64_MIN, ONEPASS_INVALID_SHAPE, "first_class is 1024");
    REFUSED(SUMS, 0, 1024, call->all_classes = 0, ONEPASS_INVALID_ARGUMENT, "tile_sums is set, but all_classes is 0");
    REFUSED(SUMS, 0, 1024, call->tile_sums = NULL, ONEPASS_INVALID_ARGUMENT, "tile_sums is null");
    REFUSED(SUMS, 0, 1024, call->label_logit = NULL, ONEPASS_INVALID_ARGUMENT, "label_logit is null");
    REFUSED(SUMS, 0, 1024, stage.tiles[2] = 2, ONEPASS_INVALID_SHAPE, "shape (1, 2, 1)");
    REFUSED(SUMS, 0, 1024, (call->parameter_count = 2, call->parameter[0] = -100, call->parameter[1] = 0.5),
            ONEPASS_INVALID_SHAPE, "shape (1, 4, 1)");
    REFUSED(SUMS, 0, 1024, stage.sums_tensor.dtype = ONEPASS_F32, ONEPASS_INVALID_SHAPE, "of type f64");
    REFUSED(SUMS, 0, 1024, call->row_state = &stage.state_tensor, ONEPASS_INVALID_ARGUMENT, "row_state is set");
    REFUSED(SUMS, 0, 1024, stage.logit_tensor.data = stage.tile_sums, ONEPASS_INVALID_MEMORY, "label_logit");
    REFUSED(SUMS, 0, 1024, stage.label[0] = 2100, ONEPASS_OUT_OF_BOUNDS, "from 0 to 2099");
    REFUSED(SUMS, 0, 1024, stage.weights[0] = 1024;
            call->operand[2] = &stage.weight_tensor, ONEPASS_INVALID_SHAPE, "shape (2100,)");
    REFUSED(SUMS, 0, 1024, call->loss = "nll", ONEPASS_NOT_SUPPORTED, "cannot be shared out");
    REFUSED(SUMS, 0, 1024, (call->loss = "mse", call->operand[1] = &stage.input_tensor), ONEPASS_INVALID_ARGUMENT,
            "all_classes is set, but mse is no loss over rows");
    REFUSED(VALUE, 0, 0, stage.shape[1] = 5, ONEPASS_INVALID_SHAPE, "a value comes of tile_sums");
    REFUSED(VALUE, 0, 0, call->gradient[0] = &stage.gradient_tensor, ONEPASS_INVALID_ARGUMENT, "expected one of them");
    REFUSED(VALUE, 0, 0, call->predicted = &stage.label_tensor, ONEPASS_NOT_SUPPORTED, "predicted is set");
    REFUSED(SLOPES, 1030, 1400, , ONEPASS_INVALID_ARGUMENT, "tile_sums is null");
    REFUSED(SLOPES, 1024, 2090, , ONEPASS_INVALID_ARGUMENT, "tile_sums is null");
    REFUSED(SLOPES, 0, 2100, call->row_state = NULL, ONEPASS_INVALID_ARGUMENT, "row_state is null");
    REFUSED(SLOPES, 0, 2100, call->label_logit = NULL, ONEPASS_INVALID_ARGUMENT, "label_logit is null");
}

static void test_accumulator(void) {
    onepass_accumulator *accumulator = NULL;
    set_stage(SUMS, 0, 1024);
    if (!CHECK_OK(onepass_accumulator_begin(&accumulator,
                                            &(onepass_call){.size = sizeof(onepass_call), .loss = "cross_entropy"}, 1),
                  "begin"))
        return;
    const onepass_status status = onepass_accumulator_add(accumulator, &stage.call, 0);
    CHECK(status == ONEPASS_NOT_SUPPORTED && strstr(onepass_message(), "all_classes is set"),
          "expected a refusal that names all_classes, got %s: %s", onepass_status_name(status), onepass_message());
    onepass_accumulator_destroy(accumulator);
}

int main(void) {
    test_bits(getenv("ONEPASS_TEST_QUICK") ? 150 : 1500);
    test_refusals();
    test_accumulator();
    return check_finish();
}
