/*
 * onepass_bench: ours beside what a user would write, in one run, as ratios.
 *
 * Each line runs two works in turn on the same arrays and compares their medians;
 * the bytes that must move stand beside it. The bars are those that the library
 * has set itself. A missed bar is shown, not an error: machines are noisy. A call
 * that fails is an error.
 */
#include "machine.h"
#include "measure.h"
#include "plain.h"
#include "report.h"
#include "sources.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <onepass.h>

/* ------------------------------------------------------------- settings -- */

enum {
    PADDING = 64, /* elements after each row of a padded array */
    MOST_LOSSES = 32
};

typedef struct bench {
    const char *json;
    const char *filter;
    bool quick;

    int64_t side;  /* the arrays of the large works are side x side */
    int64_t count; /* side * side */
    int64_t most;  /* the largest number of elements that the accuracy is checked on */
    int repetitions;
    onepass_machine_info machine;

    const onepass_loss_info *losses[MOST_LOSSES]; /* those that have plain loops to compare with */
    int loss_count;

    float *prediction, *target, *gradient;
    report report;
} bench;

/* ------------------------------------------------------------ two works -- */

/* A tensor with room for its own shape. */
typedef struct operand {
    onepass_tensor tensor;
    int64_t shape[4];
    int64_t strides[4];
} operand;

/* One of our calls, ready to run. It points into itself: never copy it. */
typedef struct our_work {
    onepass_call call;
    operand prediction, target, gradient;
    onepass_tensor value;
    float result;
    int calls;
} our_work;

/* A plain loop, ready to run. */
typedef struct plain_work {
    const plain_loss *loss;
    int64_t count;
    const float *prediction, *target;
    float *gradient;
    float parameter;
    int threads;
    int calls;
    plain_nest nest;
    float result;
} plain_work;

static void check(onepass_status status) {
    if (status != ONEPASS_OK) {
        fprintf(stderr, "%s: %s\n", onepass_status_name(status), onepass_message());
        exit(EXIT_FAILURE);
    }
}

/* A dense tensor if strides is null. */
static const onepass_tensor *describe(operand *operand, onepass_dtype dtype, const void *data, int ndim,
                                      const int64_t *shape, const int64_t *strides) {
    memcpy(operand->shape, shape, (size_t)ndim * sizeof *shape);
    if (strides)
        memcpy(operand->strides, strides, (size_t)ndim * sizeof *strides);
    operand->tensor = (onepass_tensor){(void *)data, dtype, ndim, operand->shape, strides ? operand->strides : NULL};
    return &operand->tensor;
}

/* Forward over two operands that the caller describes next. */
static void prepare_ours(our_work *ours, const char *loss, int threads) {
    memset(ours, 0, sizeof *ours);
    ours->value = (onepass_tensor){&ours->result, ONEPASS_F32, 0, NULL, NULL};
    ours->call = (onepass_call){.size = sizeof(onepass_call),
                                .loss = loss,
                                .operand = {&ours->prediction.tensor, &ours->target.tensor},
                                .value = &ours->value,
                                .threads = threads};
    ours->calls = 1;
}

static void prepare_dense(our_work *ours, const bench *bench, const char *loss, int threads) {
    prepare_ours(ours, loss, threads);
    const int64_t shape[] = {bench->side, bench->side};
    describe(&ours->prediction, ONEPASS_F32, bench->prediction, 2, shape, NULL);
    describe(&ours->target, ONEPASS_F32, bench->target, 2, shape, NULL);
}

/* Asks for the gradient too, over the whole square. */
static void want_gradient(our_work *ours, const bench *bench) {
    const int64_t shape[] = {bench->side, bench->side};
    ours->call.gradient[ONEPASS_PREDICTION] = describe(&ours->gradient, ONEPASS_F32, bench->gradient, 2, shape, NULL);
}

static float standard_parameter(const onepass_loss_info *loss) {
    return loss->parameter_count > 0 ? (float)loss->parameter[0].default_value : 0;
}

