/*
 * The kernels of the losses over rows of one header, ONEPASS_UNIT_HEADER, in one compute type.
 */
#include "math/real.h"
#include "math/softmax.h"

#define ROW_LOSS(name, ...)
#include ONEPASS_UNIT_HEADER
