/* What pairwise.h says: first a launch, then a case of the list by one launch or several. */
#include "pairwise.h"
#include "check.h"

#include <math.h>

/* ------------------------------------------------------------ a launch -- */

static _Alignas(256) unsigned char workspace[ONEPASS_WORKSPACE_SIZE + CUDA_WORKSPACE_HEAD + MARGIN];
uint64_t simt_first_seed;
int32_t simt_flags;

how simt_describe(const cuda_launch *launch, uint64_t seed) {
    how how;
    snprintf(how.text, sizeof how.text, "onepass_%s_%s of %s, %u blocks of %u threads, seed %llu",
             launch->loss->info.name, onepass_cuda_variant[launch->variant].name, oracle_dtype_name(launch->compute),
             launch->blocks, launch->threads, (unsigned long long)seed);
    return how;
}

static size_t first_other(const unsigned char *bytes, size_t count, unsigned char expected) {
    size_t i = 0;
    while (i < count && bytes[i] == expected) {
        i++;
    }
    return i;
}

/* The head of the workspace, which has the counter, is zeroed once; the rest may hold anything. */
static void poison_workspace(const cuda_launch *launch) {
    memset(workspace + CUDA_WORKSPACE_HEAD, 0xff, launch->workspace + MARGIN);
}

/* The sum of weights that the last launch of such has left is of no meaning to any launch but the next. */
static void poison_weights(void) {
    memset(workspace + CUDA_WEIGHTS_AT, 0xff, sizeof(double));
}

/* Afterwards the head is zero again but for the sum of weights, whether the launch has left it so or not. Blocks that
 * are awaited (await.h) leave sums by marks, which are gone: a sum of an earlier launch must not be found. */
static void check_workspace(const cuda_launch *launch, uint64_t seed, const char *what) {
    const size_t size = launch->workspace ? launch->workspace : CUDA_WORKSPACE_HEAD;
    double weights;
    memcpy(&weights, workspace + CUDA_WEIGHTS_AT, sizeof weights);
    memset(workspace + CUDA_WEIGHTS_AT, 0, sizeof weights);
    const size_t zeros = first_other(workspace, CUDA_WORKSPACE_HEAD, 0);
    CHECK(zeros == CUDA_WORKSPACE_HEAD, "%s; %s: expected the workspace's head at zero, got %02x at byte %zu", what,
          simt_describe(launch, seed).text, workspace[zeros], zeros);
    const cuda_variant_info *variant = &onepass_cuda_variant[launch->variant];
    const bool awaits = variant->kind == kind_small || variant->kind == kind_small_mean ||
                        (is_mean(variant->direction) && launch->blocks <= CUDA_MOST_AWAITED);
    if (awaits && size > CUDA_WORKSPACE_HEAD) {
        const size_t cleared = first_other(workspace + CUDA_WORKSPACE_HEAD, size - CUDA_WORKSPACE_HEAD, 0);
        CHECK(cleared == size - CUDA_WORKSPACE_HEAD, "%s; %s: left a sum that the next launch would take for its own",
              what, simt_describe(launch, seed).text);
    }
    const size_t beyond = first_other(workspace + size, MARGIN, 0xff);
    CHECK(beyond == MARGIN, "%s; %s: wrote beyond its %zu bytes of workspace", what, simt_describe(launch, seed).text,
          size);
    memset(workspace, 0, CUDA_WORKSPACE_HEAD);
    memcpy(workspace + CUDA_WEIGHTS_AT, &weights, sizeof weights);
}

/* The launch bounds of the kernels. */
static uint32_t most_threads_of(const cuda_launch *launch) {
    const int32_t tiles = 8; /* of those for a few tiles */
    switch (onepass_cuda_variant[launch->variant].kind) {
    case kind_few:
    case kind_few_mean:
        return tiles * CUDA_FEW_WARPS * 32;
    case kind_tiny:
    case kind_tiny_both:
        return CUDA_TINY_WARPS * 32;
    case kind_tiny_mean:
        return (CUDA_TINY_WARPS + 1) * 32;
    case kind_whole:
        return CUDA_WHOLE_WARPS * 32;
    default:
        return CUDA_MOST_WARPS * 32;
    }
}