static void prepare_plain(plain_work *plain, const bench *bench, const onepass_loss_info *loss, int threads) {
    *plain = (plain_work){.loss = plain_loss_named(loss->name),
                          .count = bench->count,
                          .prediction = bench->prediction,
                          .target = bench->target,
                          .gradient = bench->gradient,
                          .parameter = standard_parameter(loss),
                          .threads = threads,
                          .calls = 1};
}

static void run_ours(void *state) {
    our_work *ours = state;
    for (int i = 0; i < ours->calls; i++)
        check(onepass_run(&ours->call));
}

static void run_plain_serial(void *state) {
    plain_work *plain = state;
    for (int i = 0; i < plain->calls; i++)
        plain->result = plain->loss->serial(plain->count, plain->prediction, plain->target, plain->parameter);
}

static void run_plain_forward(void *state) {
    plain_work *plain = state;
    plain->result =
        plain->loss->forward(plain->count, plain->prediction, plain->target, plain->parameter, plain->threads);
}

static void run_plain_backward(void *state) {
    plain_work *plain = state;
    plain->loss->backward(plain->count, plain->prediction, plain->target, plain->parameter,
                          (float)(1 / (double)plain->count), plain->gradient, plain->threads);
}

static void run_plain_both(void *state) {
    plain_work *plain = state;
    plain->result = plain->loss->both(plain->count, plain->prediction, plain->target, plain->parameter,
                                      (float)(1 / (double)plain->count), plain->gradient, plain->threads);
}

static void run_plain_nested(void *state) {
    plain_work *plain = state;
    plain->result = plain->loss->nested(&plain->nest, plain->parameter, plain->threads);
}

static void run_read_one(void *state) {
    plain_work *plain = state;
    plain->result = plain_read_one(plain->count, plain->prediction, plain->threads);
}

static void run_read_two(void *state) {
    plain_work *plain = state;
    plain->result = plain_read_two(plain->count, plain->prediction, plain->target, plain->threads);
}

static void run_read_two_write_one(void *state) {
    plain_work *plain = state;
    plain_read_two_write_one(plain->count, plain->prediction, plain->target, plain->gradient, plain->threads);
}

static void run_copy(void *state) {
    plain_work *plain = state;
    plain_copy(plain->count, plain->prediction, plain->gradient, plain->threads);
}

/* ------------------------------------------------------------- one line -- */

static bool is_wanted(const bench *bench, const char *work) {
    return !bench->filter || strstr(work, bench->filter);
}

/* One side of a line: what runs, and the bytes that it must move. */
typedef struct moved {
    work work;
    double bytes;
} moved;

static void add_line(bench *bench, const char *name, row row) {
    snprintf(row.work, sizeof row.work, "%s", name);
    report_add(&bench->report, &row);
}

/* Returns the medians, so that they can be shown in another unit too. */
static pair compare_rates(bench *bench, const char *name, moved ours, moved beside, const char *peer, bar_kind kind,
                          double bar) {
    if (!is_wanted(bench, name))
        return (pair){0, 0};
    const pair seconds = measure_pair(ours.work, beside.work, bench->repetitions);
    row row = {.bytes = ours.bytes,
               .ours = 1e-9 * ours.bytes / seconds.ours,
               .beside = 1e-9 * beside.bytes / seconds.beside,
               .unit = "GB/s",
               .peer = peer,
               .judged_unit = "",
               .kind = bench->quick ? NO_BAR : kind, /* the bars are for arrays that no cache holds */
               .bar = bar};
    row.judged = row.ours / row.beside;
    add_line(bench, name, row);
    return seconds;
}

/* A broadcast target moves fewer bytes for the same arithmetic. Where arithmetic is the limit, bytes a
 * second fall for that reason alone; elements a second tell the two apart. */
static void show_elements(bench *bench, const char *name, pair seconds) {
    if (seconds.ours == 0)
        return;
    const double elements = (double)bench->count;
    add_line(bench, name,
             (row){.ours = 1e-9 * elements / seconds.ours,
                   .beside = 1e-9 * elements / seconds.beside,
                   .unit = "G/s",
                   .peer = "ours, dense, by elements",
                   .judged = seconds.beside / seconds.ours,
                   .judged_unit = ""});
}

