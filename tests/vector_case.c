/* Cases of vector losses made ready: the shapes, the memory, the numbers. */
#include "vector_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int64_t at_least_one(int64_t number) {
    return number ? number : 1;
}

int64_t vector_case_rows(const vector_case *c) {
    return c->batch * at_least_one(c->points);
}

/* Operands that are vectors; the next has a number for each row, or is the only one that may have. */
static int vectors_of(const vector_case *c) {
    return oracle_vector_operands(c->loss);
}

/* Those that are given: of a loss with labels the class weights may not be. */
static int operands_of(const vector_case *c) {
    return vector_loss_has_labels(c->loss) && !c->class_weight ? 2 : onepass_loss_named(c->loss)->operand_count;
}

static bool is_class_weight(const vector_case *c, int operand) {
    return operand == ONEPASS_CLASS_WEIGHT && vector_loss_has_labels(c->loss);
}

bool vector_loss_compares_softmaxes(const char *loss) {
    return strcmp(loss, "kl_div_with_logits") == 0 || strcmp(loss, "js_div_with_logits") == 0 ||
           strcmp(loss, "tv_distance_with_logits") == 0;
}

bool vector_loss_has_labels(const char *loss) {
    return strcmp(loss, "multi_margin") == 0;
}

bool vector_loss_has_label_lists(const char *loss) {
    return strcmp(loss, "multilabel_margin") == 0;
}

/* Whether an operand has a number for each element. */
static bool has_elements(const vector_case *c, int operand) {
    return operand < vectors_of(c) || vector_loss_has_label_lists(c->loss);
}

bool vector_case_in_double(const vector_case *c) {
    bool is_double = c->weight == ONEPASS_F64 || c->class_weight == ONEPASS_F64;
    for (int k = 0; k < vectors_of(c); k++) {
        is_double |= c->operand[k] == ONEPASS_F64;
    }
    return is_double;
}

void vector_case_describe(const vector_case *c, char *text, size_t size) {
    static const char *const layouts[] = {"dense",    "transposed", "strided",    "reversed", "mixed",
                                          "repeated", "one row",    "one column", "outer",    "blocks",
                                          "turned",   "scattered",  "all",        "vector"};
    static const char *const data[] = {"normal", "near", "equal",   "zero",      "huge",
                                       "tiny",   "far",  "leading", "impossible"};
    int used = snprintf(
        text, size, "%s of %s, %s, %s, %lld x %lld elements, %s, %s, reduction %d, gradients %s, %s, %s", c->loss,
        case_type_name(c->operand[0]), case_type_name(c->operand[1]), case_type_name(c->operand[2]),
        (long long)vector_case_rows(c), (long long)c->elements, layouts[c->layout], data[c->data], (int)c->reduction,
        case_type_name(c->gradient[0]), case_type_name(c->gradient[1]), case_type_name(c->gradient[2]));
    for (int k = 0; k < c->parameter_count && used < (int)size; k++) {
        used += snprintf(text + used, size - (size_t)used, ", %g", c->parameter[k]);
    }
}

bool vector_case_is_apart(const vector_case *c, int operand) {
    switch (c->layout) {
    case VECTORS_REPEATED:
        return operand != 0;
    case VECTORS_ONE_ROW:
    case VECTORS_ONE_COLUMN:
        return operand != 1;
    case VECTORS_OUTER:
        return operand == 2;
    default:
        return true;
    }
}

/* -------------------------------------------------------------- elements -- */

void *vector_address(const prepared_vectors *p, const case_tensor *of, int64_t row, int64_t element) {
    int64_t offset = 0;
    for (int32_t d = p->ndim - 1; d >= 0; d--) {
        int64_t *index = d < p->row_dimensions ? &row : &element;
        const bool is_first = d == 0 || d == p->row_dimensions; /* what is left is its index, without a division */
        offset += (is_first ? *index : *index % at_least_one(p->shape[d])) * of->steps[d];
        if (!is_first) {
            *index /= at_least_one(p->shape[d]);
        }
    }
    return (char *)of->tensor.data + offset * (int64_t)case_type_size(of->tensor.dtype);
}

