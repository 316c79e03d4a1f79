/* Cases of losses over rows: the list, the numbers, the memory. */
#include "row_case.h"
#include "row_losses.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int64_t row_case_rows(const row_case *c) {
    return c->batch * (c->points ? c->points : 1);
}

bool row_case_has_labels(const char *loss) {
    return row_loss_has_labels(loss);
}

bool row_case_in_double(const row_case *c) {
    return c->input == ONEPASS_F64 || c->target == ONEPASS_F64 || c->class_weight == ONEPASS_F64 ||
           c->weight == ONEPASS_F64;
}

void row_case_describe(const row_case *c, char *text, size_t size) {
    static const char *const layouts[] = {"dense", "transposed",    "strided",       "reversed",     "repeated", "even",
                                          "image", "channels last", "classes first", "classes last", "vector"};
    static const char *const data[] = {"normal", "offset", "confident", "wrong", "spread", "absurd", "far", "one-hot"};
    int used = snprintf(
        text, size, "%s of %s, target %s, %lld x %lld classes, %s, %s, reduction %d, value %s, gradient %s", c->loss,
        case_type_name(c->input), case_type_name(c->target), (long long)row_case_rows(c), (long long)c->classes,
        layouts[c->layout], data[c->data], (int)c->reduction, case_type_name(c->value), case_type_name(c->gradient));
    for (int k = 0; k < c->parameter_count && used < (int)size; k++) {
        used += snprintf(text + used, size - (size_t)used, ", %g", c->parameter[k]);
    }
}

/* -------------------------------------------------------------- tensors -- */

/* Rows are counted in row-major order of all dimensions but the axis. */
void *row_address(const case_tensor *of, int64_t row, int64_t c) {
    int64_t offset = of->axis >= 0 ? c * of->strides[of->axis] : 0;
    for (int32_t d = of->tensor.ndim - 1; d >= 0; d--) {
        if (d != of->axis) {
            offset += row % of->shape[d] * of->strides[d];
            row /= of->shape[d];
        }
    }
    return (char *)of->tensor.data + offset * (int64_t)case_type_size(of->tensor.dtype);
}

double row_number(const case_tensor *of, int64_t row, int64_t c) {
    return case_load(of->tensor.dtype, row_address(of, row, c));
}

static void put_number(const case_tensor *of, int64_t row, int64_t c, double number) {
    case_store(of->tensor.dtype, row_address(of, row, c), number);
}

static void dense_strides(case_tensor *of) {
    int64_t stride = 1;
    for (int32_t d = of->tensor.ndim - 1; d >= 0; d--) {
        of->strides[d] = stride;
        stride *= of->shape[d];
    }
}

static void set_shape(case_tensor *of, int32_t dtype, int32_t ndim, int64_t a, int64_t b, int64_t c) {
    const int64_t shape[4] = {a, b, c, 1};
    of->tensor.dtype = dtype;
    of->tensor.ndim = ndim;
    memcpy(of->shape, shape, sizeof shape);
    dense_strides(of);
}

static void set_strides(case_tensor *of, int64_t a, int64_t b, int64_t c) {
    const int64_t strides[4] = {a, b, c, 0};
    memcpy(of->strides, strides, sizeof strides);
}

/* A tensor of a number for each class of each row. Outputs cannot have strides of 0. */
static void place_classes(case_tensor *of, const row_case *c, int32_t dtype, bool is_output) {
    const int64_t rows = row_case_rows(c), classes = c->classes, points = c->points ? c->points : 1;
    of->axis = 1;
    set_shape(of, dtype, 2, rows, classes, 1);
    switch (c->layout) {
    case ROWS_TRANSPOSED:
        set_strides(of, 1, rows, 0);
        break;
    case ROWS_STRIDED:
        set_strides(of, 3 * classes + 5, 3, 0);
        break;
    case ROWS_REVERSED:
        set_strides(of, -classes, -1, 0);
        break;
    case ROWS_REPEATED:
        set_strides(of, is_output ? classes : 0, 1, 0);
        break;
    case ROWS_EVEN:
        set_strides(of, is_output ? classes : 1, is_output ? 1 : 0, 0);
        break;
    case ROWS_IMAGE:
        set_shape(of, dtype, 3, c->batch, classes, points);
        break;
    case ROWS_CHANNELS_LAST:
        set_shape(of, dtype, 3, c->batch, classes, points);
        set_strides(of, classes * points, 1, classes);
        break;
    case ROWS_CLASSES_FIRST:
        set_shape(of, dtype, 3, classes, c->batch, points);
        of->axis = 0;
        break;
    case ROWS_CLASSES_LAST:
        set_shape(of, dtype, 3, c->batch, points, classes);
        of->axis = 2;
        break;
    case ROWS_VECTOR:
        set_shape(of, dtype, 1, classes, 1, 1);
        of->axis = 0;
        break;
    default:
        break;
    }
    case_place(of);
}

