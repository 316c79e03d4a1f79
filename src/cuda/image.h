/* The embedded kernels, one image a compute type. Apart, so that a test can bring its own. */
#ifndef ONEPASS_CUDA_IMAGE_H
#define ONEPASS_CUDA_IMAGE_H

#include "engine.h"

ONEPASS_INTERNAL extern const unsigned char onepass_cuda_image_f32[];
ONEPASS_INTERNAL extern const unsigned char onepass_cuda_image_f64[];

/* The toolkit that built them, as the driver counts: 13000 is CUDA 13.0. 0: there are none, ... */
ONEPASS_INTERNAL extern const int32_t onepass_cuda_image_toolkit;

/* ... and this is why: "nvcc was not found". */
ONEPASS_INTERNAL extern const char onepass_cuda_image_missing[];

#endif