double vector_number(const prepared_vectors *p, const case_tensor *of, int64_t row, int64_t element) {
    return case_load(of->tensor.dtype, vector_address(p, of, row, element));
}

static void put_number(const prepared_vectors *p, const case_tensor *of, int64_t row, int64_t element, double number) {
    case_store(of->tensor.dtype, vector_address(p, of, row, element), number);
}

/* --------------------------------------------------------------- tensors -- */

/* Memory for a tensor, and its strides at the common shape, of which its own first dimension is `first`. */
static void place(const prepared_vectors *p, case_tensor *of, int32_t first) {
    for (int32_t d = 0; d < of->tensor.ndim; d++) {
        of->steps[first + d] = of->shape[d] == p->shape[first + d] ? of->strides[d] : 0;
    }
    case_place(of);
}

/* Strides of a shape whose dimensions lie in memory in an order, the last one innermost. */
static void order_dimensions(case_tensor *of, int32_t ndim, const int *order) {
    int64_t stride = 1;
    for (int32_t i = ndim - 1; i >= 0; i--) {
        of->strides[order[i]] = stride;
        stride *= at_least_one(of->shape[order[i]]);
    }
}

static void make_dense(case_tensor *of) {
    static const int order[] = {0, 1, 2, 3};
    order_dimensions(of, of->tensor.ndim, order);
}

static void set_common_shape(prepared_vectors *p, const vector_case *c) {
    const int64_t points = at_least_one(c->points), width = at_least_one(c->width), height = c->elements / width;
    const int64_t pairs[] = {c->batch, points, c->elements}, blocks[] = {c->batch, points, height, width};
    const int64_t flat[] = {p->rows, c->elements}, all[] = {height, width};
    switch (c->layout) {
    case VECTORS_OUTER:
        p->ndim = 3;
        p->row_dimensions = 2;
        memcpy(p->shape, pairs, sizeof pairs);
        break;
    case VECTORS_BLOCKS:
    case VECTORS_TURNED:
    case VECTORS_SCATTERED:
        p->ndim = 4;
        p->row_dimensions = 2;
        memcpy(p->shape, blocks, sizeof blocks);
        break;
    case VECTORS_ALL:
        p->ndim = 2;
        p->row_dimensions = 0;
        memcpy(p->shape, all, sizeof all);
        break;
    case VECTORS_VECTOR:
        p->ndim = 1;
        p->row_dimensions = 0;
        p->shape[0] = c->elements;
        break;
    default:
        p->ndim = 2;
        p->row_dimensions = 1;
        memcpy(p->shape, flat, sizeof flat);
    }
}

/* A dense, transposed, strided or reversed matrix. */
static void order_matrix(case_tensor *of, vector_layout layout) {
    static const int transposed[] = {1, 0};
    make_dense(of);
    if (layout == VECTORS_TRANSPOSED) {
        order_dimensions(of, 2, transposed);
    } else if (layout == VECTORS_STRIDED) {
        of->strides[0] = 3 * of->shape[1] + 5;
        of->strides[1] = 3;
    } else if (layout == VECTORS_REVERSED) {
        of->strides[0] = -at_least_one(of->shape[1]);
        of->strides[1] = -1;
    }
}

/* A tensor of a number for each element of each row. `which` is the operand's, or the gradient's, which are at the
 * common shape. */