/* ----------------------------------------------------------- the groups -- */

/* What the memory can do, each limit beside the reading of two arrays. */
static void measure_memory(bench *bench) {
    bench->report.heading = "memory: plain loops on all cores";
    plain_work plain = {.count = bench->count,
                        .prediction = bench->prediction,
                        .target = bench->target,
                        .gradient = bench->gradient,
                        .threads = bench->machine.threads};
    const double array = 4.0 * (double)bench->count;
    const moved two = {{run_read_two, &plain}, 2 * array};
    compare_rates(bench, "memory: read one", (moved){{run_read_one, &plain}, array}, two, "read two", NO_BAR, 0);
    compare_rates(bench, "memory: copy", (moved){{run_copy, &plain}, 2 * array}, two, "read two", NO_BAR, 0);
    compare_rates(bench, "memory: read two, write one", (moved){{run_read_two_write_one, &plain}, 3 * array}, two,
                  "read two", NO_BAR, 0);
}

static void measure_forward(bench *bench, int threads, const char *heading, double bar) {
    bench->report.heading = heading;
    const double bytes = 2 * 4.0 * (double)bench->count;
    for (int l = 0; l < bench->loss_count; l++) {
        const onepass_loss_info *loss = bench->losses[l];
        char name[64];
        our_work ours;
        plain_work plain;
        prepare_dense(&ours, bench, loss->name, threads);
        prepare_plain(&plain, bench, loss, threads);
        snprintf(name, sizeof name, "forward %s, %d thread%s", loss->name, threads, threads > 1 ? "s" : "");
        compare_rates(bench, name, (moved){{run_ours, &ours}, bytes}, (moved){{run_plain_forward, &plain}, bytes},
                      "plain loop, same loss", AT_LEAST, bar);
        plain.loss = plain_tuned_loss_named(loss->name);
        compare_rates(bench, name, (moved){{run_ours, &ours}, bytes}, (moved){{run_plain_forward, &plain}, bytes},
                      "the same, tuned flags", NO_BAR, 0);
        compare_rates(bench, name, (moved){{run_ours, &ours}, bytes}, (moved){{run_read_two, &plain}, bytes},
                      "plain sum of both arrays", NO_BAR, 0);
    }
}

static void measure_gradient(bench *bench) {
    bench->report.heading = "gradient for the prediction, f32, all cores";
    const int threads = bench->machine.threads;
    const double bytes = 3 * 4.0 * (double)bench->count;
    for (int l = 0; l < bench->loss_count; l++) {
        const onepass_loss_info *loss = bench->losses[l];
        char name[64];
        our_work both, backward;
        plain_work plain;
        prepare_dense(&both, bench, loss->name, threads);
        want_gradient(&both, bench);
        prepare_dense(&backward, bench, loss->name, threads);
        want_gradient(&backward, bench);
        backward.call.value = NULL;
        prepare_plain(&plain, bench, loss, threads);
        const moved ours = {{run_ours, &both}, bytes};
        snprintf(name, sizeof name, "both %s", loss->name);
        compare_rates(bench, name, ours, (moved){{run_plain_backward, &plain}, bytes}, "plain loop, gradient alone",
                      AT_LEAST, 0.90);
        compare_rates(bench, name, ours, (moved){{run_plain_both, &plain}, bytes}, "plain loop, value and gradient",
                      NO_BAR, 0);
        compare_rates(bench, name, ours, (moved){{run_read_two_write_one, &plain}, bytes},
                      "plain sum of both into a third", NO_BAR, 0);
        snprintf(name, sizeof name, "backward %s", loss->name);
        compare_rates(bench, name, (moved){{run_ours, &backward}, bytes}, (moved){{run_plain_backward, &plain}, bytes},
                      "plain loop, gradient alone", NO_BAR, 0);
    }
}

/* The x86 baseline has no instruction that widens f16; everything else has. */
static bool converts_f16(const bench *bench) {
    return strncmp(bench->machine.instruction_set, "sse", 3) != 0 &&
           strcmp(bench->machine.instruction_set, "baseline") != 0;
}

