/*
 * The oracle's parts in the order of its header: types, losses, order, a call.
 * Nothing here is fast; everything should be checkable by eye against
 * docs/numerics.md.
 */
#include "oracle.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------ the types -- */

/* precision counts the hidden bit; least is the exponent of the least denormal. */
typedef struct format {
    const char *name;
    size_t size;
    int precision;
    int exponent_bits;
    int least;
} format;

static const format *format_of(int32_t dtype) {
    static const format half = {"f16", 2, 11, 5, -24};
    static const format brain = {"bf16", 2, 8, 8, -133};
    static const format single = {"f32", 4, 24, 8, -149};
    static const format twice = {"f64", 8, 53, 11, -1074};
    static const format byte = {.name = "bool", .size = 1};
    switch (dtype) {
    case ONEPASS_F16:
        return &half;
    case ONEPASS_BF16:
        return &brain;
    case ONEPASS_F32:
        return &single;
    case ONEPASS_F64:
        return &twice;
    case ONEPASS_BOOL:
        return &byte;
    default:
        abort();
    }
}

size_t oracle_size(int32_t dtype) {
    return format_of(dtype)->size;
}

const char *oracle_dtype_name(int32_t dtype) {
    return format_of(dtype)->name;
}

uint64_t oracle_load_bits(int32_t dtype, const void *address) {
    uint16_t two;
    uint32_t four;
    uint64_t eight;
    switch (format_of(dtype)->size) {
    case 1:
        return *(const unsigned char *)address;
    case 2:
        memcpy(&two, address, 2);
        return two;
    case 4:
        memcpy(&four, address, 4);
        return four;
    default:
        memcpy(&eight, address, 8);
        return eight;
    }
}

void oracle_store_bits(int32_t dtype, void *address, uint64_t bits) {
    const uint16_t two = (uint16_t)bits;
    const uint32_t four = (uint32_t)bits;
    switch (format_of(dtype)->size) {
    case 1:
        *(unsigned char *)address = (unsigned char)bits;
        break;
    case 2:
        memcpy(address, &two, 2);
        break;
    case 4:
        memcpy(address, &four, 4);
        break;
    default:
        memcpy(address, &bits, 8);
    }
}

uint64_t oracle_double_bits(double value) {
    uint64_t bits;
    memcpy(&bits, &value, 8);
    return bits;
}

double oracle_double_from_bits(uint64_t bits) {
    double value;
    memcpy(&value, &bits, 8);
    return value;
}

/* A finite number that is not zero, as whole * 2^exponent. */
typedef struct whole_number {
    uint64_t whole;
    int exponent;
} whole_number;

static int bit_length(uint64_t whole) {
    return 64 - __builtin_clzll(whole);
}

/* The magnitude bits (sign cut off) of a format, for the nearest number to
 * `number`, ties to even; infinity beyond the largest. */
static uint64_t round_to_format(const format *f, whole_number number) {
    int quantum = number.exponent + bit_length(number.whole) - f->precision;
    if (quantum < f->least) {
        quantum = f->least;
    }
    const int cut = quantum - number.exponent;
    uint64_t kept;
    if (cut <= 0) {
        kept = number.whole << -cut;
    } else if (cut > 54) {
        kept = 0; /* a whole has 53 bits at most, so this is less than half of the quantum */
    } else {
        const uint64_t rest = number.whole & ((UINT64_C(1) << cut) - 1);
        const uint64_t tie = UINT64_C(1) << (cut - 1);
        kept = number.whole >> cut;
        kept += rest > tie || (rest == tie && (kept & 1));
    }
    const uint64_t hidden = UINT64_C(1) << (f->precision - 1);
    if (kept == 2 * hidden) {
        kept = hidden;
        quantum++;
    }
    if (kept < hidden) {
        return kept;
    }
    const uint64_t field = (uint64_t)(quantum - f->least + 1);
    const uint64_t all_ones = (UINT64_C(1) << f->exponent_bits) - 1;
    return field >= all_ones ? all_ones * hidden : field * hidden + (kept - hidden);
}

