/*
 * The list of cases on the GPU: each once as the library likes it, some under every
 * launch shape, and gradients that are scaled later or computed anew. The CPU engine
 * says what every byte of a case's block must be, poison included.
 */
#include "cases.h"
#include "check.h"
#include "cuda/plan.h" /* onepass_cuda_shape */
#include "gpu.h"
#include "oracle.h"
#include "plan/plan.h"
#include "test_cuda.h"

#include <math.h>

/* A case here, its block over there, and room to read it back. */
typedef struct stage {
    void *stream;
    void *memory;             /* the GPU's */
    unsigned char *read_back; /* pinned */
    size_t bytes;             /* of both */
} stage;

static stage stage_begin(void) {
    return (stage){.stream = gpu_stream_begin()};
}

static void stage_end(stage *stage) {
    if (stage->memory) {
        gpu_free(stage->memory);
        gpu_free_pinned(stage->read_back);
    }
    gpu_stream_end(stage->stream);
}

static void make_room(stage *stage, size_t bytes) {
    if (bytes <= stage->bytes) {
        return;
    }
    if (stage->memory) {
        gpu_free(stage->memory);
        gpu_free_pinned(stage->read_back);
    }
    stage->bytes = 2 * bytes;
    stage->memory = gpu_allocate(stage->bytes);
    stage->read_back = gpu_allocate_pinned(stage->bytes);
}

/* Puts the block over there and returns where it is; the call goes into `translated`. */
static void *send(stage *stage, const prepared_case *prepared, gpu_case *translated) {
    make_room(stage, gpu_block_bytes(prepared));
    void *block = gpu_block_in(prepared, stage->memory);
    gpu_write(block, prepared->block, prepared->block_size, stage->stream);
    gpu_case_translate(prepared, block, stage->stream, translated);
    return block;
}

/* Reads the block back and compares; `expected` has been through the CPU. */
static void receive(stage *stage, const prepared_case *expected, const void *block, const char *what) {
    char difference[256];
    gpu_read(stage->read_back, block, expected->block_size, stage->stream);
    const int equal = gpu_case_equal(expected, stage->read_back, difference, sizeof difference);
    CHECK(equal, "%s: %s", what, difference);
}

/* ------------------------------------------------------------- the list -- */

static void run_case(stage *stage, const test_case *c) {
    char text[512];
    gpu_case translated;
    prepared_case *prepared = case_prepare(c);
    case_describe(c, text, sizeof text);
    gpu_doing("%s", text);
    const void *block = send(stage, prepared, &translated);
    if (CHECK_OK(onepass_run(&translated.call), text) && CHECK_OK(onepass_run(&prepared->call), text)) {
        receive(stage, prepared, block, text);
    }
    case_free(prepared);
}

/* What a case is the first to show: its place on each axis, with the loss. */
enum {
    AXES = 9,
    PLACES = 64, /* on an axis, at most */
    MOST_LOSSES = 100,
    POSITIONS = MOST_LOSSES * AXES * PLACES
};

static void positions_of(const test_case *c, int loss, int positions[AXES]) {
    const int in_double = case_in_double(c);
    positions[0] = c->layout;
    positions[1] = c->prediction * 5 + c->target;
    positions[2] = c->gradient * 2 + in_double;
    positions[3] = c->value * 3 + c->reduction;
    positions[4] = c->wanted * 3 + c->reduction;
    positions[5] = c->upstream * 3 + c->reduction;
    positions[6] = c->data;
    positions[7] = c->weight * 3 + c->reduction;
    positions[8] = c->weight_dtype * 7 + c->weights;
    for (int axis = 0; axis < AXES; axis++) {
        positions[axis] += (loss * AXES + axis) * PLACES;
    }
}

/* Whether the case is small and shows something that none before it did; remembers that. */
static int shows_more(const test_case *c, bool seen[POSITIONS]) {
    int positions[AXES];
    int more = 0;
    int loss = 0;
    while (strcmp(oracle_loss_at(loss)->name, c->loss) != 0) {
        loss++;
    }
    if (c->rows * c->columns > 3000 || loss >= MOST_LOSSES) {
        return 0;
    }
    positions_of(c, loss, positions);
    for (int axis = 0; axis < AXES; axis++) {
        more |= !seen[positions[axis]];
        seen[positions[axis]] = true;
    }
    return more;
}