static void measure_16_bit_types(bench *bench) {
    bench->report.heading = "forward, 16-bit types, all cores";
    const int64_t shape[] = {bench->side, bench->side};
    uint16_t *prediction = allocate(2 * (size_t)bench->count), *target = allocate(2 * (size_t)bench->count);
    for (int half = 0; half < 2; half++) {
        void (*fill)(uint16_t *, int64_t, uint64_t) = half ? fill_f16 : fill_bf16;
        fill(prediction, bench->count, 3);
        fill(target, bench->count, 4);
        for (int l = 0; l < bench->loss_count; l++) {
            const onepass_loss_info *loss = bench->losses[l];
            char name[64];
            our_work narrow, wide;
            prepare_ours(&narrow, loss->name, bench->machine.threads);
            describe(&narrow.prediction, half ? ONEPASS_F16 : ONEPASS_BF16, prediction, 2, shape, NULL);
            describe(&narrow.target, half ? ONEPASS_F16 : ONEPASS_BF16, target, 2, shape, NULL);
            prepare_dense(&wide, bench, loss->name, bench->machine.threads);
            snprintf(name, sizeof name, "forward %s, %s", loss->name, half ? "f16" : "bf16");
            compare_rates(bench, name, (moved){{run_ours, &narrow}, 2 * 2.0 * (double)bench->count},
                          (moved){{run_ours, &wide}, 2 * 4.0 * (double)bench->count}, "ours, f32",
                          half && !converts_f16(bench) ? NO_BAR : AT_LEAST, 0.60);
        }
    }
    free(prediction);
    free(target);
}

/* A way in which the operands can lie; a target of size 1 in a dimension is broadcast along it. */
typedef struct layout {
    const char *name;
    int64_t prediction_strides[2];
    int64_t target_shape[2];
    int64_t target_strides[2];
} layout;

static void measure_rows(bench *bench) {
    bench->report.heading = "rows that are dense, all cores";
    const int64_t side = bench->side, padded = side + PADDING;
    const layout layouts[] = {{"padded rows", {padded, 1}, {side, side}, {padded, 1}},
                              {"target a number per row", {side, 1}, {side, 1}, {1, 1}},
                              {"target a shared row", {side, 1}, {1, side}, {side, 1}}};
    const int64_t shape[] = {side, side};
    for (int gradient = 0; gradient < 2; gradient++)
        for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
            for (int l = 0; l < bench->loss_count; l++) {
                const onepass_loss_info *loss = bench->losses[l];
                char name[64];
                our_work ours, dense;
                const layout *layout = &layouts[i];
                prepare_ours(&ours, loss->name, bench->machine.threads);
                describe(&ours.prediction, ONEPASS_F32, bench->prediction, 2, shape, layout->prediction_strides);
                describe(&ours.target, ONEPASS_F32, bench->target, 2, layout->target_shape, layout->target_strides);
                prepare_dense(&dense, bench, loss->name, bench->machine.threads);
                double bytes = 4.0 * (double)(bench->count + layout->target_shape[0] * layout->target_shape[1]);
                double dense_bytes = 2 * 4.0 * (double)bench->count;
                if (gradient) {
                    want_gradient(&ours, bench);
                    want_gradient(&dense, bench);
                    bytes += 4.0 * (double)bench->count;
                    dense_bytes += 4.0 * (double)bench->count;
                }
                snprintf(name, sizeof name, "%s %s, %s", gradient ? "both" : "forward", loss->name, layout->name);
                const pair seconds =
                    compare_rates(bench, name, (moved){{run_ours, &ours}, bytes},
                                  (moved){{run_ours, &dense}, dense_bytes}, "ours, dense", AT_LEAST, 0.85);
                if (bytes < dense_bytes)
                    show_elements(bench, name, seconds);
            }
}

/* Strides of four dimensions, for both operands. */
typedef struct nest {
    const char *name;
    int64_t shape[4], prediction[4], target[4];
} nest;