/* A tensor of a number for each row. */
static void place_rows(case_tensor *of, const row_case *c, int32_t dtype, bool is_output) {
    const int64_t rows = row_case_rows(c), points = c->points ? c->points : 1;
    of->axis = -1;
    switch (c->layout) {
    case ROWS_IMAGE:
    case ROWS_CHANNELS_LAST:
    case ROWS_CLASSES_FIRST:
    case ROWS_CLASSES_LAST:
        set_shape(of, dtype, 2, c->batch, points, 1);
        break;
    case ROWS_VECTOR:
        set_shape(of, dtype, 0, 1, 1, 1);
        break;
    default:
        set_shape(of, dtype, 1, rows, 1, 1);
        break;
    }
    if (c->layout == ROWS_STRIDED) {
        set_strides(of, 2, 0, 0);
    } else if (c->layout == ROWS_REVERSED) {
        set_strides(of, -1, 0, 0);
    } else if (c->layout == ROWS_REPEATED && !is_output) {
        set_strides(of, 0, 0, 0);
    }
    case_place(of);
}

static void place_one(case_tensor *of, int32_t dtype) {
    of->axis = -1;
    set_shape(of, dtype, 0, 1, 1, 1);
    case_place(of);
}

/* -------------------------------------------------------------- numbers -- */

/* On both sides of what is taken relative to the largest of a tile, another size in each of 300 classes. */
static double absurd(int64_t row, int64_t class, double number) {
    static const double sizes[] = {0, 726800, 1048580, 1e8, -1e9, 0x1p49, 3e30, -726830, 500, 0x1p21};
    return class % 97 == 5 ? -INFINITY : sizes[(row + class / 300) % 10] + number;
}

/* One class, and in every third row its neighbour as well. */
static bool leads(const row_case *c, int64_t row, int64_t class) {
    const int64_t leader = row * 37 % c->classes;
    return class == leader || (row % 3 == 2 && class == (leader + 1) % c->classes);
}

static double logit(const row_case *c, int64_t row, int64_t class, bool is_label, uint64_t *state) {
    static const double leads_by[] = {5, 10, 20, 40, 80}, depths[] = {5, 20, 60, 100, 85};
    static const double offsets[] = {300, -500, 1000, 20, -1}, far[] = {670, 680, 690, 700, 730};
    const double number = case_normal(state);
    switch (c->data) {
    case ROWS_OFFSET:
        return number + offsets[row % 5];
    case ROWS_CONFIDENT:
        return number / 2 + (is_label ? 2 + leads_by[row % 5] : 0);
    case ROWS_WRONG:
        return number / 2 - (is_label ? 2 + depths[row % 5] : 0);
    case ROWS_SPREAD:
        return 160 * case_uniform(state) - 80;
    case ROWS_ABSURD:
        return absurd(row, class, number);
    case ROWS_FAR:
        return number - (class / ONEPASS_TILE == 1 ? far[row % 5] + (is_label ? 30 : 0) : 0);
    case ROWS_ONE_HOT:
        return leads(c, row, class) ? 3 + leads_by[row % 5] : number / 2;
    default:
        return number;
    }
}

/* A row that takes no part: hidden, or ignored. */
static bool is_hidden(const row_case *c, int64_t row) {
    return c->mask && row % 7 == 3;
}

