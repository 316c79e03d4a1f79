/*
 * A loss as the library knows it: what users are told, and where each engine finds its code. Jobs point to one. The
 * losses of losses.def have theirs from descriptor.c; whoever brings another loss hands in one like them.
 */
#ifndef ONEPASS_DESCRIPTOR_H
#define ONEPASS_DESCRIPTOR_H

#include "internal.h"
#include "onepass.h"

/* What a job computes. A loss is of one of the families for losses, which are the first. */
typedef enum family {
    FAMILY_PAIRWISE, /* a loss whose every element has a value */
    FAMILY_SCALE,    /* gradients times an upstream gradient, in place */
    FAMILY_WEIGHTS   /* the sum of the first operand where the mask, if there is one, says so */
} family;

/* The functions of a loss in one compute type, of src/cpu/strip.h, by the name of what they were compiled for; null
 * where the build has none. */
struct cpu_loss_f32;
struct cpu_loss_f64;
typedef struct cpu_losses {
    const struct cpu_loss_f32 *avx512_f32, *avx2_f32, *sse2_f32, *sve_f32, *neon_f32, *baseline_f32;
    const struct cpu_loss_f64 *avx512_f64, *avx2_f64, *sse2_f64, *sve_f64, *neon_f64, *baseline_f64;
} cpu_losses;

/* The kernels of a loss, as fat binaries; null where the build has none. */
typedef struct cuda_images {
    const unsigned char *f32, *f64;
} cuda_images;

typedef struct loss {
    onepass_loss_info info;
    enum family family;
    const struct cuda_images *cuda;
    struct cpu_losses cpu;
} loss;

/* src/catalog.c: the loss of that name, or null. */
ONEPASS_INTERNAL const loss *onepass_find_loss(const char *name);

#endif
