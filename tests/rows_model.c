/* The model of rows_model.h, compiled once for each compute type. */
#include "rows_model.h"

#include "descriptor.h"
#include "math/real.h"

#include "math/row.h"

#include <stdlib.h>
#include <string.h>
#define ROW_LOSS(...)
#include "row_losses.def"

enum {
    TILE = 1024,
    LANES = 128
};

/* ------------------------------------------------------------- the order -- */

static double sum_of_tile(const real *terms, int64_t count) {
    real term[TILE] = {0};
    double lane[LANES];
    memcpy(term, terms, (size_t)count * sizeof *terms);
    for (int l = 0; l < LANES; l++) {
        const real *t = term + l;
        const real low = (t[0] + t[LANES]) + (t[2 * LANES] + t[3 * LANES]);
        const real high = (t[4 * LANES] + t[5 * LANES]) + (t[6 * LANES] + t[7 * LANES]);
        lane[l] = (double)(low + high);
    }
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int l = 0; l < half; l++)
            lane[l] = lane[l] + lane[l + half];
    return lane[0];
}

/* The node of 2^level tiles from `first` on. */
static double sum_of_tiles(const double *tile, int64_t first, int64_t tiles, int level) {
    if (level == 0)
        return tile[first];
    const int64_t second = first + ((int64_t)1 << (level - 1));
    const double left = sum_of_tiles(tile, first, tiles, level - 1);
    return second < tiles ? left + sum_of_tiles(tile, second, tiles, level - 1) : left;
}

static double sum_of_parts(const double *tile, int64_t tiles) {
    int level = 0;
    while ((int64_t)1 << level < tiles)
        level++;
    return tiles ? sum_of_tiles(tile, 0, tiles, level) : 0;
}

static double sum_of_terms(const real *term, int64_t count) {
    const int64_t tiles = (count + TILE - 1) / TILE;
    double *sum = malloc((size_t)(tiles + 1) * sizeof *sum);
    for (int64_t i = 0; i < tiles; i++)
        sum[i] = sum_of_tile(term + i * TILE, count - i * TILE < TILE ? count - i * TILE : TILE);
    const double total = sum_of_parts(sum, tiles);
    free(sum);
    return total;
}

/* ------------------------------------------------------------------ a row -- */

typedef struct scale_and_softmax {
    softmax_scale scale;
    softmax softmax;
} scale_and_softmax;

static scale_and_softmax softmax_of_model(const rows_model *model) {
    scale_and_softmax both;
    const double factor = WIDE_LOG2_E / model->temperature;
    both.scale.factor = factor;
    both.scale.factor_low =
        (__builtin_fma(-factor, model->temperature, WIDE_LOG2_E) + WIDE_LOG2_E_LOW) / model->temperature;
    both.scale.softcap = model->softcap;
    both.scale.per_temperature = 1 / model->temperature;
    both.softmax = softmax_of(&both.scale);
    return both;
}

/* A row's numbers: of each class the capped logit, its slope, u_c and e_c; of each tile the sums. */
typedef struct model_row {
    int64_t tiles;
    real *z, *slope, *u, *e;
    softmax_shift *shift;
    double *others, *leading, *weights, *weighted;
} model_row;

static real *reals(int64_t count) {
    return malloc((size_t)(count + 1) * sizeof(real));
}

static model_row new_row(int64_t classes) {
    const int64_t tiles = (classes + TILE - 1) / TILE;
    return (model_row){tiles,
                       reals(classes),
                       reals(classes),
                       reals(classes),
                       reals(classes),
                       malloc((size_t)(tiles + 1) * sizeof(softmax_shift)),
                       malloc((size_t)(tiles + 1) * sizeof(double)),
                       malloc((size_t)(tiles + 1) * sizeof(double)),
                       malloc((size_t)(tiles + 1) * sizeof(double)),
                       malloc((size_t)(tiles + 1) * sizeof(double))};
}

static void free_row(model_row *row) {
    free(row->z);
    free(row->slope);
    free(row->u);
    free(row->e);
    free(row->shift);
    free(row->others);
    free(row->leading);
    free(row->weights);
    free(row->weighted);
}

static void read_row(const rows_model *model, const softmax *softmax, int64_t index, model_row *row) {
    const real kept = (real)(1 - model->smoothing), share = (real)(model->smoothing / (double)model->classes);
    for (int64_t c = 0; c < model->classes; c++) {
        const real z = (real)model->input[index * model->classes + c];
        const real w = model->class_weight ? (real)model->class_weight[c] : 1;
        row->slope[c] = softmax->softcap != 0 ? softmax_cap_slope(softmax, z) : 1;
        row->z[c] = softmax->softcap != 0 ? softmax->softcap * softmax_tangent(softmax, z) : z;
        row->u[c] =
            model->probabilities ? w * ((real)model->probabilities[index * model->classes + c] * kept + share) : w;
    }
}

