/*
 * The kernels of the losses over rows of one header, ONEPASS_UNIT_HEADER, in one compute type: the twin of unit.cu.
 */
#include "cuda/row_kernel.h"

#define ROW_LOSS(name, target, ...)                                                                                    \
    ROW_LOSS_TYPE(name, target)                                                                                        \
    MAKE_ROW_KERNELS(name, target)
#include ONEPASS_UNIT_HEADER