static void place_elements(const prepared_vectors *p, case_tensor *of, int which, int32_t dtype, bool is_output) {
    static const int turned[] = {0, 1, 3, 2}, scattered[] = {2, 0, 3, 1};
    const vector_layout layout = p->of.layout;
    int32_t first = 0;
    of->tensor.dtype = dtype;
    of->tensor.ndim = p->ndim;
    of->rows = p->rows;
    of->elements = p->of.elements;
    memcpy(of->shape, p->shape, sizeof of->shape);
    if (!is_output && layout == VECTORS_OUTER && which == 0) {
        of->shape[1] = 1;
    } else if (!is_output && which == 1 && (layout == VECTORS_OUTER || layout == VECTORS_ONE_ROW)) {
        of->tensor.ndim = p->ndim - 1;
        first = 1;
        memmove(of->shape, of->shape + 1, 3 * sizeof of->shape[0]);
    } else if (!is_output && layout == VECTORS_ONE_COLUMN && which == 1) {
        of->shape[1] = 1;
    }
    make_dense(of);
    if (layout == VECTORS_MIXED) {
        order_matrix(of, (vector_layout)((which + is_output) % 4));
    } else if (layout <= VECTORS_REVERSED) {
        order_matrix(of, layout);
    } else if (layout == VECTORS_REPEATED && which == 0 && !is_output) {
        of->strides[0] = 0;
    } else if (layout == VECTORS_TURNED || (layout == VECTORS_SCATTERED && is_output)) {
        order_dimensions(of, 4, turned);
    } else if (layout == VECTORS_SCATTERED) {
        order_dimensions(of, 4, scattered);
    }
    place(p, of, first);
}

/* A tensor of a number for each row, or one that is broadcast to that. */
static void place_rows(const prepared_vectors *p, case_tensor *of, int32_t dtype) {
    of->tensor.dtype = dtype;
    of->tensor.ndim = p->row_dimensions;
    of->rows = p->rows;
    of->elements = 1;
    memcpy(of->shape, p->shape, sizeof of->shape);
    make_dense(of);
    if (p->of.layout == VECTORS_STRIDED) {
        of->strides[0] = 2;
    } else if (p->of.layout == VECTORS_REVERSED) {
        of->strides[0] = -1;
    }
    place(p, of, 0);
}

static void place_weight(const prepared_vectors *p, case_tensor *of, int32_t dtype) {
    if (p->of.layout == VECTORS_OUTER) { /* (points) */
        of->tensor.dtype = dtype;
        of->tensor.ndim = 1;
        of->shape[0] = p->shape[1];
        make_dense(of);
        place(p, of, 1);
    } else {
        place_rows(p, of, dtype);
    }
}

/* A number for each element, the same for all rows, however many dimensions a vector has. */
static void place_class_weight(const prepared_vectors *p, case_tensor *of, int32_t dtype) {
    int64_t step = of->strides[0] = at_least_one(p->of.class_stride);
    of->tensor.dtype = dtype;
    of->tensor.ndim = 1;
    of->rows = 1;
    of->elements = of->shape[0] = p->of.elements;
    place(p, of, 0);
    for (int32_t d = p->ndim - 1; d >= 0; d--) {
        of->steps[d] = d < p->row_dimensions ? 0 : step;
        step *= at_least_one(p->shape[d]);
    }
}

static void place_one(const prepared_vectors *p, case_tensor *of, int32_t dtype) {
    of->tensor.dtype = dtype;
    of->tensor.ndim = 0;
    of->rows = of->elements = 1;
    place(p, of, 0);
}

/* -------------------------------------------------------------- numbers -- */

/* Factors for rows of huge and of tiny numbers, by type. */
static double factor_of(int32_t dtype, vector_data data, int64_t row) {
    static const double huge[][3] = {{300, 8000, 16000}, {1e20, 7e37, 1e30}, {1e60, 3e70, 1e50}};
    static const double tiny[][3] = {{1e-4, 3e-7, 1e-6}, {1e-30, 1e-42, 2e-38}, {1e-60, 1e-70, 1e-50}};
    const int type = dtype == ONEPASS_F16 ? 0 : dtype == ONEPASS_F64 ? 2 : 1;
    return data == VECTORS_HUGE ? huge[type][row % 3] : data == VECTORS_TINY ? tiny[type][row % 3] : 1;
}

/* What a loss's name says of its numbers, found out once a case. */
typedef struct number_kind {
    bool of_tversky, of_logits;
} number_kind;

static number_kind kind_of(const vector_case *c) {
    return (number_kind){.of_tversky = strncmp(c->loss, "tversky", 7) == 0,
                         .of_logits = strcmp(c->loss, "tversky_with_logits") == 0};
}

/* What the operands have in common, and what an operand is by itself. */
static double common_number(number_kind kind, int64_t row, uint64_t *state) {
    const double u = case_uniform(state);
    if (kind.of_tversky) {
        return row % 2 ? u : u > 0.6;
    }
    return case_normal(state);
}

