/*
 * The kernels of the losses of one header, ONEPASS_UNIT_HEADER, in one compute type: the twin of src/cpu/unit.c.
 */
#include "cuda/kernel.h"

#define LOSS(name, operands, ...)                                                                                      \
    LOSS_TYPE(name, operands)                                                                                          \
    MAKE_KERNELS(name, OPERANDS_OF operands)
#include ONEPASS_UNIT_HEADER
