/*
 * What the binding asks of the launches: the mean triplet margin loss of rows of vectors on the current GPU.
 */
#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

/* Strides count elements. */
typedef struct vectors_call {
    int64_t rows, length;
    double margin;
    const float *vectors[3]; /* anchor, positive, negative */
    int64_t row_stride[3], element_stride[3];
    float *value;
    void *workspace; /* vectors_workspace() bytes, whatever they hold */
    cudaStream_t stream;
} vectors_call;

__attribute__((visibility("hidden"))) size_t vectors_workspace(const vectors_call *call);
__attribute__((visibility("hidden"))) cudaError_t vectors_launch(const vectors_call *call);