int test_cuda_cases(bool reduced) {
    static bool seen[POSITIONS];
    size_t count;
    size_t run = 0;
    const test_case *cases = case_list(&count);
    stage stage = stage_begin();
    for (size_t i = 0; i < count; i++) {
        if (!reduced || shows_more(&cases[i], seen)) {
            run_case(&stage, &cases[i]);
            run++;
        }
    }
    stage_end(&stage);
    printf("%zu of %zu cases of the list\n", run, count);
    return section_finish();
}

/* ------------------------------------------------------- launch shapes -- */

/* Each may be chosen alone or with the others; 0 leaves the choice to the plan. With few
 * blocks allowed, each goes over its tiles in many sweeps. */
static const int32_t all_warps[] = {0, 1, 2, 4, 8, 16};
static const int32_t all_tiles[] = {0, 1, 2, 4, 8, 16, 32, 64};
static const int32_t all_blocks[] = {0, 1, 3, 130};

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

enum {
    SHAPES = COUNT(all_warps) * COUNT(all_tiles) * COUNT(all_blocks) * 3
};

static cuda_shape shape_at(int i) {
    cuda_shape shape = {.warps = all_warps[i % COUNT(all_warps)]};
    i /= COUNT(all_warps);
    shape.tiles_per_block = all_tiles[i % COUNT(all_tiles)];
    i /= COUNT(all_tiles);
    shape.most_blocks = all_blocks[i % COUNT(all_blocks)];
    shape.kernels = i / COUNT(all_blocks);
    return shape;
}

/* A shape that is forced is not made to fit. What no block can have is left out: more shared memory than the 48 KiB
 * that a kernel gets unasked, of which up to 4 KiB are its own, and more threads than the kernels for double have
 * registers for. */
static bool can_launch_job(const job *job) {
    const uint32_t most_shared_memory = 44 << 10;
    const uint32_t most_threads = 256;
    cuda_launch launch;
    onepass_cuda_plan(job, 132, &launch);
    return launch.shared_memory <= most_shared_memory &&
           (job->compute == ONEPASS_F32 || launch.threads <= most_threads);
}

static bool can_launch(const onepass_call *call) {
    job weights, job;
    if (onepass_plan(call, &job) != ONEPASS_OK) {
        return true; /* and it will be told why not */
    }
    if (job.over_weights) {
        onepass_plan_weights(&job, &weights);
        return can_launch_job(&weights) && can_launch_job(&job);
    }
    return can_launch_job(&job);
}

static long shapes_run, shapes_left_out;

static void run_shape(stage *stage, const prepared_case *original, const prepared_case *expected, cuda_shape shape,
                      const char *text) {
    char what[640];
    gpu_case translated;
    snprintf(what, sizeof what, "%d warps, %d tiles a block, at most %d blocks%s: %s", shape.warps,
             shape.tiles_per_block, shape.most_blocks,
             shape.kernels == CUDA_GENERAL_KERNELS ? ", the general kernel" : "", text);
    gpu_doing("%s", what);
    const void *block = send(stage, original, &translated);
    onepass_cuda_shape = shape;
    const bool can = can_launch(&translated.call);
    const onepass_status status = can ? onepass_run(&translated.call) : ONEPASS_OK;
    onepass_cuda_shape = (cuda_shape){.warps = 0};
    shapes_run += can;
    shapes_left_out += !can;
    if (can && CHECK_OK(status, what)) {
        receive(stage, expected, block, what);
    }
}

/* A case under every shape, or under every `step`-th of them from `first` on. */
static void run_shapes(stage *stage, const test_case *c, int first, int step) {
    char text[512];
    prepared_case *original = case_prepare(c);
    prepared_case *expected = case_prepare(c);
    case_describe(c, text, sizeof text);
    if (CHECK_OK(onepass_run(&expected->call), text)) {
        for (int i = first; i < SHAPES; i += step) {
            run_shape(stage, original, expected, shape_at(i), text);
        }
    }
    case_free(original);
    case_free(expected);
}

