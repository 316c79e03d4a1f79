/* The list of cases of losses over rows. Every size has its reason beside it. */
#include "row_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_CASES = 3000
};

static row_case all[MOST_CASES];
static size_t found, first_of_loss;
static bool is_made;

static row_case *add(const row_case *c) {
    if (found == MOST_CASES) {
        printf("row_case_list.c: expected at most %d cases\n", MOST_CASES);
        exit(1);
    }
    all[found] = *c;
    all[found].seed = found - first_of_loss + 1;
    return &all[found++];
}

/* A parameter by its name; a loss that does not have it stays as it is. */
static bool set(row_case *c, const char *name, double number) {
    const onepass_loss_info *info = onepass_loss_named(c->loss);
    for (int32_t k = 0; k < info->parameter_count; k++) {
        if (strcmp(info->parameter[k].name, name) == 0) {
            for (; c->parameter_count <= k; c->parameter_count++) {
                c->parameter[c->parameter_count] = info->parameter[c->parameter_count].default_value;
            }
            c->parameter[k] = number;
            return true;
        }
    }
    return false;
}

/* What most cases are changes of. */
static row_case plain(const char *group, const char *loss, int32_t dtype) {
    return (row_case){.group = group,
                      .loss = loss,
                      .input = dtype,
                      .target = row_case_has_labels(loss) ? ONEPASS_I64 : dtype,
                      .value = dtype,
                      .gradient = dtype,
                      .reduction = ONEPASS_NONE,
                      .batch = 6,
                      .classes = 10};
}

static void add_sizes(const char *loss) {
    static const struct {
        int64_t classes, rows;
    } sizes[] = {
        {1, 6},     {2, 6},    {3, 6},    {10, 10},  /* a few classes */
        {127, 6},   {128, 6},  {129, 6},             /* around a line of 128 lanes */
        {1000, 5},  {1023, 5}, {1024, 5}, {1025, 5}, /* around a tile */
        {2500, 3},  {5000, 3},                       /* three and five tiles */
        {40000, 1},                                  /* forty, the last one partly filled */
    };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (int32_t dtype = ONEPASS_F32; dtype <= ONEPASS_F64; dtype++) {
            for (int data = 0; data < (sizes[i].classes > 5000 ? 3 : ROW_DATA); data++) {
                row_case c = plain("sizes", loss, dtype);
                c.classes = sizes[i].classes;
                c.batch = sizes[i].rows;
                c.data = (row_data)data;
                add(&c);
            }
        }
    }
}

static void add_absurd(const char *loss) {
    for (int32_t dtype = ONEPASS_F32; dtype <= ONEPASS_F64; dtype++) {
        for (int k = 0; k < 3; k++) {
            row_case c = plain("absurd", loss, dtype);
            c.data = ROWS_ABSURD;
            c.batch = 10;
            c.classes = k == 0 ? 4 : k == 1 ? 900 : 3100;
            add(&c);
        }
    }
}

static void add_types(const char *loss) {
    for (int32_t input = ONEPASS_F16; input <= ONEPASS_F64; input++) {
        for (int32_t output = ONEPASS_F16; output <= ONEPASS_F64; output++) {
            row_case c = plain("types", loss, input);
            c.value = output;
            c.gradient = ONEPASS_F16 + (output + input) % 4;
            c.classes = 70;
            c.log_sum_exp = strcmp(loss, "nll") != 0 ? output : 0;
            c.data = (row_data)((input + output) % ROW_DATA);
            c.class_weight = output == ONEPASS_F16 ? ONEPASS_F32 : 0;
            add(&c);
            if (!row_case_has_labels(loss)) {
                c.target = output;
                c.target_gradient = input;
                c.class_weight = ONEPASS_BF16;
                add(&c);
            }
        }
    }
}