static void measure_strides(bench *bench) {
    bench->report.heading = "forward, any strides, all cores";
    /* The 4-D case is a picture (planes, rows, columns, 3 colours) whose prediction lies colour by colour. */
    const int64_t n = bench->side / 2, planes = bench->side / 512, edge = bench->side / 16, colours = 3;
    const int64_t plane = edge * edge;
    const nest nests[] = {
        {"target transposed", {1, 1, n, n}, {0, 0, n, 1}, {0, 0, 1, n}},
        {"both transposed", {1, 1, n, n}, {0, 0, 1, n}, {0, 0, 1, n}},
        {"every second element", {1, 1, n, n}, {0, 0, 2 * n, 2}, {0, 0, 2 * n, 2}},
        {"4-D, inner dimension 3",
         {planes, edge, edge, colours},
         {plane * colours, edge, 1, plane},
         {plane * colours, edge * colours, colours, 1}},
    };
    for (size_t i = 0; i < sizeof nests / sizeof *nests; i++)
        for (int l = 0; l < bench->loss_count; l++) {
            const onepass_loss_info *loss = bench->losses[l];
            char name[64];
            our_work ours;
            plain_work plain;
            const nest *nest = &nests[i];
            const int first = nest->shape[0] == 1 ? 2 : 0;
            prepare_ours(&ours, loss->name, bench->machine.threads);
            describe(&ours.prediction, ONEPASS_F32, bench->prediction, 4 - first, nest->shape + first,
                     nest->prediction + first);
            describe(&ours.target, ONEPASS_F32, bench->target, 4 - first, nest->shape + first, nest->target + first);
            prepare_plain(&plain, bench, loss, bench->machine.threads);
            plain.nest.prediction = bench->prediction;
            plain.nest.target = bench->target;
            memcpy(plain.nest.shape, nest->shape, sizeof nest->shape);
            memcpy(plain.nest.prediction_stride, nest->prediction, sizeof nest->prediction);
            memcpy(plain.nest.target_stride, nest->target, sizeof nest->target);
            const double elements =
                (double)(nest->shape[0] * nest->shape[1]) * (double)(nest->shape[2] * nest->shape[3]);
            snprintf(name, sizeof name, "forward %s, %s", loss->name, nest->name);
            compare_rates(bench, name, (moved){{run_ours, &ours}, 2 * 4 * elements},
                          (moved){{run_plain_nested, &plain}, 2 * 4 * elements}, "plain nested loop", AT_LEAST, 1.00);
        }
}

static void measure_small(bench *bench) {
    bench->report.heading = "1000 elements, time of a call";
    const int64_t count = 1000;
    const int calls = 2000;
    for (int l = 0; l < bench->loss_count; l++) {
        const onepass_loss_info *loss = bench->losses[l];
        char name[64];
        snprintf(name, sizeof name, "forward %s, 1000 elements", loss->name);
        if (!is_wanted(bench, name))
            continue;
        our_work ours;
        plain_work plain;
        prepare_ours(&ours, loss->name, 0);
        describe(&ours.prediction, ONEPASS_F32, bench->prediction, 1, &count, NULL);
        describe(&ours.target, ONEPASS_F32, bench->target, 1, &count, NULL);
        prepare_plain(&plain, bench, loss, 1);
        plain.count = count;
        ours.calls = plain.calls = calls;
        pair seconds = measure_pair((work){run_ours, &ours}, (work){run_plain_serial, &plain}, 3 * bench->repetitions);
        row row = {.bytes = 2 * 4.0 * (double)count,
                   .ours = 1e9 * seconds.ours / calls,
                   .beside = 1e9 * seconds.beside / calls,
                   .unit = "ns",
                   .peer = "plain loop, no threads",
                   .judged_unit = "ns",
                   .kind = AT_MOST,
                   .bar = 1000};
        row.judged = row.ours - row.beside;
        add_line(bench, name, row);
    }
}

/* ------------------------------------------------------------- accuracy -- */

/* Judges the sum over the first `count` elements by `unit`: ulp of the sum of the float terms, rounded once, or
 * 2^-24 of that sum. */