static double own_number(number_kind kind, int operand, uint64_t *state) {
    if (kind.of_logits && operand == 0) {
        return 3 * case_normal(state);
    }
    return kind.of_tversky ? case_uniform(state) : case_normal(state);
}

/* Logits that are near each other or far apart, with probabilities that vanish, and their offsets. */
static double logit_of(const vector_case *c, int64_t row, int64_t i, int operand, double number) {
    static const double spread[] = {1, 4, 25, 0.1}, offset[] = {0, 300, -2000};
    static const double far[][2] = {{1e6, 1e6}, {1e6, 0}, {-1e8, 1e8}, {3e7, 3e7}, {1048570, 1048580}};
    switch (c->data) {
    case VECTORS_FAR:
        return 3 * number + far[row % 5][operand];
    case VECTORS_LEADING:
        return number + (i == (row % 2 ? 0 : c->elements - 1) || i == row / 8 ? (row / 2 % 4 + 1 + operand) * 80 : 0);
    case VECTORS_IMPOSSIBLE:
        return (operand == 1 ? (i + row) % 5 == 3 || i % 7 == 5 : i % 7 == 5) ? -INFINITY : 2 * number;
    case VECTORS_HUGE: /* whose differences do not overflow */
        return number / 16;
    case VECTORS_NORMAL:
        return number * spread[row % 4] + offset[row % 3];
    default:
        return number;
    }
}

/* Rows in which an operand is 0: one of them, or all. */
static bool is_zero(const vector_case *c, int64_t row, int operand) {
    return c->data == VECTORS_ZERO && (row % 4 == operand || row % 4 == 3);
}

/* A negative's distance, such that hinges are on both sides. */
static double number_of(const vector_case *c, number_kind kind, int64_t row, int operand, double common,
                        uint64_t *state) {
    const double own = own_number(kind, operand, state), factor = factor_of(c->operand[operand], c->data, row);
    if (is_zero(c, row, operand)) {
        return 0;
    }
    switch (c->data) {
    case VECTORS_NEAR:
        return kind.of_logits && operand == 0 ? 6 * common - 3 + own / 100 : common + own / 1000;
    case VECTORS_EQUAL:
        return common;
    case VECTORS_HUGE:
    case VECTORS_TINY:
        return own * factor;
    default:
        return kind.of_tversky ? (operand == 1 ? common : own) : own + (operand == 2 && row % 2 ? common : common / 2);
    }
}

/* 1 and -1, and a few that are neither. */
static double target_of(int64_t row) {
    static const double targets[] = {1, -1, -1, 1, 0, -1, 1, 2};
    return targets[row % 8];
}

/* The first element, the last, and some between; rows that are hidden have no class. */
static double label_of(const vector_case *c, int64_t row, bool out) {
    const int64_t most = c->operand[vectors_of(c)] == ONEPASS_U8 && c->elements > 256 ? 256 : c->elements;
    return out ? -5 : (double)(row % 3 == 0 ? most - 1 - row / 3 % most : row * 7919 % most);
}

/* The i-th of a list: of three labels, of none, of one that comes again, of six or, if there are fewer classes, all.
 * Behind the first -1 stands what is of no account; u8 has no -1, and so all count. */
static double listed_label_of(const vector_case *c, int64_t row, int64_t i, bool out) {
    const int64_t n = c->elements, count = row % 4 == 1 ? 0 : row % 4 == 3 ? 6 : 3, step = n / (count ? count : 1) + 1;
    if (out) {
        return -5;
    }
    if (c->operand[1] == ONEPASS_U8) {
        return (double)((row + i * (row % 3)) % n);
    }
    return i == count ? -1 : (double)(row % 4 == 3 ? n - 1 - i * step % n : (row * 7919 + i % 2 * step) % n);
}

static bool is_hidden(const vector_case *c, int64_t row) {
    return c->mask && (c->layout == VECTORS_OUTER ? row % at_least_one(c->points) % 7 == 1 : row % 7 == 3);
}

