/* The limits' kernels: the image that limits.cmake has made, and a table of shapes. */
#include "gpu_limits.h"
#include "gpu.h"

#include <stdio.h>

#if defined(ONEPASS_LIMITS_IMAGE)

/* As src/cuda/image.c does it: C17 has no other way to take a file's bytes that is as quick to compile. */
__asm__(".pushsection .rodata\n"
        ".balign 64\n"
        ".global onepass_limits_image\n"
        ".hidden onepass_limits_image\n"
        ".type onepass_limits_image, %object\n"
        "onepass_limits_image:\n"
        ".incbin \"" ONEPASS_LIMITS_IMAGE "\"\n"
        ".size onepass_limits_image, . - onepass_limits_image\n"
        ".popsection\n");
extern const unsigned char onepass_limits_image[] __attribute__((visibility("hidden")));
static const unsigned char *const image = onepass_limits_image;
static const char missing[] = "";

#else

static const unsigned char *const image = NULL;
static const char missing[] = ONEPASS_LIMITS_MISSING;

#endif

/* ------------------------------------------------------------------- shapes -- */

static const int in_flight[] = {1, 2, 4, 8}; /* vectors of 16 bytes that a thread asks for at once, of each array */
static const int threads[] = {128, 256, 512, 1024};
static const char *const hint[] = {"plain", "stream", "pass"};

enum {
    VECTOR = 16,
    IN_FLIGHTS = sizeof in_flight / sizeof *in_flight,
    THREADS = sizeof threads / sizeof *threads,
    HINTS = sizeof hint / sizeof *hint,
    GRIDS = 2,             /* a block for every chunk, or as many as fit at once, each of which takes several */
    LINGER_CYCLES = 600000 /* a third of a millisecond: a graph's launch takes a few hundredths */
};

typedef struct shape {
    int in_flight, threads, hint; /* places in the tables above */
    bool strides;
} shape;

static gpu_kernel *kernels[2][IN_FLIGHTS][HINTS]; /* reading, writing */
static int fitting[2][IN_FLIGHTS][HINTS][THREADS];
static gpu_kernel *linger;

static shape shape_at(int number) {
    return (shape){.in_flight = number % IN_FLIGHTS,
                   .threads = number / IN_FLIGHTS % THREADS,
                   .hint = number / (IN_FLIGHTS * THREADS) % HINTS,
                   .strides = number / (IN_FLIGHTS * THREADS * HINTS) != 0};
}

int gpu_limit_shapes(void) {
    return IN_FLIGHTS * THREADS * HINTS * GRIDS;
}

/* ------------------------------------------------------------------ loading -- */

static bool find_kernel(bool writes, int f, int h) {
    char name[32];
    snprintf(name, sizeof name, "%s_%d_%s", writes ? "write" : "read", in_flight[f], hint[h]);
    kernels[writes][f][h] = gpu_kernel_named(name);
    for (int t = 0; kernels[writes][f][h] && t < THREADS; t++)
        fitting[writes][f][h][t] = gpu_blocks_that_fit(kernels[writes][f][h], threads[t]);
    return kernels[writes][f][h] != NULL;
}

bool gpu_limits_load(problem *problem) {
    if (!image)
        return fail(problem, "the tool was built without the kernels of the limits: %s when it was configured",
                    missing);
    bool are_there = gpu_load(image) && (linger = gpu_kernel_named("linger"));
    for (int i = 0; are_there && i < 2 * IN_FLIGHTS * HINTS; i++)
        are_there = find_kernel(i & 1, i / 2 % IN_FLIGHTS, i / 2 / IN_FLIGHTS);
    return are_there || fail(problem, "%s", gpu_problem());
}

/* ---------------------------------------------------------------- launching -- */

static int64_t chunks_of(shape shape, size_t bytes) {
    const int64_t vectors = (int64_t)((bytes + VECTOR - 1) / VECTOR),
                  chunk = (int64_t)in_flight[shape.in_flight] * threads[shape.threads];
    return (vectors + chunk - 1) / chunk;
}

static int blocks_that_fit(shape shape, bool writes) {
    return fitting[writes][shape.in_flight][shape.hint][shape.threads];
}

bool gpu_limit_is_useful(int number, bool writes, size_t bytes) {
    const shape shape = shape_at(number);
    const int64_t fit = blocks_that_fit(shape, writes), chunks = chunks_of(shape, bytes);
    return fit > 0 && (shape.strides ? chunks > fit : chunks <= INT32_MAX);
}

bool gpu_limit_launch(int number, bool writes, size_t bytes, void *a, void *b, void *c) {
    const shape shape = shape_at(number);
    int64_t vectors = (int64_t)((bytes + VECTOR - 1) / VECTOR);
    void *parameters[] = {&a, &b, &c, &vectors};
    const int64_t blocks = shape.strides ? blocks_that_fit(shape, writes) : chunks_of(shape, bytes);
    return gpu_launch(kernels[writes][shape.in_flight][shape.hint], (unsigned)blocks, (unsigned)threads[shape.threads],
                      parameters);
}

bool gpu_limits_linger(void) {
    int64_t cycles = LINGER_CYCLES;
    void *parameters[] = {&cycles};
    return gpu_launch(linger, 1, 1, parameters);
}
