/*
 * The kernels of a unit, as the fat binaries that were made of them. Compiled once for each: ONEPASS_UNIT (mse) is its
 * name, ONEPASS_CUDA_FOLDER where its images mse_f32.fatbin and mse_f64.fatbin are. A build without nvcc has none.
 */
#include "cuda/image.h"
#include "math/real.h"

#define IMAGES PASTE(onepass_cuda_images_, ONEPASS_UNIT)
ONEPASS_INTERNAL extern const cuda_images IMAGES;

#if defined(ONEPASS_CUDA_FOLDER)

#define F32             PASTE(onepass_cuda_f32_, ONEPASS_UNIT)
#define F64             PASTE(onepass_cuda_f64_, ONEPASS_UNIT)
#define TEXT_OF(...)    #__VA_ARGS__
#define TEXT(...)       TEXT_OF(__VA_ARGS__)
#define FATBIN_OF(real) ONEPASS_CUDA_FOLDER "/" TEXT(ONEPASS_UNIT) "_" real ".fatbin"

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

IMAGE(TEXT(F32), FATBIN_OF("f32"));
IMAGE(TEXT(F64), FATBIN_OF("f64"));
ONEPASS_INTERNAL extern const unsigned char F32[], F64[];
const cuda_images IMAGES = {F32, F64};

#else

const cuda_images IMAGES = {NULL, NULL};

#endif