/* What a row that takes no part has in it must not matter, if it shares it with no other. */
static void fill_operands(prepared_vectors *p, const vector_case *c) {
    uint64_t state = c->seed * 7919 + 17;
    const int vectors = vectors_of(c);
    const bool has_logits_alone = vector_loss_compares_softmaxes(c->loss);
    const number_kind kind = kind_of(c);
    for (int64_t row = 0; row < p->rows; row++) {
        const bool out = is_hidden(c, row);
        for (int64_t i = 0; i < c->elements; i++) {
            const double common = common_number(kind, row, &state);
            for (int k = 0; k < vectors; k++) {
                const double own = number_of(c, kind, row, k, common, &state);
                const double number = has_logits_alone ? logit_of(c, row, i, k, own) : own;
                const bool spoiled = out && vector_case_is_apart(c, k);
                put_number(p, &p->operand[k], row, i, spoiled ? (i % 3 ? NAN : INFINITY) : number);
            }
        }
        for (int64_t i = 0; i < c->elements && vector_loss_has_label_lists(c->loss); i++) {
            put_number(p, &p->operand[1], row, i, listed_label_of(c, row, i, out));
        }
        if (operands_of(c) > vectors && !vector_loss_has_label_lists(c->loss)) {
            const double target = vector_loss_has_labels(c->loss) ? label_of(c, row, out) : out ? 77 : target_of(row);
            put_number(p, &p->operand[vectors], row, 0, target);
        }
    }
    for (int64_t i = 0; c->class_weight && i < c->elements; i++) {
        put_number(p, &p->operand[ONEPASS_CLASS_WEIGHT], 0, i, i % 13 == 12 ? 0 : 0.25 + case_uniform(&state));
    }
}

static void fill_rows(prepared_vectors *p, const vector_case *c) {
    uint64_t state = c->seed * 7919 + 1000003;
    for (int64_t row = 0; row < p->rows; row++) {
        const bool out = is_hidden(c, row);
        if (c->weight) {
            put_number(p, &p->weight, row, 0, out ? NAN : row % 11 == 10 ? 0 : 0.25 + case_uniform(&state));
        }
        if (c->mask) {
            *(unsigned char *)vector_address(p, &p->mask, row, 0) = out ? 0 : (unsigned char)(1 + row % 3);
        }
    }
    for (int64_t row = 0; c->upstream && row < (c->reduction == ONEPASS_NONE ? p->rows : 1); row++) {
        put_number(p, &p->upstream, row, 0, case_uniform(&state) * 4 - 1);
    }
}

/* ----------------------------------------------------------- made ready -- */

static double *doubles_of(prepared_vectors *p, int slot, const case_tensor *of, int64_t rows, int64_t elements) {
    double *numbers = case_allocate((size_t)(rows * elements) * sizeof *numbers);
    for (int64_t row = 0; row < rows; row++) {
        for (int64_t i = 0; i < elements; i++) {
            numbers[row * elements + i] = vector_number(p, of, row, i);
        }
    }
    p->kept[slot] = numbers;
    return numbers;
}

/* The inputs' numbers as they stand in memory. */
static void ask(prepared_vectors *p, const vector_case *c) {
    oracle_vectors *q = &p->question;
    *q = (oracle_vectors){.loss = c->loss,
                          .parameter = p->of.parameter,
                          .parameter_count = c->parameter_count,
                          .reduction = c->reduction,
                          .over_elements = (c->flags & ONEPASS_OVER_ELEMENTS) != 0,
                          .in_float = !vector_case_in_double(c),
                          .rows = p->rows,
                          .elements = c->elements,
                          .divisor = c->divisor};
    for (int k = 0; k < operands_of(c); k++) {
        const bool is_of_classes = is_class_weight(c, k);
        q->operand[k] = doubles_of(p, k, &p->operand[k], is_of_classes ? 1 : p->rows,
                                   is_of_classes || has_elements(c, k) ? c->elements : 1);
    }
    if (c->divisor_tensor) {
        q->divisor = vector_number(p, &p->divisor, 0, 0);
    }
    if (c->reduction == ONEPASS_BATCHMEAN) {
        q->divisor = p->row_dimensions ? (double)p->shape[0] : 1;
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
            mask[row] = *(unsigned char *)vector_address(p, &p->mask, row, 0);
        }
        p->kept[5] = mask;
        q->mask = mask;
    }
}

