/*
 * The kernels of the vector losses of one header, ONEPASS_UNIT_HEADER, in one compute type: the twin of unit.cu.
 */
#include "cuda/vector_kernel.h"

#define VECTOR_LOSS(name, operands, vector_count, sum_count, length, ...)                                              \
    VECTOR_LOSS_TYPE(name, operands, vector_count, sum_count, length)                                                  \
    VECTOR_KERNELS_##length(MAKE_VECTOR_KERNEL, name)
#include ONEPASS_UNIT_HEADER
