/* The kernels of the losses of one header. Compiled once for each header, whose name is ONEPASS_UNIT. */
#include "cuda/image.h"
#include "math/real.h"

#define IMAGES PASTE(onepass_cuda_images_, ONEPASS_UNIT)
ONEPASS_INTERNAL extern const cuda_images IMAGES;

const cuda_images IMAGES = {onepass_cuda_image_f32, onepass_cuda_image_f64};
