/*
 * The CUDA engine's host side against a fake driver, for losses over rows: what is launched one after the other, with
 * which pointers and in which workspace; rows that are none; a divisor that is a tensor, of pairwise losses too; and
 * what is said if the launch of a step fails.
 */
#define _GNU_SOURCE
#include "cuda_host_rows.h"
#include "plan/plan.h"

static const fake_launch *launch_number(const fake *fake, int32_t number) {
    return &fake->launch[number % FAKE_MOST_LAUNCHES];
}

/* `names` stand apart by '|': what the kernels of the launches from `first` on have in their names. */
static void expect_launches(const fake *fake, int32_t first, const char *names, const char *what) {
    char list[256], got[512] = "", *rest = list;
    int32_t number = first;
    bool as_expected = true;
    snprintf(list, sizeof list, "%s", names);
    for (char *name; (name = strtok_r(rest, "|", &rest)) != NULL; number++)
        as_expected &= number < fake->launches && strstr(launch_number(fake, number)->kernel, name);
    for (int32_t i = first; i < fake->launches; i++)
        snprintf(got + strlen(got), sizeof got - strlen(got), "%s%s", i > first ? "|" : "",
                 launch_number(fake, i)->kernel);
    CHECK(as_expected && number == fake->launches, "%s: launched %s; expected %s", what, got, names);
}

/* All launches of a call are as planned, on one stream, and those that have a workspace have the same. Those over rows
 * in float begin while the one before them in their call ends. */
static void check_steps(const fake *fake, const onepass_call *call, int32_t first, const char *what) {
    static cuda_launch plan;
    static job job;
    const void *workspace = NULL;
    int32_t number = first;
    HOLDS(onepass_plan(call, &job) == ONEPASS_OK);
    for (int step = 0; onepass_cuda_plan_step(&job, step, &fake_limits, &plan); step++) {
        if (plan.blocks == 0)
            continue;
        const bool is_first = number == first;
        const fake_launch *launch = launch_number(fake, number++);
        char kernel[96];
        snprintf(kernel, sizeof kernel, "onepass_%s_%s", plan.loss->info.name, onepass_cuda_variant[plan.variant].name);
        CHECK(strcmp(launch->kernel, kernel) == 0 && launch->blocks == plan.blocks && launch->threads == plan.threads &&
                  launch->shared_memory == plan.shared_memory,
              "%s: %s in %u blocks of %u threads; expected %s in %u of %u", what, launch->kernel, launch->blocks,
              launch->threads, kernel, plan.blocks, plan.threads);
        HOLDS(launch->threads % 32 == 0 && launch->threads <= 32 * CUDA_WIDE_WARPS);
        HOLDS(launch->stream == last_launch(fake)->stream && launch->context == last_launch(fake)->context);
        const bool is_over_rows = strstr(launch->kernel, "rows_") || strstr(launch->kernel, "vectors_");
        CHECK(launch->overlaps == (!is_first && is_over_rows && strstr(launch->image, " f32")),
              "%s: launch %d, %s, %s the one before it", what, step, launch->kernel,
              launch->overlaps ? "overlaps" : "does not overlap");
        HOLDS((launch->head.total.workspace != NULL) == (plan.workspace > 0));
        HOLDS(!workspace || !launch->head.total.workspace || launch->head.total.workspace == workspace);
        workspace = launch->head.total.workspace ? launch->head.total.workspace : workspace;
    }
    CHECK(number == fake->launches, "%s: %d launches; %d are planned", what, fake->launches - first, number - first);
}

static void expect_call(fake *fake, row_scene *s, const char *names, const char *what) {
    const int32_t before = fake->launches;
    if (!CHECK_OK(onepass_run(&s->call), what))
        return;
    expect_launches(fake, before, names, what);
    check_steps(fake, &s->call, before, what);
}

/* ------------------------------------------------------------------ launches -- */

