/* The list of cases of vector losses. Every size has its reason beside it. */
#include "vector_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_CASES = 4000
};

static vector_case all[MOST_CASES];
static size_t found, first_of_loss;
static bool is_made;

static void add(const vector_case *c) {
    if (found == MOST_CASES) {
        printf("vector_case_list.c: expected at most %d cases\n", MOST_CASES);
        exit(1);
    }
    if (vector_loss_has_labels(c->loss) && c->elements == 0) {
        return; /* labels of no class */
    }
    all[found] = *c;
    all[found].seed = found - first_of_loss + 1;
    found++;
}

static bool allows(const onepass_parameter_info *known, double number) {
    return (known->minimum_excluded ? number > known->minimum : number >= known->minimum) &&
           (known->maximum_excluded ? number < known->maximum : number <= known->maximum);
}

/* A parameter by its name; a loss that does not have it, or not such a number, stays as it is. */
static bool set(vector_case *c, const char *name, double number) {
    const onepass_loss_info *info = onepass_loss_named(c->loss);
    for (int32_t k = 0; k < info->parameter_count; k++) {
        if (strcmp(info->parameter[k].name, name) == 0 && allows(&info->parameter[k], number)) {
            for (; c->parameter_count <= k; c->parameter_count++) {
                c->parameter[c->parameter_count] = info->parameter[c->parameter_count].default_value;
            }
            c->parameter[k] = number;
            return true;
        }
    }
    return false;
}

/* What most cases are changes of: everything in one type, all gradients. */
static vector_case plain(const char *group, const char *loss, int32_t dtype) {
    const int vectors = oracle_vector_operands(loss);
    vector_case c = {
        .group = group, .loss = loss, .value = dtype, .reduction = ONEPASS_NONE, .batch = 8, .elements = 10};
    for (int k = 0; k < ORACLE_OPERANDS; k++) {
        c.operand[k] = dtype;
        c.gradient[k] = k < vectors ? dtype : 0;
    }
    return c;
}

static void add_sizes(const char *loss) {
    static const struct {
        int64_t elements, rows;
    } sizes[] = {
        {0, 3},      {1, 8},     {2, 8},    {3, 8}, /* nothing, and a few elements */
        {10, 0},     {10, 1},                       /* no row, one row */
        {127, 8},    {128, 8},   {129, 8},          /* around a line of 128 lanes */
        {1023, 8},   {1024, 8},  {1025, 8},         /* around a tile */
        {4096, 8},   {8192, 3},  {2500, 8},         /* whole tiles, and three of them */
        {100003, 1}, {16, 3000},                    /* 98 tiles; more rows than a tile has elements */
    };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (int32_t dtype = ONEPASS_F32; dtype <= ONEPASS_F64; dtype++) {
            vector_case c = plain("sizes", loss, dtype);
            c.elements = sizes[i].elements;
            c.batch = sizes[i].rows;
            add(&c);
            if (c.elements * c.batch < 20000) {
                c.data = VECTORS_NEAR;
                add(&c);
            }
        }
    }
}

static void add_types(const char *loss) {
    for (int32_t input = ONEPASS_F16; input <= ONEPASS_F64; input++) {
        for (int32_t output = ONEPASS_F16; output <= ONEPASS_F64; output++) {
            vector_case c = plain("types", loss, input);
            c.operand[1] = output;
            c.operand[2] = ONEPASS_F16 + (input + 2 * output) % 4;
            c.value = output;
            for (int k = 0; k < oracle_vector_operands(loss); k++) {
                c.gradient[k] = ONEPASS_F16 + (output + input + k) % 4;
            }
            c.elements = 70;
            c.weight = input == output ? 0 : ONEPASS_F16 + (input + output) % 3;
            c.upstream = output > input ? output : 0;
            add(&c);
            c = plain("types", loss, input);
            c.value = output;
            c.elements = 300;
            c.data = VECTORS_NEAR;
            add(&c);
        }
    }
}

/* Targets that are a number for each row. */
static void add_targets(const char *loss) {
    for (int32_t target = ONEPASS_F16; target <= ONEPASS_U8; target++) {
        if (target == ONEPASS_BOOL) {
            continue;
        }
        for (int k = 0; k < 3; k++) {
            vector_case c = plain("targets", loss, k ? ONEPASS_F32 : ONEPASS_BF16);
            c.operand[2] = target;
            c.batch = 40;
            c.elements = k == 2 ? 1100 : 9;
            c.mask = k == 1;
            c.data = k == 2 ? VECTORS_NEAR : VECTORS_NORMAL;
            c.layout = k ? VECTORS_STRIDED : VECTORS_DENSE;
            set(&c, "margin", k == 0 ? 0.25 : k == 1 ? -0.5 : 0);
            add(&c);
        }
    }
}