/* Takes the bits of one format to those of another. */
static uint64_t convert(const format *from, const format *to, uint64_t bits) {
    const uint64_t from_hidden = UINT64_C(1) << (from->precision - 1);
    const uint64_t to_hidden = UINT64_C(1) << (to->precision - 1);
    const uint64_t from_ones = (UINT64_C(1) << from->exponent_bits) - 1;
    const uint64_t to_ones = (UINT64_C(1) << to->exponent_bits) - 1;
    const uint64_t fraction = bits & (from_hidden - 1);
    const uint64_t field = bits / from_hidden & from_ones;
    const uint64_t sign = bits >> (8 * from->size - 1) & 1;
    const uint64_t to_sign = sign << (8 * to->size - 1);
    if (field == from_ones) {
        return fraction ? to_ones * to_hidden + to_hidden / 2 : to_sign + to_ones * to_hidden;
    }
    whole_number number = {fraction, from->least};
    if (field) {
        number.whole += from_hidden;
        number.exponent += (int)field - 1;
    }
    return number.whole ? to_sign + round_to_format(to, number) : to_sign;
}

double oracle_decode(int32_t dtype, uint64_t bits) {
    if (dtype == ONEPASS_BOOL) {
        return bits != 0;
    }
    return oracle_double_from_bits(convert(format_of(dtype), format_of(ONEPASS_F64), bits));
}

uint64_t oracle_encode(int32_t dtype, double value) {
    if (dtype == ONEPASS_BOOL) {
        return value != 0;
    }
    return convert(format_of(ONEPASS_F64), format_of(dtype), oracle_double_bits(value));
}

double oracle_load(int32_t dtype, const void *address) {
    return oracle_decode(dtype, oracle_load_bits(dtype, address));
}

void oracle_store(int32_t dtype, void *address, double value) {
    oracle_store_bits(dtype, address, oracle_encode(dtype, value));
}

/* ----------------------------------------------------------- the losses -- */

/* Behind a number that stands for nothing, so that a loss without parameters has an array, too. */
#define STANDARD(...)                                                                                                  \
    { 0, __VA_ARGS__ }
/* What oracle_float.c and oracle_double.c make of the same lines. */
#define ORACLE_LOSS(name, domains, defaults, ...)                                                                      \
    static const double name##_standard[] = STANDARD defaults;                                                         \
    oracle_formula_float oracle_##name##_in_float;                                                                     \
    oracle_formula_double oracle_##name##_in_double;
#include "oracle_losses.def"
#undef ORACLE_LOSS

#define ANY           ORACLE_ANY
#define POSITIVE      ORACLE_POSITIVE
#define PROBABILITY   ORACLE_PROBABILITY
#define SIGN          ORACLE_SIGN
#define COUNT_OF(...) (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int))
#define LIST(...)                                                                                                      \
    { __VA_ARGS__ }