/* The names of a call's launches: what comes before, those that have the rows, and what comes after. */
static const char *sequence(const char *before, const char *rows, bool twice, const char *after) {
    static char names[200];
    snprintf(names, sizeof names, "%s%s%s%s%s", before, rows, twice ? "|" : "", twice ? rows : "", after);
    return names;
}

/* Warps that share out a row's classes step over 32 of them by 32-bit numbers: classes that lie further apart have
 * another kernel. */
static void test_far_classes(void *unused) {
    (void)unused;
    static const struct {
        int64_t stride;
        const char *kernel;
    } cases[] = {{300, "rows_aside"},
                 {((int64_t)1 << 26) - 1, "rows_aside"},
                 {(int64_t)1 << 26, "rows_any"},
                 {(int64_t)1 << 31, "rows_any"}};
    static cuda_launch plan;
    static job job;
    row_scene s;
    make_rows(find_fake(), 300, 40, &s);
    s.call.gradient[0] = NULL;
    s.call.divisor = 7;                                 /* the first step has the rows */
    s.value.data = (void *)((char *)s.input.data - 64); /* not between the classes; nobody writes it */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int64_t strides[] = {1, cases[i].stride};
        s.input.strides = strides;
        HOLDS(onepass_plan(&s.call, &job) == ONEPASS_OK);
        HOLDS(onepass_cuda_plan_step(&job, 0, &fake_limits, &plan));
        CHECK(strcmp(onepass_cuda_variant[plan.variant].name, cases[i].kernel) == 0,
              "classes %lld apart: planned %s; expected %s", (long long)cases[i].stride,
              onepass_cuda_variant[plan.variant].name, cases[i].kernel);
    }
}

/* A mean over labels is divided by what its rows count for: that comes before, unless the rows' own launch counts, as
 * the first of two over rows that are gone through twice does. */
static void test_sequences(void *unused) {
    (void)unused;
    fake *fake = find_fake();
    static const int64_t classes[] = {1, 10, 1000, 1001, 5000, 20001, 30000, 200000};
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        const bool is_long = classes[i] == 200000, twice = is_long || classes[i] == 20001;
        const char *const rows = "cross_entropy_rows_", *const count = twice ? "" : "rows_row_count|";
        const char *const sum = "|rows_total";
        row_scene s;
        make_rows(fake, 3, classes[i], &s);
        expect_call(fake, &s, sequence(count, rows, twice, sum), "mean and gradient");
        s.call.value = NULL;
        expect_call(fake, &s, sequence(count, rows, twice, ""), "the gradient of a mean");
        s.call.value = &s.value;
        s.call.operand[2] = &s.class_weight;
        expect_call(fake, &s, sequence("rows_row_weights|rows_total|", rows, twice, sum), "with class weights");
        s.call.flags = ONEPASS_OVER_ELEMENTS;
        expect_call(fake, &s, sequence(count, rows, twice, sum), "over elements");
        s.call.flags = 0;
        s.call.reduction = ONEPASS_SUM;
        expect_call(fake, &s, sequence("", rows, twice, sum), "sum");
        s.call.reduction = ONEPASS_NONE;
        s.call.value = &s.values;
        expect_call(fake, &s, sequence("", rows, twice, ""), "none");
        s.call.reduction = ONEPASS_MEAN;
        s.call.value = &s.value;
        s.call.divisor = 7;
        expect_call(fake, &s, sequence("", rows, twice, sum), "with a divisor");
        s.call.divisor = 0;
        s.call.operand[2] = NULL;
        s.call.operand[1] = &s.probabilities;
        s.call.loss = "cross_entropy_with_probabilities";
        const bool probabilities_twice = is_long || classes[i] == 30000;
        expect_call(fake, &s, sequence("", "with_probabilities_rows_", probabilities_twice, sum), "probabilities");
        s.call.weight = &s.weight;
        expect_call(fake, &s, sequence("onepass_weights_|", "with_probabilities_rows_", probabilities_twice, sum),
                    "weighted probabilities");
        s.call.weight = NULL;
        s.call.operand[1] = &s.labels;
        s.call.loss = "nll";
        expect_call(fake, &s, "rows_row_count|nll_rows_picked|rows_total", "nll");
    }
}

