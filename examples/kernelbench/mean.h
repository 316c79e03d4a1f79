/*
 * What the binding asks of the launch: the mean loss of two float tensors on the current GPU.
 */
#include <cuda_runtime_api.h>
#include <stdint.h>

#define MEAN_MOST_DIMENSIONS 16
#define MEAN_WORKSPACE       262400 /* bytes */

/* Prediction and target have one shape; where one of them was broadcast its stride is 0. */
typedef struct mean_call {
    int32_t ndim;
    const int64_t *shape;
    const float *data[2];
    const int64_t *stride[2]; /* in elements */
    double divisor;           /* what the sum is divided by: the number of elements, or that of the first extent */
    float *value;
    void *workspace; /* MEAN_WORKSPACE bytes, whatever they hold */
    cudaStream_t stream;
} mean_call;

__attribute__((visibility("hidden"))) cudaError_t mean_launch(const mean_call *call);