static void add_layouts(const char *loss) {
    static const int64_t classes[] = {5, 300, 1300};
    for (int layout = 0; layout < ROW_LAYOUTS; layout++) {
        for (int i = 0; i < 3; i++) {
            row_case c = plain("layouts", loss, i == 0 ? ONEPASS_F32 : i == 1 ? ONEPASS_BF16 : ONEPASS_F64);
            c.layout = (row_layout)layout;
            c.classes = classes[i];
            c.batch = layout == ROWS_VECTOR ? 1 : 3;
            c.points = layout == ROWS_VECTOR ? 1 : 4;
            c.class_weight = i ? ONEPASS_F32 : 0;
            c.weight = i == 2 ? ONEPASS_F32 : 0;
            c.mask = i == 1;
            c.reduction = i == 2 ? ONEPASS_MEAN : ONEPASS_NONE;
            c.upstream = i ? ONEPASS_F32 : 0;
            c.predicted = true;
            c.target_gradient = row_case_has_labels(loss) ? 0 : c.gradient;
            add(&c);
        }
    }
}

static void add_labels(const char *loss) {
    static const double indices[] = {-100, -1, 0, 3, 255, 300};
    for (int32_t target = ONEPASS_I64; target <= ONEPASS_U8; target++) {
        for (size_t i = 0; i < sizeof indices / sizeof indices[0]; i++) {
            row_case c = plain("labels", loss, i % 2 ? ONEPASS_F64 : ONEPASS_F32);
            c.target = target;
            c.batch = 23;
            c.classes = i % 2 ? 7 : 257;
            c.ignored = target != ONEPASS_U8 || (indices[i] >= 0 && indices[i] < 256);
            c.reduction = i % 3 == 0 ? ONEPASS_MEAN : ONEPASS_NONE;
            c.class_weight = i % 2 ? ONEPASS_F32 : 0;
            c.divided_by = c.reduction == ONEPASS_MEAN;
            c.mask = i == 4;
            c.predicted = true;
            set(&c, "ignore_index", indices[i]);
            add(&c);
        }
    }
}

static void add_options(const char *loss) {
    static const struct {
        const char *name;
        double number;
    } options[] = {
        {"label_smoothing", 0.1},
        {"label_smoothing", 1},
        {"z_loss", 1e-4},
        {"z_loss", 0.5},
        {"softcap", 30},
        {"softcap", 4},
        {"temperature", 0.5},
        {"temperature", 3},
        {"temperature", 1e-3},
        {"temperature", 1e3},
        {"alpha", 0.25},
        {"gamma", 0},
        {"gamma", 0.25},
        {"gamma", 1},
        {"gamma", 3.5},
        {"gamma", 20},
        {"q", 0},
        {"q", 1e-12},
        {"q", 0.02},
        {"q", 1},
    };
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        for (int k = 0; k < 6; k++) {
            row_case c = plain("options", loss, k % 2 ? ONEPASS_F64 : ONEPASS_F32);
            if (!set(&c, options[i].name, options[i].number)) {
                break;
            }
            c.data = (row_data)((k + (int)i) % ROW_DATA);
            c.classes = k < 2 ? 12 : k < 4 ? 1030 : 200;
            c.class_weight = k > 2 ? ONEPASS_F32 : 0;
            c.log_sum_exp = c.value;
            c.target_gradient = row_case_has_labels(loss) ? 0 : c.gradient;
            if (k > 3) {
                set(&c, "label_smoothing", 0.25);
                set(&c, "z_loss", 0.01);
            }
            add(&c);
        }
    }
}