static void check_sum(bench *bench, const onepass_loss_info *loss, const char *inputs, int64_t count, bool in_ulp,
                      double bar) {
    char name[64];
    snprintf(name, sizeof name, "sum of %s, 10^%.0f %s", loss->name, log10((double)count), inputs);
    if (!is_wanted(bench, name))
        return;
    our_work ours;
    plain_work plain;
    prepare_ours(&ours, loss->name, 0);
    ours.call.reduction = ONEPASS_SUM;
    describe(&ours.prediction, ONEPASS_F32, bench->prediction, 1, &count, NULL);
    describe(&ours.target, ONEPASS_F32, bench->target, 1, &count, NULL);
    prepare_plain(&plain, bench, loss, bench->machine.threads);
    plain.count = count;
    run_ours(&ours);
    run_plain_forward(&plain);

    const double exact =
        plain_tuned_loss_named(loss->name)
            ->sum_of_terms(count, plain.prediction, plain.target, plain.parameter, bench->machine.threads);
    row row = {.unit = in_ulp ? "ulp" : "2^-24",
               .peer = "plain float loop",
               .judged_unit = in_ulp ? "ulp" : "2^-24",
               .kind = AT_MOST,
               .bar = bar};
    if (in_ulp) {
        row.ours = plain_ulps(ours.result, (double)(float)exact);
        row.beside = plain_ulps(plain.result, (double)(float)exact);
    } else {
        const double unit = exact > 0 ? 0x1p-24 * exact : 0x1p-149;
        row.ours = fabs(ours.result - exact) / unit;
        row.beside = fabs(plain.result - exact) / unit;
    }
    row.judged = row.ours;
    add_line(bench, name, row);
}

static void check_accuracy(bench *bench) {
    bench->report.heading = "error against the double sum of the float terms";
    for (int l = 0; l < bench->loss_count; l++)
        for (int64_t count = 1; count <= bench->most; count *= 10)
            check_sum(bench, bench->losses[l], "random", count, true, 1);

    /* The difference and the product of these inputs make constant, huge and tiny terms; a
     * billion huge ones would overflow. None of the losses has terms of both signs. */
    const struct {
        const char *name;
        float prediction_low, prediction_high, target_low, target_high;
    } inputs[] = {{"constant", 0.3f, 0.3f, 0.2f, 0.2f},
                  {"huge", -1e15f, 1e15f, -1e15f, 1e15f},
                  {"tiny", -1e-20f, 1e-20f, -1e-20f, 1e-20f}};
    const int64_t count = bench->most / 10;
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        fill_f32(bench->prediction, count, 5, inputs[i].prediction_low, inputs[i].prediction_high);
        fill_f32(bench->target, count, 6, inputs[i].target_low, inputs[i].target_high);
        for (int l = 0; l < bench->loss_count; l++)
            check_sum(bench, bench->losses[l], inputs[i].name, count, false, 4);
    }
}

/* ----------------------------------------------------------------- JSON -- */

/* The file that --json named, or cpu-<processor>.json in the folder that it named. */
static void json_path(const bench *bench, char *path, size_t size) {
    struct stat info;
    char processor[128];
    processor_file_name(processor, sizeof processor);
    if (stat(bench->json, &info) == 0 && S_ISDIR(info.st_mode))
        snprintf(path, size, "%s/cpu-%s.json", bench->json, processor);
    else
        snprintf(path, size, "%s", bench->json);
}

static void write_member(FILE *file, const char *key, const char *text) {
    fprintf(file, "  \"%s\": ", key);
    write_json_string(file, text);
    fprintf(file, ",\n");
}