static const oracle_loss losses[] = {
#define ORACLE_LOSS(name, domains, defaults, ...)                                                                      \
    {#name,                                                                                                            \
     COUNT_OF domains,                                                                                                 \
     (int)(sizeof name##_standard / sizeof name##_standard[0]) - 1,                                                    \
     LIST domains,                                                                                                     \
     name##_standard + 1,                                                                                              \
     oracle_##name##_in_float,                                                                                         \
     oracle_##name##_in_double},
#include "oracle_losses.def"
#undef ORACLE_LOSS
};

const oracle_loss *oracle_loss_at(int index) {
    return index >= 0 && (size_t)index < sizeof losses / sizeof losses[0] ? &losses[index] : NULL;
}

const oracle_loss *oracle_loss_named(const char *name) {
    for (int i = 0; oracle_loss_at(i); i++) {
        if (strcmp(name, losses[i].name) == 0) {
            return &losses[i];
        }
    }
    return NULL;
}

void oracle_parameters(const oracle_loss *loss, int count, const double *given, double all[ONEPASS_MAX_PARAMETERS]) {
    for (int i = 0; i < ONEPASS_MAX_PARAMETERS; i++) {
        all[i] = (i < count ? given[i] : i < loss->parameter_count ? loss->standard[i] : 0) + 0.0; /* -0 is 0 */
    }
}

void oracle_term(const oracle_loss *loss, int in_float, const double operand[ORACLE_OPERANDS], const double *k,
                 double result[ORACLE_PARTS]) {
    if (!in_float) {
        loss->in_double(operand, k, result);
        return;
    }
    float parameter[ONEPASS_MAX_PARAMETERS];
    for (int i = 0; i < ONEPASS_MAX_PARAMETERS; i++) {
        parameter[i] = (float)k[i];
    }
    float number[ORACLE_OPERANDS];
    for (int i = 0; i < ORACLE_OPERANDS; i++) {
        number[i] = i < loss->operand_count ? (float)operand[i] : 0;
    }
    float rounded[ORACLE_PARTS];
    loss->in_float(number, parameter, rounded);
    for (int i = 0; i < 1 + loss->operand_count; i++) {
        result[i] = rounded[i];
    }
}

/* ------------------------------------------------------------ the order -- */

enum {
    ROWS = 8,
    LANES = 128,
    TILE = ROWS * LANES
};

static double row_tree_in_float(const double *row) {
    float r[ROWS];
    for (int i = 0; i < ROWS; i++) {
        r[i] = (float)row[i];
    }
    const float low = (r[0] + r[1]) + (r[2] + r[3]);
    const float high = (r[4] + r[5]) + (r[6] + r[7]);
    const float sum = low + high;
    return sum;
}

static double row_tree_in_double(const double *r) {
    return ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
}

static double tile_sum(const double *term, int64_t count, int in_float) {
    double lane[LANES];
    for (int l = 0; l < LANES; l++) {
        double row[ROWS];
        for (int r = 0; r < ROWS; r++) {
            const int64_t i = r * LANES + l;
            row[r] = i < count ? term[i] : 0.0;
        }
        lane[l] = in_float ? row_tree_in_float(row) : row_tree_in_double(row);
    }
    for (int half = LANES / 2; half; half /= 2) {
        for (int l = 0; l < half; l++) {
            lane[l] = lane[l] + lane[l + half];
        }
    }
    return lane[0];
}

typedef struct terms {
    const double *term;
    int64_t count;
    int in_float;
} terms;

static double node(const terms *all, int level, int64_t i) {
    if (level == 0) {
        const int64_t left = all->count - i * TILE;
        return tile_sum(all->term + i * TILE, left < TILE ? left : TILE, all->in_float);
    }
    const int64_t tiles = (all->count + TILE - 1) / TILE;
    const double left = node(all, level - 1, 2 * i);
    if ((2 * i + 1) << (level - 1) >= tiles) {
        return left;
    }
    return left + node(all, level - 1, 2 * i + 1);
}

static int levels(int64_t tiles) {
    int level = 0;
    while (INT64_C(1) << level < tiles) {
        level++;
    }
    return level;
}

double oracle_sum(const double *term, int64_t count, int in_float) {
    const terms all = {term, count, in_float};
    return count ? node(&all, levels((count + TILE - 1) / TILE), 0) : 0.0;
}

/* A node over `full` full tiles and, where part is not null, one partial tile. */
static double node_of_equals(double tile, const double *part, int level, int64_t full) {
    if (full == INT64_C(1) << level && !part) {
        double sum = tile;
        for (int i = 0; i < level; i++) {
            sum = sum + sum;
        }
        return sum;
    }
    if (level == 0) {
        return *part;
    }
    const int64_t half = INT64_C(1) << (level - 1);
    if (full + (part ? 1 : 0) <= half) {
        return node_of_equals(tile, part, level - 1, full);
    }
    return node_of_equals(tile, NULL, level - 1, half) + node_of_equals(tile, part, level - 1, full - half);
}

double oracle_sum_of_equals(double term, int64_t count, int in_float) {
    double same[TILE];
    for (int i = 0; i < TILE; i++) {
        same[i] = term;
    }
    const int64_t full = count / TILE;
    const int64_t rest = count % TILE;
    const double part = tile_sum(same, rest, in_float);
    return count ? node_of_equals(tile_sum(same, TILE, in_float), rest ? &part : NULL, levels(full + (rest ? 1 : 0)),
                                  full)
                 : 0.0;
}

/* Knuth's two-sum keeps each addition's error; the errors are added up beside
 * the sum. Long double would be slow in software on Arm and 64 bits on x86. */
double oracle_exact_sum(const double *term, int64_t count) {
    double sum = 0;
    double error = 0;
    for (int64_t i = 0; i < count; i++) {
        const double next = sum + term[i];
        const double taken = next - sum;
        error += (sum - (next - taken)) + (term[i] - taken);
        sum = next;
    }
    return sum + error;
}

/* -------------------------------------------------------------- a call -- */

static int64_t stride_of(const onepass_tensor *tensor, int dimension) {
    if (tensor->strides) {
        return tensor->strides[dimension];
    }
    int64_t stride = 1;
    for (int d = tensor->ndim - 1; d > dimension; d--) {
        stride *= tensor->shape[d];
    }
    return stride;
}

/* Whether an offset is the index: the rule, not its result, would take most of the tests' time. */
static int is_plain(const onepass_tensor *tensor, int32_t ndim, const int64_t *shape) {
    int plain = !tensor->strides && tensor->ndim == ndim;
    for (int d = 0; d < ndim && plain; d++) {
        plain = tensor->shape[d] == shape[d];
    }
    return plain;
}

int64_t oracle_offset(const onepass_tensor *tensor, int32_t ndim, const int64_t *shape, int64_t index) {
    int64_t offset = 0;
    if (is_plain(tensor, ndim, shape)) {
        return index;
    }
    for (int d = ndim - 1; d >= 0; d--) {
        const int64_t coordinate = index % shape[d];
        const int own = d - (ndim - tensor->ndim);
        index /= shape[d];
        if (own >= 0 && tensor->shape[own] != 1) {
            offset += coordinate * stride_of(tensor, own);
        }
    }
    return offset;
}

int64_t oracle_common_shape(const onepass_call *call, int32_t *ndim, int64_t shape[ONEPASS_MAX_DIMENSIONS]) {
    int64_t count = 1;
    *ndim = 0;
    for (int i = 0; i < ONEPASS_MAX_OPERANDS && call->operand[i]; i++) {
        *ndim = call->operand[i]->ndim > *ndim ? call->operand[i]->ndim : *ndim;
    }
    for (int d = 0; d < *ndim; d++) {
        shape[d] = 1;
        for (int i = 0; i < ONEPASS_MAX_OPERANDS && call->operand[i]; i++) {
            const int own = d - (*ndim - call->operand[i]->ndim);
            if (own >= 0 && call->operand[i]->shape[own] != 1) {
                shape[d] = call->operand[i]->shape[own];
            }
        }
        count *= shape[d];
    }
    return count;
}

typedef struct common_shape {
    int32_t ndim;
    int64_t shape[ONEPASS_MAX_DIMENSIONS];
    int64_t count;
} common_shape;

static void *element(const onepass_tensor *tensor, const common_shape *common, int64_t index) {
    const int64_t offset = oracle_offset(tensor, common->ndim, common->shape, index);
    return (char *)tensor->data + offset * (int64_t)oracle_size(tensor->dtype);
}

static double load_element(const onepass_tensor *tensor, const common_shape *common, int64_t index) {
    return oracle_load(tensor->dtype, element(tensor, common, index));
}

/* One product in the compute type. */
static double product(double a, double b, int in_float) {
    if (in_float) {
        const float rounded = (float)a * (float)b;
        return rounded;
    }
    return a * b;
}

/* The terms of a call, weighted, and what each of them counts for in a mean. */
typedef struct parts {
    double *part[ORACLE_PARTS]; /* the value and the slopes */
    double *counts;             /* 0 where the mask says so; else the weight, or 1 */
    char *hidden;               /* 1 where the mask says so */
} parts;

/* The sum divided by the divisor is the value; 1 / divisor scales the gradients. */
static double divisor_of(const onepass_call *call, const common_shape *common, const parts *all, int in_float) {
    if (call->reduction == ONEPASS_BATCHMEAN) {
        return common->ndim ? (double)common->shape[0] : 1;
    }
    if (call->flags & ONEPASS_OVER_ELEMENTS) {
        int64_t seen = 0;
        for (int64_t i = 0; i < common->count; i++) {
            seen += !all->hidden[i];
        }
        return (double)seen;
    }
    return call->divisor != 0 ? call->divisor : oracle_sum(all->counts, common->count, in_float);
}

static int is_divided(const onepass_call *call) {
    return call->reduction == ONEPASS_MEAN || call->reduction == ONEPASS_BATCHMEAN;
}

static void store_value(const onepass_call *call, const common_shape *common, const double *term, double divisor,
                        int in_float) {
    if (call->reduction == ONEPASS_NONE) {
        for (int64_t i = 0; i < common->count; i++) {
            oracle_store(call->value->dtype, element(call->value, common, i), term[i]);
        }
        return;
    }
    double value = oracle_sum(term, common->count, in_float);
    if (is_divided(call)) {
        value /= divisor;
    }
    oracle_store(call->value->dtype, call->value->data, value);
}

/* ((slope * w) * s) * g, left to right; the slopes come with their weight already. What is hidden is 0. */
static void store_gradient(const onepass_call *call, const common_shape *common, int which, const parts *all,
                           double divisor, int in_float) {
    const onepass_tensor *gradient = call->gradient[which];
    const double *slope = all->part[1 + which];
    for (int64_t i = 0; i < common->count; i++) {
        double upstream = 1;
        if (call->upstream) {
            upstream = call->reduction == ONEPASS_NONE ? load_element(call->upstream, common, i)
                                                       : oracle_load(call->upstream->dtype, call->upstream->data);
        }
        const double scaled = is_divided(call) ? product(slope[i], 1.0 / divisor, in_float) : slope[i];
        const double whole = product(scaled, upstream, in_float);
        oracle_store(gradient->dtype, element(gradient, common, i), all->hidden[i] ? 0 : whole);
    }
}

/* One element's terms. */
static void compute(const onepass_call *call, const oracle_loss *loss, const double *parameter,
                    const common_shape *common, int64_t i, int in_float, const parts *all) {
    double operand[ORACLE_OPERANDS] = {0};
    double result[ORACLE_PARTS];
    for (int j = 0; j < loss->operand_count; j++) {
        operand[j] = load_element(call->operand[j], common, i);
    }
    oracle_term(loss, in_float, operand, parameter, result);
    const double weight = call->weight ? load_element(call->weight, common, i) : 1;
    const int hidden = call->mask && load_element(call->mask, common, i) == 0;
    for (int j = 0; j < 1 + loss->operand_count; j++) {
        const double weighted = call->weight ? product(result[j], weight, in_float) : result[j];
        all->part[j][i] = hidden ? 0 : weighted;
    }
    all->counts[i] = hidden ? 0 : weight;
    all->hidden[i] = (char)hidden;
}

static int computed_in_float(const onepass_call *call) {
    int in_float = !call->weight || call->weight->dtype != ONEPASS_F64;
    for (int i = 0; i < ONEPASS_MAX_OPERANDS && call->operand[i]; i++) {
        in_float &= call->operand[i]->dtype != ONEPASS_F64;
    }
    return in_float;
}

static void *allocate(size_t count, size_t size) {
    void *memory = malloc((count ? count : 1) * size);
    if (!memory) {
        abort();
    }
    return memory;
}

void oracle_run(const onepass_call *call) {
    const oracle_loss *loss = oracle_loss_named(call->loss);
    const int in_float = computed_in_float(call);
    common_shape common;
    common.count = oracle_common_shape(call, &common.ndim, common.shape);

    /* All terms before the first output: a gradient may lie over its operand. */
    parts all = {.counts = allocate((size_t)common.count, sizeof(double)), .hidden = allocate((size_t)common.count, 1)};
    for (int j = 0; j < 1 + loss->operand_count; j++) {
        all.part[j] = allocate((size_t)common.count, sizeof(double));
    }
    double parameter[ONEPASS_MAX_PARAMETERS];
    oracle_parameters(loss, call->parameter_count, call->parameter, parameter);
    for (int64_t i = 0; i < common.count; i++) {
        compute(call, loss, parameter, &common, i, in_float, &all);
    }

    const double divisor = divisor_of(call, &common, &all, in_float);
    if (call->value) {
        store_value(call, &common, all.part[0], divisor, in_float);
    }
    for (int which = 0; which < loss->operand_count; which++) {
        if (call->gradient[which]) {
            store_gradient(call, &common, which, &all, divisor, in_float);
        }
    }
    free(all.counts);
    free(all.hidden);
    for (int j = 0; j < ORACLE_PARTS; j++) {
        free(all.part[j]);
    }
}