static void add_reductions(const char *loss) {
    for (int32_t reduction = ONEPASS_MEAN; reduction <= ONEPASS_BATCHMEAN; reduction++) {
        for (int k = 0; k < 16; k++) {
            row_case c = plain("reductions", loss, k & 1 ? ONEPASS_F64 : ONEPASS_F32);
            c.reduction = reduction;
            c.batch = 50;
            c.points = 3;
            c.layout = k & 4 ? ROWS_IMAGE : ROWS_DENSE;
            c.class_weight = k & 2 ? ONEPASS_F32 : 0;
            c.weight = k & 4 ? ONEPASS_F32 : 0;
            c.mask = k & 8;
            c.ignored = (k & 1) && row_case_has_labels(loss);
            c.upstream = k & 2 ? ONEPASS_F32 : 0;
            c.divided_by = reduction == ONEPASS_MEAN;
            c.flags = reduction == ONEPASS_MEAN && k % 5 == 4 ? ONEPASS_OVER_ELEMENTS : 0;
            if (reduction == ONEPASS_MEAN && k % 5 == 2) {
                c.divisor = 37.5;
                c.divisor_tensor = k & 1 ? ONEPASS_F32 : k & 2 ? ONEPASS_F64 : 0;
            }
            add(&c);
        }
    }
}

/* More rows than a tile has, and enough work for several threads; and every set of outputs. */
static void add_outputs(const char *loss) {
    for (int k = 0; k < 16; k++) {
        row_case c = plain("outputs", loss, k & 1 ? ONEPASS_F64 : ONEPASS_F32);
        const bool picked = strcmp(loss, "nll") == 0;
        c.reduction = k & 2 ? ONEPASS_MEAN : ONEPASS_NONE;
        c.batch = k < 4 ? 2100 : 12;
        c.classes = k < 4 ? 9 : 1100;
        c.threads = k % 4 + 1;
        c.gradient = k % 3 == 2 ? 0 : c.gradient;
        c.in_place = k % 3 == 1;
        c.state = !picked && k % 2 == 0;
        c.log_sum_exp = picked || k % 4 ? 0 : ONEPASS_F32;
        c.predicted = k % 4 == 1;
        c.target_gradient = row_case_has_labels(loss) || k % 2 ? 0 : ONEPASS_F32;
        c.data = (row_data)(k % ROW_DATA);
        if (k % 3 == 0) {
            set(&c, "label_smoothing", 0.1);
        }
        add(&c);
    }
}

/* What cancels if it is written down plainly: rows of probabilities in which one class has nearly all, capped logits at
 * up to 80 softcaps, and a label whose exponential is no normal number by the row's largest. */
static void add_cancelling(const char *loss) {
    static const int64_t classes[] = {3, 130, 2500}; /* a line, two, and three tiles */
    static const double softcaps[] = {30, 4, 1};
    for (int k = 0; k < 6; k++) {
        row_case c = plain("cancelling", loss, k % 2 ? ONEPASS_F64 : ONEPASS_F32);
        c.batch = 10;
        c.classes = classes[k / 2];
        c.data = ROWS_ONE_HOT;
        c.target_gradient = row_case_has_labels(loss) ? 0 : c.gradient;
        c.log_sum_exp = strcmp(loss, "nll") != 0 ? c.value : 0;
        add(&c);
        c.data = ROWS_SPREAD;
        if (set(&c, "softcap", softcaps[k / 2])) {
            add(&c);
        }
        c.data = ROWS_FAR;
        c.classes = 2500;
        c.parameter_count = 0;
        c.batch = 20;
        add(&c);
        if (set(&c, "q", 0.01) || set(&c, "gamma", 0.5)) { /* powers that are not lost with the label */
            add(&c);
        }
    }
}

const row_case *row_case_list(size_t *count) {
    for (int32_t i = 0; !is_made && onepass_row_loss_at(i); i++) {
        const char *loss = onepass_row_loss_at(i)->name;
        first_of_loss = found;
        add_sizes(loss);
        add_absurd(loss);
        add_types(loss);
        add_layouts(loss);
        if (row_case_has_labels(loss)) {
            add_labels(loss);
        }
        add_options(loss);
        add_reductions(loss);
        add_outputs(loss);
        add_cancelling(loss);
    }
    is_made = true;
    *count = found;
    return all;
}