static bool is_ignored(const row_case *c, int64_t row) {
    return c->ignored && row % 5 == 1;
}

static double ignore_index(const row_case *c) {
    return c->parameter_count ? c->parameter[0] : -100;
}

/* Rows that share their memory with others have nothing odd in them. */
static bool rows_are_apart(const row_case *c) {
    return c->layout != ROWS_REPEATED && c->layout != ROWS_EVEN;
}

static int64_t label_of(const row_case *c, int64_t row, uint64_t *state) {
    const int64_t most = c->target == ONEPASS_U8 && c->classes > 256 ? 256 : c->classes;
    const int64_t label = (int64_t)(case_uniform(state) * (double)most);
    if (is_ignored(c, row)) {
        return (int64_t)ignore_index(c);
    }
    return is_hidden(c, row) && rows_are_apart(c) && c->target != ONEPASS_U8 ? c->classes + 7 : label;
}

/* What a row that takes no part has in it must not matter. */
static void fill_inputs(prepared_rows *p, const row_case *c) {
    uint64_t state = c->seed * 7919 + 17;
    for (int64_t row = 0; row < p->rows; row++) {
        int64_t label = -1;
        const bool is_out = (is_hidden(c, row) || is_ignored(c, row)) && rows_are_apart(c);
        if (row_case_has_labels(c->loss)) {
            label = label_of(c, row, &state);
            put_number(&p->target, row, 0, (double)label);
            label = (int64_t)row_number(&p->target, row, 0);
        }
        for (int64_t k = 0; k < c->classes; k++) {
            const double number = logit(c, row, k, k == label, &state);
            put_number(&p->input, row, k, is_out ? (k % 3 ? NAN : INFINITY) : number);
            if (!row_case_has_labels(c->loss)) {
                const double q = case_uniform(&state), even = k % 5 == 4 ? 0 : 2 * q / (double)c->classes;
                const double hot = k == row * 37 % c->classes;
                put_number(&p->target, row, k, is_out ? NAN : c->data == ROWS_ONE_HOT ? hot : even);
            }
        }
        if (c->weight) {
            put_number(&p->weight, row, 0, is_out ? NAN : row % 11 == 10 ? 0 : 0.25 + case_uniform(&state));
        }
        if (c->mask) {
            *(unsigned char *)row_address(&p->mask, row, 0) = is_hidden(c, row) ? 0 : (unsigned char)(1 + row % 3);
        }
    }
    for (int64_t k = 0; c->class_weight && k < c->classes; k++) {
        put_number(&p->class_weight, 0, k, 0.5 + case_uniform(&state));
    }
    for (int64_t row = 0; c->upstream && row < (c->reduction == ONEPASS_NONE ? p->rows : 1); row++) {
        put_number(&p->upstream, row, 0, case_uniform(&state) * 4 - 1);
    }
}

/* ----------------------------------------------------------- made ready -- */

static double *doubles_of(prepared_rows *p, int slot, const case_tensor *of, int64_t rows, int64_t classes) {
    double *numbers = case_allocate((size_t)(rows * classes) * sizeof *numbers);
    for (int64_t row = 0; row < rows; row++) {
        for (int64_t k = 0; k < classes; k++) {
            numbers[row * classes + k] = row_number(of, row, k);
        }
    }
    p->kept[slot] = numbers;
    return numbers;
}