/* 2051 tiles and a part: an odd number, so that the tree is broken on many levels. */
static test_case case_of_many_tiles(const char *loss, int32_t dtype, int32_t layout) {
    const test_case c = {.group = "shapes",
                         .loss = loss,
                         .prediction = dtype,
                         .target = dtype,
                         .gradient = dtype,
                         .value = ONEPASS_F64,
                         .upstream_dtype = ONEPASS_F32,
                         .reduction = ONEPASS_MEAN,
                         .wanted = WANT_VALUE | WANT_PREDICTION,
                         .layout = layout,
                         .rows = 3,
                         .columns = (2051 * ONEPASS_TILE + 78) / 3,
                         .data = DATA_UNIFORM,
                         .seed = 11};
    return c;
}

int test_cuda_shapes(bool reduced) {
    static const char *const layouts[] = {"dense", "unaligned", "target shared row", "padded rows"};
    size_t count;
    const test_case *cases = case_list(&count);
    stage stage = stage_begin();
    /* Steps that share no factor with the lengths of the axes, so that all values of each come up. */
    const size_t case_step = reduced ? 1511 : 61;
    const int shape_step = reduced ? 53 : 1;
    for (size_t i = 0; i < count; i += case_step) {
        run_shapes(&stage, &cases[i], (int)(i % (size_t)shape_step), shape_step);
    }
    for (int i = 0; oracle_loss_at(i) && !reduced; i++) {
        if (!case_loss_is_swept(oracle_loss_at(i)->name)) {
            continue;
        }
        for (int j = 0; j < COUNT(layouts); j++) {
            const int32_t dtype = j == 3 ? ONEPASS_F64 : j == 1 ? ONEPASS_F16 : ONEPASS_F32;
            const test_case c = case_of_many_tiles(oracle_loss_at(i)->name, dtype, case_layout_named(layouts[j]));
            run_shapes(&stage, &c, (i + j) % 11, 11);
        }
    }
    for (int kinds = 1; kinds <= 3; kinds++) { /* by a tile a block, means have more than can be awaited */
        test_case c = case_of_many_tiles("mse", ONEPASS_F32, LAYOUT_DENSE);
        c.weight_dtype = ONEPASS_F32;
        c.weight = kinds & 1 ? WEIGHT_DENSE : WEIGHT_ABSENT;
        c.mask = kinds & 2 ? WEIGHT_DENSE : WEIGHT_ABSENT;
        c.wanted = WANT_VALUE;
        run_shapes(&stage, &c, kinds, 7);
    }
    stage_end(&stage);
    printf("%ld launches; %ld that no block could have were left out\n", shapes_run, shapes_left_out);
    CHECK(shapes_run > shapes_left_out, "expected that most shapes can be launched");
    return section_finish();
}

/* -------------------------------------------------------- scaling later -- */

/* The case without its upstream gradient, then the gradients scaled by it: the bits of all at once. */
static void scale_later(stage *stage, const test_case *c, double upstream) {
    char text[512];
    char what[576];
    gpu_case translated;
    prepared_case *prepared = case_prepare(c);
    case_describe(c, text, sizeof text);
    snprintf(what, sizeof what, "scaled later by %g: %s", upstream, text);
    gpu_doing("%s", what);
    oracle_store(c->upstream_dtype, prepared->tensor[TENSOR_UPSTREAM].data, upstream);
    const void *block = send(stage, prepared, &translated);
    onepass_call without = translated.call;
    without.upstream = NULL;
    onepass_call scale = {
        .size = sizeof scale,
        .upstream = translated.call.upstream,
        .gradient = {translated.call.gradient[0], translated.call.gradient[1], translated.call.gradient[2]},
        .device = ONEPASS_CUDA,
        .stream = stage->stream};
    if (CHECK_OK(onepass_run(&without), what) && CHECK_OK(onepass_scale(&scale), what) &&
        CHECK_OK(onepass_run(&prepared->call), what)) {
        receive(stage, prepared, block, what);
    }
    case_free(prepared);
}