/* A value alone: the launch that has the rows may count them itself, and then nothing comes before. */
static void test_counting(void *unused) {
    (void)unused;
    fake *fake = find_fake();
    row_scene s;
    make_rows(fake, 3000, 4096, &s);
    s.call.gradient[0] = NULL;
    CHECK_OK(onepass_run(&s.call), "a mean");
    const fake_launch *rows = launch_number(fake, fake->launches - 2), *sum = last_launch(fake);
    HOLDS(strstr(rows->kernel, "cross_entropy_rows_") && strstr(sum->kernel, "rows_total"));
    HOLDS((fake->launches == 2) == rows->row.counts && (fake->launches == 3) == !rows->row.counts);
    HOLDS(sum->terms.total.value == s.value.data && sum->terms.count == 3000);
    HOLDS(sum->terms.over_weights && sum->terms.total.number == 1 && !sum->terms.total.divides);
    HOLDS(sum->terms.terms_at == rows->row.terms_at && rows->row.terms_at >= CUDA_WORKSPACE_HEAD);
    HOLDS(rows->row.total.workspace == sum->terms.total.workspace);
    check_steps(fake, &s.call, 0, "a mean");
}

/* So many rows that their blocks may not fit below their number have a launch that counts them. */
static void test_too_many_to_count(void *unused) {
    (void)unused;
    static cuda_launch plan;
    static job job;
    row_scene s;
    make_rows(find_fake(), 3, 4096, &s);
    s.call.gradient[0] = NULL;
    HOLDS(onepass_plan(&s.call, &job) == ONEPASS_OK);
    for (int more = 0; more < 2; more++) {
        job.count = ((int64_t)1 << 28) - 1 + more;
        HOLDS(onepass_cuda_plan_step(&job, 0, &fake_limits, &plan));
        HOLDS((plan.variant == variant_row_count) == more);
        HOLDS(onepass_cuda_plan_step(&job, more, &fake_limits, &plan));
        HOLDS(plan.variant == variant_rows_forward && plan.parameter.row.counts == !more);
    }
}

/* Values of a wave of rows, and of a few more, are shared out; but each warp of a block is to have a tile. */
static void test_groups(void *unused) {
    (void)unused;
    static const struct {
        int64_t rows, classes;
        int32_t long_groups, long_group, group;
        uint32_t blocks;
    } cases[] = {{8 * 132 * 31 + 32, 4096, 8 * 132, 31, 1, 8 * 132 + 32},
                 {8 * 132, 4096, 8 * 132, 1, 1, 8 * 132},
                 {32768, 5000, 2 * 8 * 132, 15, 1, 2 * 8 * 132 + 1088},
                 {8 * 132 * 4, 1001, 8 * 132, 4, 4, 8 * 132},
                 {8 * 132 * 4 - 1, 1001, 0, 0, 4, 8 * 132},
                 {1, 4096, 0, 0, 1, 1}};
    static cuda_launch plan;
    static job job;
    static const cuda_limits limits = {132, FAKE_SHARED_MEMORY, FAKE_CLUSTERS, true};
    row_scene s;
    make_rows(find_fake(), 3, 5000, &s);
    s.call.gradient[0] = NULL;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        HOLDS(onepass_plan(&s.call, &job) == ONEPASS_OK);
        job.count = cases[i].rows;
        job.rows.classes = job.rows.shard.all_classes = cases[i].classes;
        HOLDS(onepass_cuda_plan_step(&job, 0, &limits, &plan));
        const cuda_row *row = &plan.parameter.row;
        CHECK(row->long_groups == cases[i].long_groups && row->long_group == cases[i].long_group &&
                  row->group == cases[i].group && plan.blocks == cases[i].blocks,
              "%lld rows of %lld classes: %d blocks of %d rows, of %u, the others of %d", (long long)cases[i].rows,
              (long long)cases[i].classes, row->long_groups, row->long_group, plan.blocks, row->group);
    }
}

