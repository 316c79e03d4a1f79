/*
 * The kernels, as the fat binaries that were made of pairwise.cu. A build without
 * nvcc has none, and the engine says so when it is asked to run.
 */
#include "cuda/image.h"

#if defined(ONEPASS_CUDA_TOOLKIT)

/* C17 has no other way to take a file's bytes that is as quick to compile. */
#define IMAGE(name, file)                                                                                              \
    __asm__(".pushsection .rodata\n"                                                                                   \
            ".balign 64\n"                                                                                             \
            ".global " name "\n"                                                                                       \
            ".hidden " name "\n"                                                                                       \
            ".type " name ", %object\n" name ":\n"                                                                     \
            ".incbin \"" file "\"\n"                                                                                   \
            ".size " name ", . - " name "\n"                                                                           \
            ".popsection\n")

IMAGE("onepass_cuda_image_f32", ONEPASS_CUDA_IMAGE_F32);
IMAGE("onepass_cuda_image_f64", ONEPASS_CUDA_IMAGE_F64);
const int32_t onepass_cuda_image_toolkit = ONEPASS_CUDA_TOOLKIT;
const char onepass_cuda_image_missing[] = "";

#else

const unsigned char onepass_cuda_image_f32[1] = {0};
const unsigned char onepass_cuda_image_f64[1] = {0};
const int32_t onepass_cuda_image_toolkit = 0;
const char onepass_cuda_image_missing[] = ONEPASS_CUDA_MISSING;

#endif