/* By 1 nothing is written: NaN of a face that no store of ours would leave stay as they are. */
static void scale_by_one(stage *stage, int32_t dtype, int32_t upstream_dtype) {
    enum {
        ELEMENTS = 5000
    };
    const int64_t count = ELEMENTS;
    const size_t bytes = ELEMENTS * oracle_size(dtype);
    char what[96];
    double one = 0;
    snprintf(what, sizeof what, "scaled by 1 in %s: %s", oracle_dtype_name(upstream_dtype), oracle_dtype_name(dtype));
    gpu_doing("%s", what);
    make_room(stage, bytes + 64);
    unsigned char *memory = stage->memory;
    oracle_store(upstream_dtype, &one, 1.0);
    gpu_write(memory, &one, sizeof one, stage->stream);
    gpu_fill(memory + 64, 0xff, bytes, stage->stream);
    const onepass_tensor upstream = {memory, upstream_dtype, 0, NULL, NULL};
    const onepass_tensor gradient = {memory + 64, dtype, 1, &count, NULL};
    const onepass_call scale = {.size = sizeof scale,
                                .upstream = &upstream,
                                .gradient = {&gradient},
                                .device = ONEPASS_CUDA,
                                .stream = stage->stream};
    if (!CHECK_OK(onepass_scale(&scale), what)) {
        return;
    }
    gpu_read(stage->read_back, memory + 64, bytes, stage->stream);
    size_t untouched = 0;
    while (untouched < bytes && stage->read_back[untouched] == 0xff) {
        untouched++;
    }
    CHECK(untouched == bytes, "%s: expected that nothing is written, got another byte %zu", what, untouched);
}

int test_cuda_scale(bool reduced) {
    static const double upstreams[] = {-0.37, 0.0, -0.0, 1e-42, 3e38, 1.0, NAN};
    static const int64_t columns[] = {191, 1500, 20000};
    stage stage = stage_begin();
    int turn = 0;
    for (int i = 0; oracle_loss_at(i); i++) {
        if (!case_loss_is_swept(oracle_loss_at(i)->name)) {
            continue;
        }
        for (int32_t layout = 0; layout < case_layout_count(); layout++) {
            for (int32_t dtype = ONEPASS_F32; dtype <= ONEPASS_F64; dtype++) {
                test_case c = {.group = "scale",
                               .loss = oracle_loss_at(i)->name,
                               .prediction = dtype,
                               .target = dtype,
                               .gradient = dtype,
                               .value = dtype,
                               .upstream_dtype = ONEPASS_F16 + turn % 4,
                               .reduction = turn % 2 ? ONEPASS_SUM : ONEPASS_MEAN,
                               .wanted = turn % 5 ? WANT_ALL : WANT_VALUE | WANT_TARGET,
                               .upstream = UPSTREAM_OTHER,
                               .layout = layout,
                               .rows = 7,
                               .columns = columns[reduced ? 0 : turn % COUNT(columns)],
                               .data = DATA_NORMAL,
                               .seed = (uint64_t)turn};
                if (!reduced || turn % 9 == 0) {
                    scale_later(&stage, &c, upstreams[turn % COUNT(upstreams)]);
                }
                turn++;
            }
        }
    }
    for (int32_t upstream = ONEPASS_F16; upstream <= ONEPASS_F64; upstream++) {
        scale_by_one(&stage, ONEPASS_F32, upstream);
        scale_by_one(&stage, ONEPASS_F64, upstream);
    }
    stage_end(&stage);
    return section_finish();
}

/* ------------------------------------------------------- computing anew -- */

/* What the upstream gradient of the case is where it is computed. */
static bool upstream_is_one(const test_case *c, const prepared_case *prepared) {
    const double upstream = oracle_load(c->upstream_dtype, prepared->tensor[TENSOR_UPSTREAM].data);
    return case_in_double(c) ? upstream == 1 : (float)upstream == 1;
}

/* Gradients that are poison stay it where the upstream gradient is 1, and else have the bits of all at once. */
static void compute_skip_if_one(stage *stage, const test_case *c, double upstream) {
    char text[512];
    char what[576];
    gpu_case translated;
    prepared_case *prepared = case_prepare(c);
    case_describe(c, text, sizeof text);
    snprintf(what, sizeof what, "unless %.17g is one: %s", upstream, text);
    gpu_doing("%s", what);
    oracle_store(c->upstream_dtype, prepared->tensor[TENSOR_UPSTREAM].data, upstream);
    const void *block = send(stage, prepared, &translated);
    translated.call.flags = ONEPASS_SKIP_IF_UPSTREAM_IS_ONE;
    if (CHECK_OK(onepass_run(&translated.call), what) &&
        (upstream_is_one(c, prepared) || CHECK_OK(onepass_run(&prepared->call), what))) {
        receive(stage, prepared, block, what);
    }
    case_free(prepared);
}

