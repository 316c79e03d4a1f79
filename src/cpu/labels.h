/*
 * The class indices of a loss over rows, before anything is computed: whether each is a class, and how many rows take
 * part.
 */
#ifndef ONEPASS_CPU_LABELS_H
#define ONEPASS_CPU_LABELS_H

#include "cpu/cursor.h"
#include "cpu/rows.h"
#include "dtype.h"
#include "engine.h"
#include "message.h"

/* How many class indices a row has. */
static int64_t labels_a_row(const job *job) {
    return job->family == FAMILY_VECTORS && job->loss->has_label_lists ? job->vectors.length : 1;
}

static label_range label_range_of(const job *job) {
    if (job->family == FAMILY_VECTORS)
        return (label_range){(uint64_t)job->vectors.length, -1, job->loss->has_label_lists};
    return (label_range){(uint64_t)job->rows.shard.all_classes, job->rows.ignore_index, true};
}

/* Whether there is a label that is neither a class nor ignored, hidden ones included. */
static bool has_wrong(const label_scan *scan, const label_range *range, int64_t labels) {
    const bool ignores_others = range->ignores && (uint64_t)range->ignore_index >= range->classes;
    return scan->good + (ignores_others ? scan->ignored : 0) < labels;
}

/* Labels of one type that lie `stride` elements apart: those that PyTorch has are scanned by vectors. */
static void scan_labels(cpu_labels_function *function, const void *data, int32_t dtype, int64_t stride, int64_t count,
                        const label_range *range, label_scan *scan) {
    int64_t some[64];
    if (dtype == ONEPASS_I64 && stride == 1) {
        function(data, count, range, scan);
        return;
    }
    for (int64_t i = 0; i < count;) {
        int64_t taken = 0;
        for (; taken < 64 && i < count; taken++, i++)
            some[taken] = load_index(data, dtype, i * stride);
        function(some, taken, range, scan);
    }
}

/* Those from `first` to `end` of the job's own. */
static label_scan scan_some_labels(const job *job, cpu_labels_function *function, int64_t first, int64_t end) {
    const view *labels = &job->operand[1];
    const label_range range = label_range_of(job);
    label_scan scan = {0, 0};
    cursor at = cursor_at(labels, job->first * labels_a_row(job) + first);
    for (int64_t done = first; done < end;) {
        const int64_t count = least(at.left, end - done);
        const char *data = (const char *)labels->data + at.offset * (int64_t)dtype_size(labels->dtype);
        scan_labels(function, data, labels->dtype, inner_stride(labels), count, &range, &scan);
        done += count;
        cursor_next_row(&at, labels);
    }
    return scan;
}

/* A thread is woken for no less than this many labels: about 40 microseconds. */
#define LABELS_WORTH_A_THREAD 65536

static label_scan scan_all_labels(const job *job, cpu_labels_function *function, int64_t most_threads) {
    const int64_t count = job->count * labels_a_row(job);
    const int64_t threads = least(most_threads, count / LABELS_WORTH_A_THREAD + 1);
    int64_t good = 0, ignored = 0;
    if (threads == 1) /* even a team of one costs a microsecond */
        return scan_some_labels(job, function, 0, count);
#if defined(_OPENMP)
#pragma omp parallel for num_threads((int)threads) reduction(+ : good, ignored)
#endif
    for (int64_t thread = 0; thread < threads; thread++) {
        const label_scan scan = scan_some_labels(job, function, count / threads * thread,
                                                 thread == threads - 1 ? count : count / threads * (thread + 1));
        good += scan.good;
        ignored += scan.ignored;
    }
    return (label_scan){good, ignored};
}

static onepass_status fail_label(const job *job, int64_t index, int64_t row) {
    if (job->family == FAMILY_VECTORS && job->loss->has_label_lists)
        return onepass_fail(ONEPASS_OUT_OF_BOUNDS,
                            "target %lld in row %lld is out of bounds; expected a class from 0 to %lld, or -1 behind "
                            "the last",
                            (long long)index, (long long)row, (long long)job->vectors.length - 1);
    if (job->family == FAMILY_VECTORS)
        return onepass_fail(ONEPASS_OUT_OF_BOUNDS,
                            "target %lld in row %lld is out of bounds: there are %lld classes; expected one of them, "
                            "counted from 0",
                            (long long)index, (long long)row, (long long)job->vectors.length);
    if (job->rows.shard.all_classes == 0)
        return onepass_fail(
            ONEPASS_OUT_OF_BOUNDS,
            "target %lld in row %lld is out of bounds: there are 0 classes; expected ignore_index (%lld)",
            (long long)index, (long long)row, (long long)job->rows.ignore_index);
    return onepass_fail(
        ONEPASS_OUT_OF_BOUNDS,
        "target %lld in row %lld is out of bounds; expected a class from 0 to %lld, or ignore_index (%lld)",
        (long long)index, (long long)row, (long long)job->rows.shard.all_classes - 1,
        (long long)job->rows.ignore_index);
}

/* The first that is wrong where the mask does not hide it. */
static onepass_status find_wrong_label(const job *job, int64_t rows_before) {
    const view *labels = &job->operand[1], *mask = &job->mask;
    const label_range range = label_range_of(job);
    const int64_t a_row = labels_a_row(job), first = job->first * a_row;
    cursor label = cursor_at(labels, first);
    for (int64_t i = first; i < first + job->count * a_row; i++) {
        const int64_t row = i / a_row;
        const int64_t index = load_index(labels->data, labels->dtype, label.offset);
        const bool good = (uint64_t)index < range.classes || (range.ignores && index == range.ignore_index);
        if (!good && (!mask->data || ((const unsigned char *)mask->data)[cursor_at(mask, row).offset]))
            return fail_label(job, index, rows_before + row);
        cursor_step(&label, labels);
    }
    return ONEPASS_OK;
}

static bool has_class_indices(const job *job) {
    return (job->family == FAMILY_ROWS && job->loss->kind != ROW_PROBABILITIES) ||
           (job->family == FAMILY_VECTORS && (job->loss->has_labels || job->loss->has_label_lists));
}

/* Every class index that will be looked at is that of a class. `counted` rows take part, if nothing but the index says
 * whether they do. */
static onepass_status check_labels(const job *job, cpu_labels_function *function, int64_t rows_before, int64_t threads,
                                   int64_t *counted) {
    if (!has_class_indices(job) || job->count == 0)
        return ONEPASS_OK;
    const label_scan scan = scan_all_labels(job, function, threads);
    const label_range range = label_range_of(job);
    *counted = job->count - (range.ignores ? scan.ignored : 0);
    return has_wrong(&scan, &range, job->count * labels_a_row(job)) ? find_wrong_label(job, rows_before) : ONEPASS_OK;
}

/* Whether a mean is divided by that number, which a sum in any order comes to. */
static bool divides_by_count(const job *job) {
    const bool weighted = (job->operand[2].data || job->weight.data) && !job->over_elements;
    return job->family == FAMILY_ROWS && job->loss->kind != ROW_PROBABILITIES && !job->divisor_tensor.data &&
           !job->mask.data && !weighted;
}

#endif