/* Every tensor goes where its kernel looks for it, and its type with it. */
static void test_row_pointers(void *unused) {
    (void)unused;
    fake *fake = find_fake();
    row_scene s;
    make_rows(fake, 300, 1000, &s);
    s.call.operand[2] = &s.class_weight;
    s.call.weight = &s.weight;
    s.call.mask = &s.mask;
    s.call.upstream = &s.upstream;
    s.call.log_sum_exp = &s.log_sum_exp;
    s.call.predicted = &s.predicted;
    s.call.row_state = &s.state;
    CHECK_OK(onepass_run(&s.call), "everything");
    HOLDS(fake->launches == 5);
    const fake_launch *launch = launch_number(fake, 3);
    const cuda_row *row = &launch->row;
    const onepass_tensor *expected[CUDA_ROW_TENSORS] = {[CUDA_ROW_INPUT] = &s.input,
                                                        [CUDA_ROW_TARGET] = &s.labels,
                                                        [CUDA_ROW_WEIGHT] = &s.weight,
                                                        [CUDA_ROW_MASK] = &s.mask,
                                                        [CUDA_ROW_UPSTREAM] = &s.upstream,
                                                        [CUDA_ROW_VALUE] = &s.value,
                                                        [CUDA_ROW_LOG_SUM_EXP] = &s.log_sum_exp,
                                                        [CUDA_ROW_PREDICTED] = &s.predicted,
                                                        [CUDA_ROW_GRADIENT] = &s.gradient};
    for (int i = 0; i < CUDA_ROW_TENSORS; i++)
        CHECK(row->data[i] == (expected[i] ? expected[i]->data : NULL) &&
                  (!expected[i] || row->dtype[i] == expected[i]->dtype),
              "tensor %d: other memory, or another type", i);
    HOLDS(row->class_weight == s.class_weight.data && row->state == s.state.data && !row->reads_state);
    HOLDS(row->rows == 300 && row->classes == 1000 && row->class_stride[0] == 1 && row->gradient_stride[0] == 1);
    HOLDS(row->over_weights && !row->counts && row->ignore_index == -100);
    HOLDS((int64_t)launch->blocks * row->group >= row->rows);

    /* The rows' weights are found out by the same. */
    const cuda_row *weights = &launch_number(fake, 1)->row;
    HOLDS(weights->data[CUDA_ROW_TARGET] == s.labels.data && weights->data[CUDA_ROW_WEIGHT] == s.weight.data);
    HOLDS(weights->data[CUDA_ROW_MASK] == s.mask.data && weights->class_weight == s.class_weight.data);
    const cuda_terms *sum = &launch_number(fake, 2)->terms;
    HOLDS(!sum->total.value && sum->total.workspace == weights->total.workspace && !sum->over_weights);

    /* What is predicted is found out first of all, by a warp for each row. */
    const fake_launch *predicted = launch_number(fake, 0);
    HOLDS(strstr(predicted->kernel, "rows_row_predicted") &&
          predicted->row.data[CUDA_ROW_PREDICTED] == s.predicted.data);
    HOLDS(predicted->row.data[CUDA_ROW_INPUT] == s.input.data && predicted->row.data[CUDA_ROW_MASK] == s.mask.data);
    HOLDS(predicted->blocks * predicted->threads >= 300 * 32);

    /* Gradients of a state that is there: nothing is added up. */
    s.call.value = NULL;
    s.call.log_sum_exp = s.call.predicted = NULL;
    CHECK_OK(onepass_run(&s.call), "of a state");
    HOLDS(fake->launches == 8 && last_launch(fake)->row.reads_state && !last_launch(fake)->row.terms_at);
}

