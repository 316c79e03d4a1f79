/* The embedded kernels: fat binaries, a pair of them a unit. Apart, so that a test can bring its own. */
#ifndef ONEPASS_CUDA_IMAGE_H
#define ONEPASS_CUDA_IMAGE_H

#include "engine.h"

/* Those of the unit that serves every loss; those of a loss are in its descriptor. */
ONEPASS_INTERNAL extern const cuda_images onepass_cuda_images_every_loss;

/* The toolkit that built them, as the driver counts: 13000 is CUDA 13.0. 0: there are none, ... */
ONEPASS_INTERNAL extern const int32_t onepass_cuda_toolkit;

/* ... and this is why: "nvcc was not found". */
ONEPASS_INTERNAL extern const char onepass_cuda_missing[];

#endif
