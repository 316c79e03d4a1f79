/*
 * The kernels of the vector losses of one header, ONEPASS_UNIT_HEADER, in one compute type: the twin of unit.cu.
 */
#include "math/vector.h"