/* What lies elsewhere is refused by its name, before anything is launched. */
static void test_memory(void *unused) {
    (void)unused;
    fake *fake = find_fake();
    _Alignas(16) static char plain[8 * 3 * 10];
    row_scene s;
    make_rows(fake, 3, 10, &s);
    s.call.operand[2] = &s.class_weight;
    s.call.weight = &s.weight;
    s.call.mask = &s.mask;
    s.call.upstream = &s.upstream;
    s.call.log_sum_exp = &s.log_sum_exp;
    s.call.predicted = &s.predicted;
    s.call.row_state = &s.state;
    s.call.divisor_tensor = &s.divisor;
    s.call.divided_by = &s.divided_by;
    const struct {
        const char *name;
        void **place;
    } tensors[] = {
        {"input", &s.input.data},
        {"target", &s.labels.data},
        {"class_weight", &s.class_weight.data},
        {"weight", &s.weight.data},
        {"mask", &s.mask.data},
        {"upstream", &s.upstream.data},
        {"value", &s.value.data},
        {"gradient[0]", &s.gradient.data},
        {"log_sum_exp", &s.log_sum_exp.data},
        {"predicted", &s.predicted.data},
        {"row_state", &s.state.data},
        {"divisor_tensor", &s.divisor.data},
        {"divided_by", &s.divided_by.data},
    };
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
        void *right = *tensors[i].place;
        *tensors[i].place = plain;
        expect_refusal(onepass_run(&s.call), ONEPASS_INVALID_MEMORY, "is in host memory|expected memory of GPU 0",
                       tensors[i].name);
        CHECK(strstr(onepass_message(), tensors[i].name) == onepass_message(), "expected %s in \"%s\"", tensors[i].name,
              onepass_message());
        *tensors[i].place = right;
    }
    HOLDS(fake->launches == 0 && fake->counts.memory == 0);
    CHECK_OK(onepass_run(&s.call), "all in place again");
}

/* ----------------------------------------------------------------- workspace -- */

/* A term a row: more rows than a stream's workspace has room for make it grow, once. */
static void test_growth(void *unused) {
    (void)unused;
    fake *fake = find_fake();
    row_scene few, many;
    make_rows(fake, 100, 10, &few);
    make_rows(fake, 200000, 10, &many);
    CHECK_OK(onepass_run(&few.call), "few rows");
    HOLDS(fake->counts.memory == 0); /* the first workspace is the module's */
    const void *first = last_launch(fake)->head.total.workspace;
    CHECK_OK(onepass_run(&many.call), "many rows");
    HOLDS(fake->counts.memory == 1 && fake->counts.bytes >= 200000 * sizeof(float));
    const void *grown = last_launch(fake)->head.total.workspace;
    HOLDS(grown != first);
    CHECK_OK(onepass_run(&many.call), "many rows again");
    CHECK_OK(onepass_run(&few.call), "few rows again");
    HOLDS(fake->counts.memory == 1 && last_launch(fake)->head.total.workspace == grown);
}

static void test_callers_workspace(void *unused) {
    (void)unused;
    fake *fake = find_fake();
    row_scene s;
    make_longest(fake, 50000, &s);
    const size_t enough = ONEPASS_WORKSPACE_SIZE + 8 * 50000;
    s.call.workspace = (void *)fake->allocate(FAKE_DEVICE, 0, enough);
    memset(s.call.workspace, 0, enough);
    s.call.workspace_size = 50000;
    expect_refusal(onepass_run(&s.call), ONEPASS_INVALID_ARGUMENT,
                   "workspace_size is 50000|bytes|48 bytes a row more for a loss over rows", "a workspace too small");
    HOLDS(fake->launches == 0);
    s.call.workspace_size = enough;
    expect_call(fake, &s, "row_weights|rows_total|cross_entropy_rows_|rows_total|divided_by", "the caller's own");
    HOLDS(last_launch(fake)->divided_by.total.workspace == s.call.workspace && fake->counts.memory == 0);
}

/* ------------------------------------------------------------------- no rows -- */

