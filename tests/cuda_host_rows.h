/* Calls over rows for the tests of the CUDA engine's host side: as in cuda_host.h, with tensors in the fake's memory.
 */
#ifndef ONEPASS_TESTS_CUDA_HOST_ROWS_H
#define ONEPASS_TESTS_CUDA_HOST_ROWS_H

#include "cuda_host.h"

/* A call with everything that one may have beside value and gradient; what a test wants of it, the call points to. */
typedef struct row_scene {
    onepass_call call;
    int64_t shape[2], classes, state_shape[2];
    onepass_tensor input, labels, probabilities, class_weight, weight, mask, upstream, value, values, gradient;
    onepass_tensor log_sum_exp, predicted, state, divisor, divided_by;
} row_scene;

static inline onepass_tensor place_rows(fake *fake, int32_t dtype, int32_t ndim, const int64_t *shape) {
    size_t count = 1;
    for (int32_t d = 0; d < ndim; d++)
        count *= (size_t)shape[d];
    return (onepass_tensor){(void *)fake->allocate(FAKE_DEVICE, 0, count ? 8 * count : 1), dtype, ndim, shape, NULL};
}

/* The mean of a loss over class indices and its gradient. */
static inline void make_rows(fake *fake, int64_t rows, int64_t classes, row_scene *s) {
    *s = (row_scene){.call = ONEPASS_CALL_INIT,
                     .shape = {rows, classes},
                     .classes = classes,
                     .state_shape = {rows, ONEPASS_ROW_STATE}};
    s->input = place_rows(fake, ONEPASS_F32, 2, s->shape);
    s->labels = place_rows(fake, ONEPASS_I64, 1, s->shape);
    s->probabilities = place_rows(fake, ONEPASS_F32, 2, s->shape);
    s->class_weight = place_rows(fake, ONEPASS_F32, 1, &s->classes);
    s->weight = place_rows(fake, ONEPASS_F32, 1, s->shape);
    s->mask = place_rows(fake, ONEPASS_BOOL, 1, s->shape);
    s->upstream = place_rows(fake, ONEPASS_F32, 0, NULL);
    s->value = place_rows(fake, ONEPASS_F32, 0, NULL);
    s->values = place_rows(fake, ONEPASS_F32, 1, s->shape);
    s->gradient = place_rows(fake, ONEPASS_F32, 2, s->shape);
    s->log_sum_exp = place_rows(fake, ONEPASS_F32, 1, s->shape);
    s->predicted = place_rows(fake, ONEPASS_I64, 1, s->shape);
    s->state = place_rows(fake, ONEPASS_F64, 2, s->state_shape);
    s->divisor = place_rows(fake, ONEPASS_F32, 0, NULL);
    s->divided_by = place_rows(fake, ONEPASS_F64, 0, NULL);
    s->call.loss = "cross_entropy";
    s->call.operand[0] = &s->input;
    s->call.operand[1] = &s->labels;
    s->call.value = &s->value;
    s->call.gradient[0] = &s->gradient;
    s->call.device = ONEPASS_CUDA;
    fake->divisor = s->divisor.data;
}

/* The longest sequence of launches that there is: weights of classes, and an answer to what the mean was divided by. */
static inline void make_longest(fake *fake, int64_t rows, row_scene *s) {
    make_rows(fake, rows, 40, s);
    s->call.operand[2] = &s->class_weight;
    s->call.divided_by = &s->divided_by;
}

static inline onepass_status run_rows_on(row_scene *s, cuda_stream stream) {
    s->call.stream = stream;
    return onepass_run(&s->call);
}

#endif