/* What a GPU would refuse: more threads than the kernels' launch bounds, more shared memory (with a little that is
 * not dynamic) than the 48 KiB that need no special request. Shapes that a test asks for may go beyond. */
static bool check_plan(const cuda_launch *launch, const char *what) {
    const bool forced = onepass_cuda_shape.warps != 0;
    const uint32_t most_threads = forced ? SIMT_MOST_THREADS : most_threads_of(launch);
    const uint32_t most_shared_memory = forced ? 400 * 1024 : 44 * 1024;
    return CHECK(launch->threads % 32 == 0 && launch->threads >= 32 && launch->threads <= most_threads &&
                     launch->shared_memory <= most_shared_memory && launch->workspace <= ONEPASS_WORKSPACE_SIZE,
                 "%s: a plan that cannot be launched: %s, %u bytes of shared memory, %zu of workspace", what,
                 simt_describe(launch, 0).text, launch->shared_memory, launch->workspace);
}

bool simt_run_blocks(cuda_launch *launch, uint64_t seed, uint32_t first_block, uint32_t block_count, const char *what) {
    if (launch->blocks == 0) {
        return true;
    }
    if (!check_plan(launch, what)) {
        return false;
    }
    onepass_cuda_give_workspace(launch, launch->workspace ? workspace : NULL);
    poison_workspace(launch);
    if (!CHECK(simt_run_plan(launch, simt_first_seed + seed, first_block, block_count), "%s: there is no kernel %s",
               what, simt_describe(launch, seed).text)) {
        return false;
    }
    check_workspace(launch, seed, what);
    return true;
}

/* The launch that comes before that of a job which is divided by the sum of its weights. */
static void plan_before(const job *job, cuda_launch *launch) {
    struct job weights;
    onepass_plan_weights(job, &weights);
    onepass_cuda_plan(&weights, MULTIPROCESSORS, launch);
}

static bool has_launch_before(const job *job) {
    return job->over_weights && !onepass_cuda_weighs_itself(job) && !onepass_cuda_finds_divisor(job);
}

bool simt_plan_and_run(const job *job, uint64_t seed, const char *what, cuda_launch *launch) {
    poison_weights();
    if (has_launch_before(job)) {
        plan_before(job, launch);
        if (!simt_run_blocks(launch, seed, 0, 0, what)) {
            return false;
        }
    }
    onepass_cuda_plan(job, MULTIPROCESSORS, launch);
    return simt_run_blocks(launch, seed, 0, 0, what);
}

/* --------------------------------------------------------------- a case -- */

void simt_compare(const prepared_case *expected, const prepared_case *got, const char *how, const char *what) {
    char difference[160];
    if (case_equal(expected, got, difference, sizeof difference)) {
        CHECK(1, "equal");
    } else {
        CHECK(0, "%s; %s: %s", what, how, difference);
    }
}

/* What the CPU engine divides a mean by. */
static double divisor_of_case(const test_case *c, const char *what) {
    double divided_by = 0;
    const onepass_tensor tensor = {&divided_by, ONEPASS_F64, 0, NULL, NULL};
    prepared_case *copy = case_prepare(c);
    copy->call.flags = simt_flags;
    copy->call.divided_by = &tensor;
    CHECK_OK(onepass_run(&copy->call), what);
    case_free(copy);
    return divided_by;
}