/* The sum of no rows is 0, their mean 0 / 0, and there are no values: one launch writes the number, or none does. */
static void test_no_rows(void *unused) {
    (void)unused;
    fake *fake = find_fake();
    static const char *const losses[] = {"cross_entropy", "nll", "cross_entropy_with_probabilities"};
    float plain[1];
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++) {
        row_scene s;
        make_rows(fake, 0, 10, &s);
        s.call.loss = losses[i];
        s.call.operand[1] = i == 2 ? &s.probabilities : &s.labels;
        s.input.data = s.gradient.data = plain; /* a tensor without elements may point anywhere */
        int32_t before = fake->launches;
        expect_call(fake, &s, "rows_total", "the mean of no rows");
        const cuda_total *total = &last_launch(fake)->head.total;
        HOLDS(fake->launches == before + 1 && last_launch(fake)->blocks == 1 && total->value == s.value.data);
        HOLDS(total->divides && total->number == 0 && last_launch(fake)->terms.count == 0);
        s.call.reduction = ONEPASS_SUM;
        expect_call(fake, &s, "rows_total", "the sum of no rows");
        HOLDS(last_launch(fake)->head.total.number == 1);
        before = fake->launches;
        s.call.reduction = ONEPASS_NONE;
        s.call.value = &s.values;
        CHECK_OK(onepass_run(&s.call), "no values");
        s.call.reduction = ONEPASS_MEAN;
        s.call.value = NULL;
        CHECK_OK(onepass_run(&s.call), "no gradients");
        HOLDS(fake->launches == before);
        s.call.value = &s.value;
        s.call.divisor_tensor = &s.divisor;
        s.call.divided_by = &s.divided_by;
        expect_call(fake, &s, "onepass_weights_|rows_total|divided_by", "no rows, and a divisor");
    }
}

/* ------------------------------------------------------------------ divisors -- */

static void test_divisor_of_rows(void *unused) {
    (void)unused;
    fake *fake = find_fake();
    row_scene s;
    make_rows(fake, 300, 1000, &s);
    s.call.divisor_tensor = &s.divisor;
    expect_call(fake, &s, "onepass_weights_|cross_entropy_rows_|rows_total", "a divisor tensor");
    const fake_launch *read = launch_number(fake, 0), *rows = launch_number(fake, 1);
    HOLDS(read->head.data[CUDA_PREDICTION] == s.divisor.data && read->head.count == 1 && read->blocks == 1);
    HOLDS(read->head.total.value == (char *)rows->row.total.workspace + CUDA_WEIGHTS_AT);
    HOLDS(rows->row.over_weights && !rows->row.counts);
    s.call.divided_by = &s.divided_by;
    expect_call(fake, &s, "onepass_weights_|cross_entropy_rows_|rows_total|rows_divided_by", "and what it was");
    HOLDS(last_launch(fake)->divided_by.over_weights && last_launch(fake)->divided_by.total.value == s.divided_by.data);
    HOLDS(last_launch(fake)->divided_by.total.dtype == ONEPASS_F64 && last_launch(fake)->threads == 32);
    s.call.divisor_tensor = NULL;
    s.call.divisor = 7;
    expect_call(fake, &s, "cross_entropy_rows_|rows_total|rows_divided_by", "what a number was");
    HOLDS(!last_launch(fake)->divided_by.over_weights && last_launch(fake)->divided_by.total.number == 7);
    s.call.divisor = 0;
    expect_call(fake, &s, "rows_row_count|cross_entropy_rows_|rows_total|rows_divided_by", "what their number was");
    HOLDS(last_launch(fake)->divided_by.over_weights);
}