/* The inputs' numbers as they stand in memory. */
static void ask(prepared_rows *p, const row_case *c) {
    oracle_rows *q = &p->question;
    *q = (oracle_rows){.loss = c->loss,
                       .parameter = p->of.parameter,
                       .parameter_count = c->parameter_count,
                       .reduction = c->reduction,
                       .over_elements = (c->flags & ONEPASS_OVER_ELEMENTS) != 0,
                       .rows = p->rows,
                       .classes = c->classes,
                       .divisor = c->divisor};
    if (c->divisor_tensor) {
        q->divisor = row_number(&p->divisor, 0, 0);
    }
    if (c->reduction == ONEPASS_BATCHMEAN) {
        q->divisor = p->input.tensor.ndim > 1 ? (double)p->input.shape[p->input.axis == 0 ? 1 : 0] : 1;
    }
    q->input = doubles_of(p, 0, &p->input, p->rows, c->classes);
    if (row_case_has_labels(c->loss)) {
        int64_t *labels = case_allocate((size_t)p->rows * sizeof *labels);
        for (int64_t row = 0; row < p->rows; row++) {
            labels[row] = (int64_t)row_number(&p->target, row, 0);
        }
        p->kept[1] = labels;
        q->label = labels;
    } else {
        q->probability = doubles_of(p, 1, &p->target, p->rows, c->classes);
    }
    if (c->class_weight) {
        q->class_weight = doubles_of(p, 2, &p->class_weight, 1, c->classes);
    }
    if (c->weight) {
        q->weight = doubles_of(p, 3, &p->weight, p->rows, 1);
    }
    if (c->upstream) {
        q->upstream = doubles_of(p, 4, &p->upstream, c->reduction == ONEPASS_NONE ? p->rows : 1, 1);
    }
    if (c->mask) {
        unsigned char *mask = case_allocate((size_t)p->rows);
        for (int64_t row = 0; row < p->rows; row++) {
            mask[row] = *(unsigned char *)row_address(&p->mask, row, 0);
        }
        p->kept[5] = mask;
        q->mask = mask;
    }
}

static void place_inputs(prepared_rows *p, const row_case *c) {
    place_classes(&p->input, c, c->input, false);
    if (row_case_has_labels(c->loss)) {
        place_rows(&p->target, c, c->target, false);
    } else {
        place_classes(&p->target, c, c->target, false);
    }
    if (c->class_weight) {
        p->class_weight.axis = 0;
        set_shape(&p->class_weight, c->class_weight, 1, c->classes, 1, 1);
        set_strides(&p->class_weight, c->layout == ROWS_STRIDED ? 2 : c->layout == ROWS_REVERSED ? -1 : 1, 0, 0);
        case_place(&p->class_weight);
        p->call.operand[ONEPASS_CLASS_WEIGHT] = &p->class_weight.tensor;
    }
    if (c->weight) {
        place_rows(&p->weight, c, c->weight, false);
        p->call.weight = &p->weight.tensor;
    }
    if (c->mask) {
        place_rows(&p->mask, c, ONEPASS_BOOL, false);
        p->call.mask = &p->mask.tensor;
    }
    if (c->upstream) {
        if (c->reduction == ONEPASS_NONE) {
            place_rows(&p->upstream, c, c->upstream, false);
        } else {
            place_one(&p->upstream, c->upstream);
        }
        p->call.upstream = &p->upstream.tensor;
    }
    if (c->divisor_tensor) {
        place_one(&p->divisor, c->divisor_tensor);
        put_number(&p->divisor, 0, 0, c->divisor);
        p->call.divisor_tensor = &p->divisor.tensor;
    }
    p->call.operand[0] = &p->input.tensor;
    p->call.operand[1] = &p->target.tensor;
}

static void place_outputs(prepared_rows *p, const row_case *c) {
    if (c->value) {
        if (c->reduction == ONEPASS_NONE) {
            place_rows(&p->value, c, c->value, true);
        } else {
            place_one(&p->value, c->value);
        }
        p->call.value = &p->value.tensor;
    }
    if (c->gradient && !c->in_place) {
        place_classes(&p->gradient[0], c, c->gradient, true);
        p->call.gradient[0] = &p->gradient[0].tensor;
    }
    if (c->target_gradient) {
        place_classes(&p->gradient[1], c, c->target_gradient, true);
        p->call.gradient[1] = &p->gradient[1].tensor;
    }
    if (c->in_place) {
        case_share(&p->gradient[0], &p->input);
        p->call.gradient[0] = &p->gradient[0].tensor;
    }
    if (c->log_sum_exp) {
        place_rows(&p->log_sum_exp, c, c->log_sum_exp, true);
        p->call.log_sum_exp = &p->log_sum_exp.tensor;
    }
    if (c->predicted) {
        place_rows(&p->predicted, c, ONEPASS_I64, true);
        p->call.predicted = &p->predicted.tensor;
    }
    if (c->state) {
        p->state.axis = 1;
        set_shape(&p->state, ONEPASS_F64, 2, p->rows, ONEPASS_ROW_STATE, 1);
        case_place(&p->state);
        p->call.row_state = &p->state.tensor;
    }
    if (c->divided_by) {
        place_one(&p->divided_by, ONEPASS_F64);
        p->call.divided_by = &p->divided_by.tensor;
    }
}