static void place_inputs(prepared_vectors *p, const vector_case *c) {
    for (int k = 0; k < operands_of(c); k++) {
        if (has_elements(c, k)) {
            place_elements(p, &p->operand[k], k, c->operand[k], false);
        } else if (is_class_weight(c, k)) {
            place_class_weight(p, &p->operand[k], c->class_weight);
        } else {
            place_rows(p, &p->operand[k], c->operand[k]);
        }
        p->call.operand[k] = &p->operand[k].tensor;
    }
    if (c->weight) {
        place_weight(p, &p->weight, c->weight);
        p->call.weight = &p->weight.tensor;
    }
    if (c->mask) {
        place_weight(p, &p->mask, ONEPASS_BOOL);
        p->call.mask = &p->mask.tensor;
    }
    if (c->upstream) {
        if (c->reduction == ONEPASS_NONE) {
            place_rows(p, &p->upstream, c->upstream);
        } else {
            place_one(p, &p->upstream, c->upstream);
        }
        p->call.upstream = &p->upstream.tensor;
    }
    if (c->divisor_tensor) {
        place_one(p, &p->divisor, c->divisor_tensor);
        put_number(p, &p->divisor, 0, 0, c->divisor);
        p->call.divisor_tensor = &p->divisor.tensor;
    }
}

static void place_outputs(prepared_vectors *p, const vector_case *c) {
    if (c->value) {
        if (c->reduction == ONEPASS_NONE) {
            place_rows(p, &p->value, c->value);
        } else {
            place_one(p, &p->value, c->value);
        }
        p->call.value = &p->value.tensor;
    }
    for (int k = 0; k < vectors_of(c); k++) {
        case_tensor *gradient = &p->gradient[k];
        if (!c->gradient[k]) {
            continue;
        }
        if (c->in_place) {
            case_share(gradient, &p->operand[k]);
        } else {
            place_elements(p, gradient, k, c->gradient[k], true);
        }
        p->call.gradient[k] = &gradient->tensor;
    }
    if (c->divided_by) {
        place_one(p, &p->divided_by, ONEPASS_F64);
        p->call.divided_by = &p->divided_by.tensor;
    }
}

static int32_t axis_of(vector_layout layout) {
    switch (layout) {
    case VECTORS_TRANSPOSED:
        return -1;
    case VECTORS_STRIDED:
        return 2;
    case VECTORS_BLOCKS:
        return 3;
    case VECTORS_TURNED:
    case VECTORS_SCATTERED:
        return -2;
    case VECTORS_ALL:
        return 1;
    default:
        return 0;
    }
}

/* Of a loss with labels: these are whole numbers, and there is no second vector to broadcast to. Where there are lists
 * of them, gradients have memory of their own; all of u8 count, so that they are short. */
static vector_case with_labels(vector_case c) {
    static const int32_t types[] = {ONEPASS_I64, ONEPASS_I32, ONEPASS_U8};
    const bool has_lists = vector_loss_has_label_lists(c.loss);
    c.operand[vectors_of(&c)] = types[c.seed % (has_lists && c.elements > 12 ? 2 : 3)];
    c.in_place &= !has_lists;
    c.layout = c.layout == VECTORS_OUTER                                       ? VECTORS_BLOCKS
               : c.layout == VECTORS_ONE_ROW || c.layout == VECTORS_ONE_COLUMN ? VECTORS_DENSE
                                                                               : c.layout;
    return c;
}