/* Losses of elements have both, too. */
static void test_divisor_of_elements(void *unused) {
    (void)unused;
    fake *fake = find_fake();
    scene s;
    make_scene(fake, 0, MANY, &s);
    const onepass_tensor divisor = place(fake, 0, 0, NULL), divided_by = place(fake, 0, 0, NULL);
    fake->divisor = divisor.data;
    s.call.divisor_tensor = &divisor;
    CHECK_OK(onepass_run(&s.call), "a divisor tensor");
    expect_launches(fake, 0, "onepass_weights_|onepass_mse_", "a divisor tensor");
    const fake_launch *read = launch_number(fake, 0);
    HOLDS(read->head.data[CUDA_PREDICTION] == divisor.data && read->head.count == 1);
    HOLDS(read->head.total.value == (char *)last_launch(fake)->head.total.workspace + CUDA_WEIGHTS_AT);
    s.call.divided_by = &divided_by;
    CHECK_OK(onepass_run(&s.call), "and what it was");
    expect_launches(fake, 2, "onepass_weights_|onepass_mse_|rows_divided_by", "and what it was");
    HOLDS(last_launch(fake)->divided_by.over_weights && last_launch(fake)->divided_by.total.value == divided_by.data);
    HOLDS(last_launch(fake)->divided_by.total.workspace == launch_number(fake, 3)->head.total.workspace);
    s.call.divisor_tensor = NULL;
    CHECK_OK(onepass_run(&s.call), "what the number of elements was");
    expect_launches(fake, 5, "onepass_mse_|rows_divided_by", "what the number of elements was");
    HOLDS(!last_launch(fake)->divided_by.over_weights && last_launch(fake)->divided_by.total.number == MANY);
    make_weighted(fake, &s);
    CHECK_OK(onepass_run(&s.call), "what the sum of weights was");
    expect_launches(fake, 7, "onepass_weights_|onepass_mse_|rows_divided_by", "what the sum of weights was");
}

/* -------------------------------------------------------------------- errors -- */

/* Whichever launch fails, the sentence names its kernel, none comes after it, and the next call is in order: what the
 * earlier ones left in the workspace is in nobody's way. */
static void test_failed_launches(void *unused) {
    (void)unused;
    static const char *const kernels[] = {"rows_row_weights", "rows_total", "cross_entropy_rows_", "rows_total",
                                          "rows_divided_by"};
    fake *fake = find_fake();
    row_scene s;
    make_longest(fake, 300, &s);
    for (int i = 0; i < 5; i++) {
        const int32_t before = fake->launches;
        char words[96];
        snprintf(words, sizeof words, "launching the kernel|%s|CUDA_ERROR_OUT_OF_MEMORY", kernels[i]);
        fake->fail_in = "cuLaunchKernelEx";
        fake->fail_at = 1 + i;
        fake->fail_with = CUDA_ERROR_OUT_OF_MEMORY;
        expect_refusal(onepass_run(&s.call), ONEPASS_OUT_OF_MEMORY, words, "a launch that fails");
        HOLDS(fake->launches == before + i);
        for (int32_t k = before; k < fake->launches; k++) /* the value comes last but one */
            HOLDS(launch_number(fake, k)->head.total.value != s.value.data || i == 4);
        expect_call(fake, &s, "row_weights|rows_total|cross_entropy_rows_|rows_total|divided_by", "the next call");
    }
    HOLDS(fake->depth() == 0 && fake->counts.memory == 0);
}

/* Vectors that stay in shared memory: the driver is told before a kernel may have more than others have, and a GPU
 * that has less goes through its longest rows in several launches. */