prepared_rows *row_case_prepare(const row_case *c) {
    prepared_rows *p = case_allocate(sizeof *p);
    p->of = *c;
    p->rows = row_case_rows(c);
    p->call = (onepass_call){.size = sizeof p->call,
                             .loss = c->loss,
                             .reduction = c->reduction,
                             .parameter_count = c->parameter_count,
                             .threads = c->threads,
                             .flags = c->flags,
                             .divisor = c->divisor_tensor ? 0 : c->divisor};
    memcpy(p->call.parameter, c->parameter, sizeof p->call.parameter);
    p->call.axis = c->layout == ROWS_CLASSES_FIRST ? 1 : c->layout == ROWS_CLASSES_LAST ? -1 : 0;
    place_inputs(p, c);
    fill_inputs(p, c);
    place_outputs(p, c);
    ask(p, c);
    return p;
}

/* ------------------------------------------------------------- outputs -- */

enum {
    OUTPUTS = 7
};

static const case_tensor *output_at(const prepared_rows *p, int i) {
    const case_tensor *all[OUTPUTS] = {&p->value,     &p->gradient[0], &p->gradient[1], &p->log_sum_exp,
                                       &p->predicted, &p->state,       &p->divided_by};
    return all[i]->memory ? all[i] : NULL;
}

static bool is_in_place(const prepared_rows *p, int i) {
    return i == 1 && p->of.in_place;
}

void row_case_poison(prepared_rows *p) {
    for (int i = 0; i < OUTPUTS; i++) {
        const case_tensor *output = output_at(p, i);
        if (output && !is_in_place(p, i)) {
            case_poison(output);
        }
    }
    for (int64_t row = 0; p->of.in_place && row < p->rows; row++) {
        for (int64_t c = 0; c < p->of.classes; c++) {
            put_number(&p->input, row, c, p->question.input[row * p->of.classes + c]);
        }
    }
}

bool row_case_kept_fences(const prepared_rows *p) {
    for (int i = 0; i < OUTPUTS; i++) {
        const case_tensor *output = output_at(p, i);
        if (output && !case_kept_fence(output)) {
            return false;
        }
    }
    return true;
}

bool row_case_is_untouched(const prepared_rows *p) {
    for (int i = 0; i < OUTPUTS; i++) {
        const case_tensor *output = output_at(p, i);
        if (output && !is_in_place(p, i) && !case_is_poison(output)) {
            return false;
        }
    }
    return true;
}

static uint64_t hash_bytes(uint64_t hash, const unsigned char *at, size_t size) {
    for (size_t i = 0; i < size; i++) {
        hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

uint64_t row_case_hash(uint64_t hash, const prepared_rows *p) {
    for (int i = 0; i < OUTPUTS; i++) {
        const case_tensor *output = output_at(p, i) != &p->state ? output_at(p, i) : NULL;
        const int64_t count = output ? case_count(output) : 0;
        const int64_t classes = output && output->axis >= 0 ? output->shape[output->axis] : 1;
        for (int64_t k = 0; k < count; k++) {
            hash =
                hash_bytes(hash, row_address(output, k / classes, k % classes), case_type_size(output->tensor.dtype));
        }
    }
    return hash;
}

void row_case_free(prepared_rows *p) {
    case_tensor *inputs[] = {&p->input, &p->target, &p->class_weight, &p->weight, &p->mask, &p->upstream, &p->divisor};
    for (int i = 0; i < OUTPUTS; i++) {
        if (output_at(p, i) && !is_in_place(p, i)) {
            free(output_at(p, i)->memory);
        }
    }
    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++) {
        free(inputs[i]->memory);
    }
    for (size_t i = 0; i < sizeof p->kept / sizeof p->kept[0]; i++) {
        free(p->kept[i]);
    }
    free(p);
}
