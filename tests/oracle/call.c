/* A call: tensors become arrays of numbers, and the answer is rounded to the outputs' types. */
#include "oracle.h"

#include <stdlib.h>

static int64_t stride_of(const onepass_tensor *tensor, int dimension) {
    if (tensor->strides) {
        return tensor->strides[dimension];
    }
    int64_t stride = 1;
    for (int d = tensor->ndim - 1; d > dimension; d--) {
        stride *= tensor->shape[d];
    }
    return stride;
}

/* Whether an offset is the index: the rule, not its result, would take most of the tests' time. */
static int is_plain(const onepass_tensor *tensor, int32_t ndim, const int64_t *shape) {
    int plain = !tensor->strides && tensor->ndim == ndim;
    for (int d = 0; d < ndim && plain; d++) {
        plain = tensor->shape[d] == shape[d];
    }
    return plain;
}

int64_t oracle_offset(const onepass_tensor *tensor, int32_t ndim, const int64_t *shape, int64_t index) {
    int64_t offset = 0;
    if (is_plain(tensor, ndim, shape)) {
        return index;
    }
    for (int d = ndim - 1; d >= 0; d--) {
        const int64_t coordinate = d > 0 ? index % shape[d] : index; /* divisions take most of the time */
        const int own = d - (ndim - tensor->ndim);
        if (d > 0) {
            index /= shape[d];
        }
        if (own >= 0 && tensor->shape[own] != 1) {
            offset += coordinate * stride_of(tensor, own);
        }
    }
    return offset;
}

int64_t oracle_common_shape(const onepass_call *call, int32_t *ndim, int64_t shape[ONEPASS_MAX_DIMENSIONS]) {
    int64_t count = 1;
    *ndim = 0;
    for (int i = 0; i < ONEPASS_MAX_OPERANDS && call->operand[i]; i++) {
        *ndim = call->operand[i]->ndim > *ndim ? call->operand[i]->ndim : *ndim;
    }
    for (int d = 0; d < *ndim; d++) {
        shape[d] = 1;
        for (int i = 0; i < ONEPASS_MAX_OPERANDS && call->operand[i]; i++) {
            const int own = d - (*ndim - call->operand[i]->ndim);
            if (own >= 0 && call->operand[i]->shape[own] != 1) {
                shape[d] = call->operand[i]->shape[own];
            }
        }
        count *= shape[d];
    }
    return count;
}

typedef struct common_shape {
    int32_t ndim;
    int64_t shape[ONEPASS_MAX_DIMENSIONS];
    int64_t count;
} common_shape;

static void *element(const onepass_tensor *tensor, const common_shape *common, int64_t index) {
    const int64_t offset = oracle_offset(tensor, common->ndim, common->shape, index);
    return (char *)tensor->data + offset * (int64_t)oracle_size(tensor->dtype);
}

static void *allocate(int64_t count, size_t size) {
    void *memory = malloc((size_t)(count ? count : 1) * size);
    if (!memory) {
        abort();
    }
    return memory;
}

/* A tensor's numbers as the common shape has them; null for none. The caller frees it. */
static double *numbers_of(const onepass_tensor *tensor, const common_shape *common) {
    if (!tensor) {
        return NULL;
    }
    double *number = allocate(common->count, sizeof *number);
    for (int64_t i = 0; i < common->count; i++) {
        number[i] = oracle_load(tensor->dtype, element(tensor, common, i));
    }
    return number;
}

static unsigned char *mask_of(const onepass_tensor *mask, const common_shape *common) {
    double *number = numbers_of(mask, common);
    unsigned char *shown = number ? allocate(common->count, 1) : NULL;
    for (int64_t i = 0; shown && i < common->count; i++) {
        shown[i] = number[i] != 0;
    }
    free(number);
    return shown;
}

static void store(const onepass_tensor *tensor, const common_shape *common, const double *number) {
    for (int64_t i = 0; i < common->count; i++) {
        oracle_store(tensor->dtype, element(tensor, common, i), number[i]);
    }
}

/* What a mean is divided by where that is not the sum of what the elements count for, which 0 stands for. */
static double divisor_of(const onepass_call *call, const common_shape *common, const unsigned char *mask) {
    if (call->reduction == ONEPASS_BATCHMEAN) {
        return common->ndim ? (double)common->shape[0] : 1;
    }
    if (call->flags & ONEPASS_OVER_ELEMENTS) {
        int64_t shown = 0;
        for (int64_t i = 0; i < common->count; i++) {
            shown += !mask || mask[i];
        }
        return (double)shown;
    }
    return call->divisor;
}

static int computed_in_float(const onepass_call *call) {
    int in_float = !call->weight || call->weight->dtype != ONEPASS_F64;
    for (int i = 0; i < ONEPASS_MAX_OPERANDS && call->operand[i]; i++) {
        in_float &= call->operand[i]->dtype != ONEPASS_F64;
    }
    return in_float;
}

void oracle_run(const onepass_call *call) {
    common_shape common;
    common.count = oracle_common_shape(call, &common.ndim, common.shape);
    const common_shape one = {.count = 1};
    const common_shape *reduced = call->reduction == ONEPASS_NONE ? &common : &one;
    const int operand_count = oracle_loss_named(call->loss)->operand_count;

    double *operand[ORACLE_OPERANDS] = {NULL};
    double *gradient[ORACLE_OPERANDS] = {NULL};
    double *weight = numbers_of(call->weight, &common);
    double *upstream = numbers_of(call->upstream, reduced);
    double *value = call->value ? allocate(reduced->count, sizeof *value) : NULL;
    unsigned char *mask = mask_of(call->mask, &common);
    oracle_question question = {.loss = call->loss,
                                .parameter = call->parameter,
                                .parameter_count = call->parameter_count,
                                .reduction = call->reduction,
                                .in_float = computed_in_float(call),
                                .count = common.count,
                                .divisor = divisor_of(call, &common, mask),
                                .weight = weight,
                                .mask = mask,
                                .upstream = upstream,
                                .value = value};
    for (int i = 0; i < operand_count; i++) {
        operand[i] = numbers_of(call->operand[i], &common);
        gradient[i] = call->gradient[i] ? allocate(common.count, sizeof *gradient[i]) : NULL;
        question.operand[i] = operand[i];
        question.gradient[i] = gradient[i];
    }
    oracle_answer(&question);

    if (value) {
        store(call->value, reduced, value);
    }
    for (int i = 0; i < operand_count; i++) {
        if (gradient[i]) {
            store(call->gradient[i], &common, gradient[i]);
        }
        free(operand[i]);
        free(gradient[i]);
    }
    free(weight);
    free(upstream);
    free(value);
    free(mask);
}