/* As it is meant: the gradients without the upstream gradient, then the question, captured once. It is asked anew each
 * time that the graph is replayed. */
static void ask_in_graph(stage *stage, const test_case *c) {
    static const double upstreams[] = {1, -2.5, 1, 1 + 0x1p-30, INFINITY};
    char what[576];
    gpu_case translated;
    prepared_case *prepared = case_prepare(c);
    case_describe(c, what, sizeof what);
    gpu_doing("in a graph, %s", what);
    unsigned char *block = send(stage, prepared, &translated);
    onepass_call without = translated.call;
    without.upstream = NULL;
    translated.call.flags = ONEPASS_SKIP_IF_UPSTREAM_IS_ONE;
    gpu_capture_begin(stage->stream, GPU_CAPTURE_THREAD_LOCAL);
    const onepass_status computed = onepass_run(&without), asked = onepass_run(&translated.call);
    gpu_graph graph = gpu_capture_end(stage->stream);
    if (CHECK_OK(computed, what) && CHECK_OK(asked, what)) {
        for (int i = 0; i < COUNT(upstreams); i++) {
            oracle_store(c->upstream_dtype, prepared->tensor[TENSOR_UPSTREAM].data, upstreams[i]);
            gpu_write(block, prepared->block, prepared->block_size, stage->stream);
            gpu_replay(&graph, stage->stream);
            prepared_case *expected = case_prepare(c);
            oracle_store(c->upstream_dtype, expected->tensor[TENSOR_UPSTREAM].data, upstreams[i]);
            if (CHECK_OK(onepass_run(&expected->call), what)) {
                receive(stage, expected, block, what);
            }
            case_free(expected);
        }
    }
    gpu_graph_end(&graph);
    case_free(prepared);
}

int test_cuda_skip_if_one(bool reduced) {
    static const double upstreams[] = {1, 2.5, NAN, INFINITY, -0.0, 1 + 0x1p-30};
    static const int64_t columns[] = {1, 191, 1500, 2048, 20000};
    static const int32_t wanted[] = {WANT_PREDICTION, WANT_TARGET, WANT_PREDICTION | WANT_TARGET};
    stage stage = stage_begin();
    int turn = 0;
    for (int i = 0; oracle_loss_at(i); i++) {
        if (!case_loss_is_swept(oracle_loss_at(i)->name)) {
            continue;
        }
        for (int32_t layout = 0; layout < case_layout_count(); layout++) {
            for (int32_t operand = ONEPASS_F16; operand <= ONEPASS_F64; operand++, turn++) {
                const test_case c = {.group = "unless one",
                                     .loss = oracle_loss_at(i)->name,
                                     .prediction = operand,
                                     .target = operand,
                                     .gradient = turn % 3 ? operand : ONEPASS_F16 + turn / 3 % 4,
                                     .value = operand,
                                     .upstream_dtype = turn % 5 ? ONEPASS_F64 : ONEPASS_F16 + turn / 5 % 3,
                                     .reduction = turn / 2 % 2 ? ONEPASS_SUM : ONEPASS_MEAN,
                                     .wanted = wanted[turn / 5 % COUNT(wanted)],
                                     .upstream = UPSTREAM_OTHER,
                                     .layout = layout,
                                     .rows = 3,
                                     .columns = columns[reduced ? turn % 2 : turn / 4 % COUNT(columns)],
                                     .data = DATA_NORMAL,
                                     .weight = turn % 7 < 3 ? turn / 7 % WEIGHT_COUNT : WEIGHT_ABSENT,
                                     .weight_dtype = operand,
                                     .weights = turn % WEIGHTS_COUNT,
                                     .seed = (uint64_t)turn};
                if (strncmp(case_layout_name(layout), "in place", 8) == 0 || (reduced && turn % 9)) {
                    continue; /* the former are refused */
                }
                for (int k = 0; k < COUNT(upstreams); k++) {
                    compute_skip_if_one(&stage, &c, upstreams[k]);
                }
                if (layout == LAYOUT_DENSE || turn % 11 == 0) {
                    ask_in_graph(&stage, &c);
                }
            }
        }
    }
    stage_end(&stage);
    return section_finish();
}
