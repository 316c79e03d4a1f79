/*
 * What the binding asks of the launches: the mean cross-entropy of rows of logits on the current GPU.
 */
#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

#define ROWS_WORKSPACE(rows) (262400 + 8 * (size_t)(rows)) /* bytes */

/* Strides count elements. */
typedef struct rows_call {
    int64_t rows, classes;
    const float *predictions;
    int64_t row_stride, class_stride;
    const int64_t *targets;
    int64_t target_stride;
    float *value;
    void *workspace; /* ROWS_WORKSPACE bytes, whatever they hold */
    cudaStream_t stream;
} rows_call;

__attribute__((visibility("hidden"))) cudaError_t rows_launch(const rows_call *call);