static void add_data(const char *loss) {
    for (int data = VECTORS_NEAR; data < VECTOR_DATA; data++) {
        for (int32_t dtype = ONEPASS_F16; dtype <= ONEPASS_F64; dtype++) {
            for (int k = 0; k < 3; k++) {
                vector_case c = plain("data", loss, dtype);
                c.data = (vector_data)data;
                c.batch = 12;
                c.elements = k == 0 ? 5 : k == 1 ? 200 : 2100;
                c.value = k == 2 ? ONEPASS_F64 : dtype;
                if (k == 1 && !set(&c, "eps", 0)) {
                    set(&c, "margin", 0.5);
                }
                add(&c);
            }
        }
    }
}

/* What softmax has edges of: offsets, confident rows, classes that cannot be. */
static void add_logits(const char *loss) {
    for (int data = VECTORS_FAR; data <= VECTORS_IMPOSSIBLE; data++) {
        for (int32_t dtype = ONEPASS_F16; dtype <= ONEPASS_F64; dtype++) {
            for (int k = 0; k < 3; k++) {
                vector_case c = plain("logits", loss, dtype);
                if (data == VECTORS_FAR && dtype < ONEPASS_F32) {
                    continue; /* whose largest number, or whose digits, these are beyond */
                }
                c.data = (vector_data)data;
                c.batch = k == 2 ? 8 : 24;
                c.elements = k == 0 ? 5 : k == 1 ? 130 : 1030;
                if (k == 1) {
                    set(&c, "temperature", 2);
                    set(&c, "beta", 0.1);
                } else if (k == 2) {
                    set(&c, "beta", 0x1p-30);
                }
                add(&c);
            }
        }
    }
}

static void add_layouts(const char *loss) {
    static const int64_t elements[] = {6, 300, 1320};
    for (int layout = 0; layout < VECTOR_LAYOUTS; layout++) {
        for (int i = 0; i < 3; i++) {
            const bool is_one = layout == VECTORS_ALL || layout == VECTORS_VECTOR;
            vector_case c = plain("layouts", loss, i == 0 ? ONEPASS_F32 : i == 1 ? ONEPASS_BF16 : ONEPASS_F64);
            c.layout = (vector_layout)layout;
            c.elements = elements[i];
            c.width = i == 0 ? 2 : 20;
            c.batch = is_one ? 1 : 3;
            c.points = is_one ? 1 : 5;
            c.weight = i == 2 ? ONEPASS_F32 : 0;
            c.mask = i == 1 && !is_one;
            c.reduction = i == 2 ? ONEPASS_MEAN : ONEPASS_NONE;
            c.upstream = i ? ONEPASS_F32 : 0;
            c.divided_by = i == 2;
            add(&c);
        }
    }
}

static void add_options(const char *loss) {
    static const struct {
        const char *name;
        double number;
    } options[] = {
        {"eps", 0},         {"eps", 0.5},          {"eps", 3},    {"p", 1},        {"margin", 0.3},
        {"margin", 5},      {"swap", 1},           {"alpha", 1},  {"alpha", 0},    {"alpha", 0.3},
        {"beta", 1},        {"beta", 0},           {"smooth", 1}, {"smooth", 100}, {"temperature", 0.25},
        {"temperature", 3}, {"temperature", 1000},
    };
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        for (int k = 0; k < 4; k++) {
            vector_case c = plain("options", loss, k % 2 ? ONEPASS_F64 : ONEPASS_F32);
            if (!set(&c, options[i].name, options[i].number)) {
                break;
            }
            c.data = k < 2 ? VECTORS_NORMAL : VECTORS_NEAR;
            c.batch = 20;
            c.elements = k < 2 ? 12 : 1030;
            if (k == 3) { /* together with others */
                set(&c, "p", 1);
                set(&c, "swap", 1);
                set(&c, "beta", 0.75);
                set(&c, "smooth", 0.5);
                set(&c, "temperature", 1.7);
            }
            add(&c);
        }
    }
}