static int write_json(const bench *bench) {
    char path[4096], processor[128], date[32];
    json_path(bench, path, sizeof path);
    FILE *file = fopen(path, "w");
    if (!file) {
        perror(path);
        return EXIT_FAILURE;
    }
    const time_t now = time(NULL);
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
    processor_name(processor, sizeof processor);

    fprintf(file, "{\n");
    write_member(file, "date", date);
    write_member(file, "hardware", processor);
    fprintf(file, "  \"cores\": %d,\n  \"threads\": %d,\n", cores_online(), (int)bench->machine.threads);
    write_member(file, "instruction_set", bench->machine.instruction_set);
    write_member(file, "compiler", compiler_name());
    write_member(file, "onepass", onepass_version_text());
    write_member(file, "sources", ONEPASS_SOURCES);
    fprintf(file, "  \"quick\": %s,\n", bench->quick ? "true" : "false");
    write_member(file, "filter", bench->filter ? bench->filter : "");
    fprintf(file, "  \"elements\": %lld,\n  \"missed\": %d,\n  \"results\": ", (long long)bench->count,
            bench->report.missed);
    write_json_rows(file, &bench->report);
    fprintf(file, "\n}\n");
    if (fclose(file) != 0) {
        perror(path);
        return EXIT_FAILURE;
    }
    printf("Written to %s\n", path);
    return EXIT_SUCCESS;
}

/* ----------------------------------------------------------------- main -- */

static bool parse(bench *bench, int argc, char **argv) {
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--quick"))
            bench->quick = true;
        else if (!strcmp(argv[i], "--json") && i + 1 < argc)
            bench->json = argv[++i];
        else if (!strcmp(argv[i], "--filter") && i + 1 < argc)
            bench->filter = argv[++i];
        else
            return false;
    return true;
}

static void set_up(bench *bench) {
    bench->side = bench->quick ? 1024 : 8192;
    bench->count = bench->side * bench->side;
    bench->most = bench->quick ? 1000000 : 100000000;
    bench->repetitions = bench->quick ? 5 : 21;
    bench->machine.size = sizeof bench->machine;
    check(onepass_machine(&bench->machine));
    const onepass_loss_info *loss;
    for (int32_t i = 0; (loss = onepass_loss_at(i)) && bench->loss_count < MOST_LOSSES; i++)
        if (plain_loss_named(loss->name))
            bench->losses[bench->loss_count++] = loss;

    const int64_t padded = bench->side * (bench->side + PADDING);
    const int64_t capacity = padded > bench->most ? padded : bench->most;
    bench->prediction = allocate(4 * (size_t)capacity);
    bench->target = allocate(4 * (size_t)capacity);
    bench->gradient = allocate(4 * (size_t)bench->count);
    fill_f32(bench->prediction, capacity, 1, -2, 2);
    fill_f32(bench->target, capacity, 2, -2, 2);
    fill_f32(bench->gradient, bench->count, 0, 0, 0);
}

int main(int argc, char **argv) {
    static bench bench;
    if (!parse(&bench, argc, argv)) {
        fprintf(stderr,
                "usage: %s [--quick] [--filter TEXT] [--json FILE]\n"
                "  --quick        small arrays, in seconds: to see that it runs, not to quote\n"
                "  --filter TEXT  only the works whose name contains TEXT\n"
                "  --json FILE    write the results there too; in a folder, to cpu-<processor>.json\n",
                argv[0]);
        return EXIT_FAILURE;
    }
    set_up(&bench);

    char processor[128];
    processor_name(processor, sizeof processor);
    printf("onepass %s on %s, %d cores: %s, %d threads, %s\n", onepass_version_text(), processor, cores_online(),
           bench.machine.instruction_set, (int)bench.machine.threads, compiler_name());
    printf("Arrays of %lld x %lld; medians of %d repetitions in turn; MB is what must move in a call.\n",
           (long long)bench.side, (long long)bench.side, bench.repetitions);

    measure_memory(&bench);
    measure_forward(&bench, bench.machine.threads, "forward, f32, all cores", 0.95);
    measure_forward(&bench, 1, "forward, f32, one thread", 0.90);
    measure_gradient(&bench);
    measure_16_bit_types(&bench);
    measure_rows(&bench);
    measure_strides(&bench);
    measure_small(&bench);
    check_accuracy(&bench);

    printf("\n%d lines, %d bars missed.\n", bench.report.count, bench.report.missed);
    free(bench.prediction);
    free(bench.target);
    free(bench.gradient);
    return bench.json ? write_json(&bench) : EXIT_SUCCESS;
}