prepared_vectors *vector_case_prepare(const vector_case *given) {
    const bool has_labels = vector_loss_has_labels(given->loss) || vector_loss_has_label_lists(given->loss);
    const vector_case own = has_labels ? with_labels(*given) : *given, *c = &own;
    prepared_vectors *p = case_allocate(sizeof *p);
    p->of = *c;
    p->rows = vector_case_rows(c);
    p->call = (onepass_call){.size = sizeof p->call,
                             .loss = c->loss,
                             .reduction = c->reduction,
                             .parameter_count = c->parameter_count,
                             .threads = c->threads,
                             .flags = c->flags,
                             .divisor = c->divisor_tensor ? 0 : c->divisor,
                             .axis = axis_of(c->layout)};
    memcpy(p->call.parameter, c->parameter, sizeof p->call.parameter);
    set_common_shape(p, c);
    place_inputs(p, c);
    fill_operands(p, c);
    fill_rows(p, c);
    place_outputs(p, c);
    ask(p, c);
    return p;
}

/* ------------------------------------------------------------- outputs -- */

enum {
    OUTPUTS = 2 + ORACLE_OPERANDS
};

static const case_tensor *output_at(const prepared_vectors *p, int i) {
    const case_tensor *all[OUTPUTS] = {&p->value, &p->divided_by, &p->gradient[0], &p->gradient[1], &p->gradient[2]};
    return all[i]->memory ? all[i] : NULL;
}

static bool is_in_place(const prepared_vectors *p, int i) {
    return i >= 2 && p->of.in_place;
}

void vector_case_poison(prepared_vectors *p) {
    for (int i = 0; i < OUTPUTS; i++) {
        const case_tensor *output = output_at(p, i);
        if (output && !is_in_place(p, i)) {
            case_poison(output);
        }
    }
    for (int k = 0; p->of.in_place && k < vectors_of(&p->of); k++) {
        for (int64_t i = 0; i < p->rows * p->of.elements; i++) {
            put_number(p, &p->operand[k], i / p->of.elements, i % p->of.elements, p->question.operand[k][i]);
        }
    }
}

bool vector_case_kept_fences(const prepared_vectors *p) {
    for (int i = 0; i < OUTPUTS; i++) {
        const case_tensor *output = output_at(p, i);
        if (output && !case_kept_fence(output)) {
            return false;
        }
    }
    return true;
}

uint64_t vector_case_hash(uint64_t hash, const prepared_vectors *p) {
    for (int i = 0; i < OUTPUTS; i++) {
        const case_tensor *of = output_at(p, i);
        for (int64_t k = 0; of && k < of->rows * of->elements; k++) {
            const void *at = vector_address(p, of, k / of->elements, k % of->elements);
            hash = (hash ^ oracle_load_bits(of->tensor.dtype, at)) * UINT64_C(0x100000001b3);
            hash ^= hash >> 29;
        }
    }
    return hash;
}

/* ----------------------------------------------------------- elsewhere -- */

enum {
    TENSORS = 7 + OUTPUTS
};

case_tensor *vector_case_tensor(prepared_vectors *p, int index) {
    case_tensor *all[TENSORS] = {&p->operand[0], &p->operand[1],  &p->operand[2],  &p->weight,
                                 &p->mask,       &p->upstream,    &p->divisor,     &p->value,
                                 &p->divided_by, &p->gradient[0], &p->gradient[1], &p->gradient[2]};
    for (int i = 0; i < TENSORS; i++) {
        const bool own = all[i]->memory && !(i >= TENSORS - ORACLE_OPERANDS && p->of.in_place);
        if (own && index-- == 0) {
            return all[i];
        }
    }
    return NULL;
}

void vector_case_point(prepared_vectors *p, int index, unsigned char *copy) {
    case_tensor *of = vector_case_tensor(p, index);
    const ptrdiff_t at = (unsigned char *)of->tensor.data - of->memory;
    for (int k = 0; p->of.in_place && k < ORACLE_OPERANDS; k++) {
        if (of == &p->operand[k]) {
            p->gradient[k].tensor.data = copy + at;
        }
    }
    of->tensor.data = copy + at;
}

void vector_case_free(prepared_vectors *p) {
    for (int i = 0; vector_case_tensor(p, i); i++) {
        free(vector_case_tensor(p, i)->memory);
    }
    for (size_t i = 0; i < sizeof p->kept / sizeof p->kept[0]; i++) {
        free(p->kept[i]);
    }
    free(p);
}