/* The same case with what its mean is divided by known beforehand. */
static void run_with_divisor(const test_case *c, const prepared_case *expected, uint64_t seed, const char *what) {
    job job;
    cuda_launch launch;
    double divisor = divisor_of_case(c, what);
    const onepass_tensor tensor = {&divisor, ONEPASS_F64, 0, NULL, NULL};
    prepared_case *got = case_prepare(c);
    got->call.flags = simt_flags & ~(uint32_t)ONEPASS_OVER_ELEMENTS;
    got->call.divisor_tensor = &tensor;
    if (CHECK_OK(onepass_plan(&got->call, &job), what) && CHECK(!has_launch_before(&job), "%s: two launches", what) &&
        simt_plan_and_run(&job, seed, what, &launch)) {
        simt_compare(expected, got, simt_describe(&launch, seed).text, what);
    }
    case_free(got);
}

/* `expected` has been through the CPU engine. */
static void run_on_copy(const test_case *c, const prepared_case *expected, uint64_t seed, const char *what) {
    job job;
    cuda_launch launch;
    prepared_case *got = case_prepare(c);
    got->call.flags = simt_flags;
    double divided_by = 0;
    if (CHECK_OK(onepass_plan(&got->call, &job), what)) {
        const bool is_told = onepass_cuda_weighs_itself(&job), over_weights = job.over_weights;
        if (is_told) {
            job.divided_by = (view){.data = &divided_by, .dtype = ONEPASS_F64};
        }
        if (simt_plan_and_run(&job, seed, what, &launch)) {
            simt_compare(expected, got, simt_describe(&launch, seed).text, what);
        }
        if (is_told) {
            const double wanted = divisor_of_case(c, what);
            CHECK(divided_by == wanted || (isnan(divided_by) && isnan(wanted)), "%s; %s: divided by %a, told %a", what,
                  simt_describe(&launch, seed).text, wanted, divided_by);
        }
        if (over_weights && job.gradient[0].data) {
            run_with_divisor(c, expected, seed, what);
        }
    }
    case_free(got);
}

/* Which kernel the plan takes for a call, as things stand, and which one before it; as one number. */
static int32_t kernels_for(const onepass_call *call, const char *what) {
    job job;
    cuda_launch launch = {.variant = 0}, before = {.variant = 0};
    if (CHECK_OK(onepass_plan(call, &job), what)) {
        onepass_cuda_plan(&job, MULTIPROCESSORS, &launch);
        if (has_launch_before(&job)) {
            plan_before(&job, &before);
        }
    }
    return (int32_t)before.variant * CUDA_VARIANTS + (int32_t)launch.variant;
}

/* By every kernel that can do it, in the plan's own shape. */
static void run_kernels(const test_case *c, const prepared_case *expected, uint64_t seed, const char *what) {
    static const int32_t choices[] = {0, CUDA_SMALL_KERNELS, CUDA_LARGE_KERNELS, CUDA_GENERAL_KERNELS};
    int32_t kernel[COUNT(choices)];
    for (int i = 0; i < COUNT(choices); i++) {
        bool again = false;
        onepass_cuda_shape = (cuda_shape){.kernels = choices[i]};
        kernel[i] = kernels_for(&expected->call, what);
        for (int j = 0; j < i; j++) {
            again = again || kernel[j] == kernel[i];
        }
        if (!again) {
            run_on_copy(c, expected, seed, what);
        }
    }
}

void simt_run_case(const test_case *c, const cuda_shape *shapes, int count, uint64_t seed) {
    char text[512];
    prepared_case *expected = case_prepare(c);
    expected->call.flags = simt_flags;
    case_describe(c, text, sizeof text);
    if (CHECK_OK(onepass_run(&expected->call), text)) {
        if (count == 0) {
            run_kernels(c, expected, seed, text);
        }
        for (int i = 0; i < count; i++) {
            onepass_cuda_shape = shapes[i];
            run_on_copy(c, expected, seed * 1000 + (uint64_t)i, text);
        }
        onepass_cuda_shape = (cuda_shape){0};
    }
    case_free(expected);
}

int32_t simt_compute_type(const test_case *c) {
    return case_in_double(c) ? ONEPASS_F64 : ONEPASS_F32;
}