static real largest_of(const real *z, int64_t count) {
    real largest = -REAL_INFINITY;
    for (int64_t i = 0; i < count; i++) {
        if (z[i] != z[i])
            return REAL_NAN;
        largest = z[i] > largest ? z[i] : largest;
    }
    return largest + 0; /* -0 is 0 */
}

/* Without a label the classes whose exponential is that of the largest logit are left out, and summed apart. */
static void sum_tile(const scale_and_softmax *scale, int64_t tile, int64_t count, int64_t label, model_row *row) {
    real term[TILE];
    const int64_t first = tile * TILE;
    const softmax_shift shift = softmax_shift_of(&scale->softmax, &scale->scale, largest_of(row->z + first, count));
    row->shift[tile] = shift;
    for (int64_t i = 0; i < count; i++)
        row->e[first + i] = softmax_exponential(&scale->softmax, &shift, row->z[first + i] - shift.anchor);
    const real most = row_most_of_tile(&scale->softmax, &shift);
    double leaders = 0;
    for (int64_t i = 0; i < count; i++) {
        const bool leads = label < 0 && row->e[first + i] == most;
        leaders += leads ? 1 : 0;
        term[i] = leads || first + i == label ? 0 : row->e[first + i];
    }
    row->leading[tile] = leaders * (double)most;
    row->others[tile] = sum_of_tile(term, count);
    row->weights[tile] = sum_of_tile(row->u + first, count);
    for (int64_t i = 0; i < count; i++)
        term[i] = row->u[first + i] == 0 ? 0 : row->u[first + i] * (row->z[first + i] - shift.largest);
    row->weighted[tile] = sum_of_tile(term, count);
}

/* False: the row has no softmax. */
static bool sum_row(const rows_model *model, const scale_and_softmax *scale, int64_t label, bool sums_weights,
                    model_row *row, row_facts *facts) {
    for (int64_t k = 0; k < row->tiles; k++)
        sum_tile(scale, k, model->classes - k * TILE < TILE ? model->classes - k * TILE : TILE, label, row);
    const real largest = largest_of(row->z, model->classes);
    if (!(largest > -REAL_INFINITY && largest < REAL_INFINITY))
        return false;
    const double exponent = softmax_shift_of(&scale->softmax, &scale->scale, largest).exponent;
    for (int64_t k = 0; k < row->tiles; k++) {
        const softmax_tile tile = {row->shift[k].exponent, row->others[k],   row->leading[k],
                                   row->weights[k],        row->weighted[k], row->shift[k].largest};
        row->others[k] = row_part_of_others(&tile, exponent, largest);
        row->leading[k] = row_part_of_leading(&tile, largest);
        row->weighted[k] = row_part_of_weighted(&tile, largest);
    }
    facts->row.largest = (double)largest;
    facts->exponent = exponent;
    facts->row.others = sum_of_parts(row->others, row->tiles);
    facts->row.weights = sums_weights ? sum_of_parts(row->weights, row->tiles) : 0;
    facts->weighted = sums_weights ? sum_of_parts(row->weighted, row->tiles) : 0;
    facts->label_logit = label >= 0 ? row->z[label] : -REAL_INFINITY;
    facts->row.own = sum_of_parts(row->leading, row->tiles);
    if (label >= 0)
        facts->row.own = (double)row->e[label] * wide_exp2(row->shift[label / TILE].exponent - exponent);
    return true;
}