static void test_shared_memory(void *unused) {
    (void)unused;
    static const cuda_limits less = {FAKE_MULTIPROCESSORS, 64 * 1024, 0, false};
    static cuda_launch plan;
    static job job;
    fake *fake = find_fake();
    row_scene s;
    make_rows(fake, 3, 8192, &s);
    s.call.loss = "triplet_margin";
    s.call.operand[1] = s.call.operand[2] = &s.probabilities;
    expect_call(fake, &s, "triplet_margin_vectors_short|rows_total", "three vectors of 8192 elements");
    HOLDS(launch_number(fake, fake->launches - 2)->shared_memory == 3 * 8192 * sizeof(float));
    HOLDS(onepass_plan(&s.call, &job) == ONEPASS_OK);
    HOLDS(onepass_cuda_plan_step(&job, 0, &less, &plan) && plan.variant == variant_vectors_sums);
    HOLDS(onepass_cuda_vector_steps(&job, &less) == 3 && onepass_cuda_vector_steps(&job, &fake_limits) == 1);
    s.call.loss = "cosine_similarity";
    s.call.operand[2] = NULL;
    HOLDS(onepass_plan(&s.call, &job) == ONEPASS_OK);
    HOLDS(onepass_cuda_plan_step(&job, 0, &less, &plan) && plan.variant == variant_vectors_sums);
    fake->fail_in = "cuFuncSetAttribute";
    fake->fail_at = 1;
    fake->fail_with = 1;
    expect_refusal(onepass_run(&s.call), ONEPASS_DEVICE_FAILED,
                   "giving the kernel onepass_cosine_similarity_vectors_short 65536 bytes of shared memory failed",
                   "cuFuncSetAttribute");
    expect_call(fake, &s, "cosine_similarity_vectors_short|rows_total", "the next attempt");
}

/* Long rows of bf16 go through one launch where a GPU has clusters with so much shared memory, and else through two. */
static void test_clusters(void *unused) {
    (void)unused;
    static const cuda_limits none = {FAKE_MULTIPROCESSORS, FAKE_SHARED_MEMORY, 0, false},
                             less = {FAKE_MULTIPROCESSORS, 64 * 1024, FAKE_CLUSTERS, true};
    static const struct {
        int64_t classes;
        uint32_t clusters, warps; /* of a GPU with FAKE_CLUSTERS, three, two or one on the same multiprocessors */
    } cases[] = {{32768, 0, 0}, {32776, 3, 6},   {40961, 0, 0}, {49152, 2, 7},
                 {65536, 2, 9}, {131072, 1, 17}, {131080, 0, 0}};
    static cuda_launch plan;
    static job job;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        row_scene s;
        make_rows(find_fake(), 100, cases[i].classes, &s);
        s.input.dtype = s.gradient.dtype = ONEPASS_BF16;
        s.call.divisor = 7; /* the first step has the rows */
        HOLDS(onepass_plan(&s.call, &job) == ONEPASS_OK);
        HOLDS(onepass_cuda_plan_step(&job, 0, &fake_limits, &plan));
        const uint32_t blocks = CUDA_CLUSTER * cases[i].clusters * FAKE_CLUSTERS;
        const bool in_cluster = plan.variant == variant_rows_cluster;
        CHECK(in_cluster == (blocks > 0), "%lld classes: planned %s", (long long)cases[i].classes,
              onepass_cuda_variant[plan.variant].name);
        CHECK(!in_cluster || (plan.blocks == blocks && plan.threads == 32 * cases[i].warps),
              "%lld classes: got %u blocks of %u threads; expected %u of %u", (long long)cases[i].classes, plan.blocks,
              plan.threads, blocks, 32 * cases[i].warps);
        HOLDS(onepass_cuda_plan_step(&job, 0, &none, &plan) && plan.variant != variant_rows_cluster);
        HOLDS(onepass_cuda_plan_step(&job, 0, &less, &plan) && plan.variant != variant_rows_cluster);
    }
}

static const host_test tests[] = {
    {"sequences", test_sequences},
    {"far classes", test_far_classes},
    {"counting", test_counting},
    {"too many to count", test_too_many_to_count},
    {"groups", test_groups},
    {"pointers of rows", test_row_pointers},
    {"memory", test_memory},
    {"growth", test_growth},
    {"the caller's workspace", test_callers_workspace},
    {"no rows", test_no_rows},
    {"a divisor of rows", test_divisor_of_rows},
    {"a divisor of elements", test_divisor_of_elements},
    {"launches that fail", test_failed_launches},
    {"shared memory", test_shared_memory},
    {"clusters", test_clusters},
};

int main(void) {
    run_tests(tests, sizeof tests / sizeof *tests);
    return check_finish();
}