/* Scores of classes by squares, which have kernels of their own, and margins that nothing or everything is beyond. */
static void add_margins(const char *loss) {
    static const int64_t elements[] = {1, 7, 300, 1030, 5000};
    static const double margins[] = {1, 0, -1.5, 1e3, -1e3};
    for (int i = 0; i < 5; i++) {
        for (int k = 0; k < 4; k++) {
            vector_case c = plain("margins", loss, k == 3 ? ONEPASS_F16 : k == 1 ? ONEPASS_F64 : ONEPASS_F32);
            set(&c, "p", k ? 2 : 1);
            set(&c, "margin", margins[(i + k) % 5]);
            c.elements = elements[i];
            c.batch = 15;
            c.layout = k == 2 ? VECTORS_STRIDED : VECTORS_DENSE;
            c.mask = k == 2;
            c.weight = k == 1 ? ONEPASS_F64 : 0;
            c.reduction = i % 2 ? ONEPASS_MEAN : ONEPASS_NONE;
            add(&c);
        }
    }
}

/* Weights of classes, beside those of rows or alone, side by side or with gaps, and of a type that decides. */
static void add_class_weights(const char *loss) {
    static const int64_t elements[] = {1, 5, 128, 1030, 9000};
    static const int32_t types[] = {ONEPASS_F32, ONEPASS_F16, ONEPASS_F64, ONEPASS_BF16};
    for (int i = 0; i < 5; i++) {
        for (int k = 0; k < 6; k++) {
            vector_case c = plain("weights", loss, types[k % 4]);
            c.class_weight = k < 4 ? types[k] : types[(k + 1) % 4];
            c.class_stride = k == 3 ? 3 : 1;
            set(&c, "p", k % 2 ? 2 : 1);
            c.elements = elements[i];
            c.batch = i == 4 ? 3 : 15;
            c.width = k == 5 ? elements[i] : 0;
            c.layout = k == 5 ? VECTORS_BLOCKS : k == 3 ? VECTORS_STRIDED : VECTORS_DENSE;
            c.mask = k == 2;
            c.weight = k == 1 || k == 2 ? ONEPASS_F32 : 0;
            c.reduction = (i + k) % 3;
            c.divided_by = c.reduction == ONEPASS_MEAN;
            c.in_place = k == 4 && i % 2;
            add(&c);
        }
    }
}

static void add_reductions(const char *loss) {
    for (int32_t reduction = ONEPASS_MEAN; reduction <= ONEPASS_BATCHMEAN; reduction++) {
        for (int k = 0; k < 16; k++) {
            vector_case c = plain("reductions", loss, k & 1 ? ONEPASS_F64 : ONEPASS_F32);
            c.reduction = reduction;
            c.batch = k & 8 ? 500 : 50;
            c.points = 3;
            c.elements = 12;
            c.width = 4;
            c.layout = k & 4 ? (k & 2 ? VECTORS_BLOCKS : VECTORS_OUTER) : VECTORS_DENSE;
            c.weight = k & 4 ? ONEPASS_F32 : 0;
            c.mask = k & 8;
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

/* More rows than a tile has, and enough work for several threads; and every set of gradients. */
static void add_outputs(const char *loss) {
    for (int k = 0; k < 16; k++) {
        vector_case c = plain("outputs", loss, k & 1 ? ONEPASS_F64 : ONEPASS_F32);
        c.reduction = k & 2 ? ONEPASS_MEAN : ONEPASS_NONE;
        c.batch = k < 4 ? 2100 : k < 6 ? 1 : k < 8 ? 2 : 12;
        c.elements = k < 4 ? 9 : k < 8 ? 25000 : 1100;
        c.threads = k % 4 + 1;
        for (int operand = 0; operand < ORACLE_OPERANDS; operand++) {
            c.gradient[operand] = k >> operand & 1 ? 0 : c.gradient[operand];
        }
        c.value = k % 5 == 4 && c.gradient[0] ? 0 : c.value;
        add(&c);
    }
}

const vector_case *vector_case_list(size_t *count) {
    for (int32_t i = 0; !is_made && onepass_vector_loss_at(i); i++) {
        const char *loss = onepass_vector_loss_at(i)->name;
        first_of_loss = found;
        add_sizes(loss);
        add_types(loss);
        if (strcmp(loss, "cosine_embedding") == 0) {
            add_targets(loss);
        }
        add_data(loss);
        if (vector_loss_compares_softmaxes(loss)) {
            add_logits(loss);
        }
        add_layouts(loss);
        add_options(loss);
        if (vector_loss_has_labels(loss)) {
            add_margins(loss);
        }
        add_reductions(loss);
        add_outputs(loss);
        if (vector_loss_has_labels(loss)) {
            add_class_weights(loss);
        }
    }
    is_made = true;
    *count = found;
    return all;
}