#undef ROW_LOSS
#define ROW_LOSS(name, ...) {#name, name##_row},
static row_function *function_of(const char *name) {
    static const struct {
        const char *name;
        row_function *row;
    } list[] = {
#include "row_losses.def"
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (strcmp(list[i].name, name) == 0)
            return list[i].row;
    return NULL;
}

/* ------------------------------------------------------------------- rows -- */

typedef struct row_scale {
    double weight;      /* the row's */
    double per_divisor; /* one over the divisor */
    real upstream;
} row_scale;

static double stored(real slope, real upstream) {
    const real one = canonical(slope);
    return (double)(upstream != 1 ? canonical(one * upstream) : one);
}

static void write_gradients(rows_model *model, const scale_and_softmax *scale, int64_t index, int64_t label,
                            const row_scale *times, const row_facts *facts, const row_slopes *slopes,
                            const model_row *row) {
    const double common = times->weight * times->per_divisor;
    const row_factors factors = row_factors_of(&facts->row, slopes, common * scale->scale.per_temperature);
    const double above = row_above(&scale->softmax, &scale->scale, &facts->row);
    const bool weighs = model->probabilities || model->smoothing != 0;
    for (int64_t c = 0; c < model->classes; c++) {
        const real f = row_tile_factor(&factors, row->shift[c / TILE].exponent, facts->exponent);
        real slope = weighs ? row->e[c] * f - row->u[c] * factors.of_weights : row->e[c] * f;
        slope = c == label ? factors.own : slope;
        if (scale->softmax.softcap != 0)
            slope = slope * row->slope[c];
        model->gradient[index * model->classes + c] = stored(slope, times->upstream);
        if (!model->probabilities)
            continue;
        const real w = model->class_weight ? (real)model->class_weight[c] : 1;
        const double distance = row_distance(&scale->scale, facts->row.largest, above, (double)row->z[c]);
        model->of_target[index * model->classes + c] =
            stored((real)(distance * (double)w * (common * (1 - model->smoothing))), times->upstream);
    }
}

static void fill(rows_model *model, int64_t index, double number) {
    for (int64_t c = 0; c < model->classes; c++) {
        model->gradient[index * model->classes + c] = number;
        if (model->probabilities)
            model->of_target[index * model->classes + c] = number;
    }
}

static int64_t predict(const rows_model *model, int64_t index) {
    const double *z = model->input + index * model->classes;
    int64_t found = 0;
    for (int64_t c = 0; c < model->classes; c++) {
        if (z[c] != z[c])
            return c;
        if (z[c] > z[found])
            found = c;
    }
    return found;
}

static bool takes_part(const rows_model *model, int64_t index) {
    return !(model->mask && model->mask[index] == 0) && !(model->label && model->label[index] == model->ignore_index);
}

/* The row's value. */
static double run_row(rows_model *model, const scale_and_softmax *scale, int64_t index, const row_scale *times,
                      model_row *row) {
    row_facts facts = {.weight = 1, .classes = (double)model->classes};
    row_slopes slopes = {.value = WIDE_NAN};
    const int64_t label = model->label ? model->label[index] : -1;
    const bool picked = strcmp(model->loss, "nll") == 0;
    if (label >= 0 && model->class_weight)
        facts.weight = model->class_weight[label];
    if (picked) {
        const row_sums sums = {.nll = -model->input[index * model->classes + label], .weight = facts.weight};
        function_of(model->loss)(&sums, model->parameter, &slopes);
        fill(model, index, 0);
        model->gradient[index * model->classes + label] =
            stored((real)(slopes.own * (times->weight * times->per_divisor)), times->upstream);
        return slopes.value;
    }
    read_row(model, &scale->softmax, index, row);
    if (!sum_row(model, scale, label, model->probabilities || model->smoothing != 0, row, &facts)) {
        facts.row = (softmax_row){WIDE_NAN, WIDE_NAN, WIDE_NAN, WIDE_NAN, WIDE_NAN};
        fill(model, index, WIDE_NAN);
    } else {
        const row_sums sums = row_sums_of(&scale->softmax, &scale->scale, &facts);
        function_of(model->loss)(&sums, model->parameter, &slopes);
        write_gradients(model, scale, index, label, times, &facts, &slopes, row);
    }
    model->log_sum_exp[index] = facts.row.lse;
    memcpy(model->state + index * ONEPASS_ROW_STATE, &facts.row, sizeof facts.row);
    return slopes.value;
}

/* What a mean is divided by. */
static double divisor_of(const rows_model *model) {
    real *term = reals(model->rows);
    for (int64_t i = 0; i < model->rows; i++) {
        const double w = model->class_weight && takes_part(model, i) ? model->class_weight[model->label[i]] : 1;
        const double count = model->over_elements ? 1 : w * (model->weight ? model->weight[i] : 1);
        term[i] = takes_part(model, i) ? canonical((real)count) : 0;
    }
    const double sum = sum_of_terms(term, model->rows);
    free(term);
    return sum;
}

void REAL_NAME(rows_model)(rows_model *model) {
    const scale_and_softmax scale = softmax_of_model(model);
    const bool none = model->reduction == ONEPASS_NONE, mean = model->reduction == ONEPASS_MEAN;
    const double divisor = mean ? (model->divisor != 0 ? model->divisor : divisor_of(model)) : 1;
    real *term = reals(model->rows);
    model_row row = new_row(model->classes);
    for (int64_t i = 0; i < model->rows; i++) {
        row_scale times = {model->weight ? model->weight[i] : 1, mean ? 1 / divisor : 1, 1};
        if (model->upstream)
            times.upstream = (real)model->upstream[none ? i : 0];
        model->log_sum_exp[i] = 0;
        model->predicted[i] = -1;
        memset(model->state + i * ONEPASS_ROW_STATE, 0, ONEPASS_ROW_STATE * sizeof *model->state);
        model->values[i] = 0;
        if (takes_part(model, i)) {
            model->values[i] = run_row(model, &scale, i, &times, &row) * times.weight;
            model->predicted[i] = predict(model, i);
        } else {
            fill(model, i, 0);
        }
        term[i] = canonical((real)model->values[i]);
    }
    const double sum = sum_of_terms(term, model->rows);
    model->value = mean ? sum / divisor : sum;
    free_row(&row);
    free(term);
}
