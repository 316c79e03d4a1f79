/*
 * Rows whose classes are shared out: cases drawn from a seed. One call over all classes on the CPU says what is
 * expected; the same, by calls that have some classes each, is left to whoever runs them, on the CPU, on a GPU or
 * thread by thread. Values, states, logarithms and gradients are compared byte by byte. A header of static functions,
 * like check.h.
 */
#ifndef ONEPASS_TESTS_ROW_SHARDS_H
#define ONEPASS_TESTS_ROW_SHARDS_H

#include "cases.h"
#include "check.h"
#include "dtype.h"
#include "row_losses.h"

#include <math.h>
#include <stdbool.h>

/* Where the calls run: memory that both sides see, and what runs a call and waits for it. */
typedef struct shard_place {
    void *(*allocate)(size_t size);
    void (*release)(void *memory);
    onepass_status (*run)(const onepass_call *call, const char *what);
} shard_place;

enum {
    SHARD_MEMORIES = 16,
    SHARD_BEHIND = 2 * ONEPASS_TILE /* elements behind a gradient */
};

typedef struct shard_case {
    const shard_place *place;
    uint64_t chance;
    const char *loss;
    int32_t dtype, value_dtype, label_dtype, reduction;
    int64_t rows, classes, tiles, sums;
    double parameter[ONEPASS_MAX_PARAMETERS];
    int32_t parameters;
    bool classes_first; /* the input is (classes, rows) */
    bool smooth, weighted;
    char text[200];
    char *input, *labels, *weights, *gradient, *upstream; /* of all classes */
    double *tile_sums, *label_logit, *state;
    char *value, *lse;
    void *memory[SHARD_MEMORIES];
    int memories;
} shard_case;

static inline void *shard_memory(shard_case *c, size_t size) {
    void *memory = c->place->allocate(size + 64);
    memset(memory, 0xA5, size + 64);
    c->memory[c->memories++] = memory;
    return memory;
}

static inline double shard_uniform(shard_case *c) {
    return (double)(random_bits(&c->chance) >> 11) * 0x1p-53;
}

static inline double shard_logit(shard_case *c, double spread) {
    double sum = 0;
    for (int i = 0; i < 6; i++)
        sum += shard_uniform(c);
    const int64_t special = random_below(&c->chance, 400);
    return special == 0 ? -INFINITY : special == 1 ? 40 : (sum - 3) * spread;
}

/* --------------------------------------------------------------------- a case -- */

static inline void shard_parameters(shard_case *c) {
    const onepass_loss_info *info = onepass_loss_named(c->loss);
    const double temperature[] = {1, 0.5, 3}, softcap[] = {0, 0, 0, 20};
    c->parameters = info->parameter_count;
    for (int32_t i = 0; i < info->parameter_count; i++) {
        const char *name = info->parameter[i].name;
        c->parameter[i] = info->parameter[i].default_value;
        if (strcmp(name, "label_smoothing") == 0 && c->smooth)
            c->parameter[i] = 0.1;
        if (strcmp(name, "z_loss") == 0 && random_below(&c->chance, 2))
            c->parameter[i] = 1e-3;
        if (strcmp(name, "temperature") == 0)
            c->parameter[i] = temperature[random_below(&c->chance, 3)];
        if (strcmp(name, "softcap") == 0)
            c->parameter[i] = softcap[random_below(&c->chance, 4)];
    }
}

static inline void shard_fill(shard_case *c) {
    const size_t size = dtype_size(c->dtype);
    const double spread = random_below(&c->chance, 3) ? 3 : 40;
    const bool any_nan = random_below(&c->chance, 8) == 0, far = random_below(&c->chance, 6) == 0;
    for (int64_t i = 0; i < c->rows * c->classes; i++)
        store_scalar(c->input + (size_t)i * size, c->dtype, shard_logit(c, spread) + (far ? 3e4 : 0));
    if (any_nan)
        store_scalar(c->input + (size_t)random_below(&c->chance, c->rows * c->classes) * size, c->dtype, NAN);
    for (int64_t i = 0; i < c->rows; i++) {
        const int64_t label = random_below(&c->chance, 5) ? random_below(&c->chance, c->classes) : -100;
        if (c->label_dtype == ONEPASS_I32)
            ((int32_t *)c->labels)[i] = (int32_t)label;
        else
            ((int64_t *)c->labels)[i] = label;
        store_scalar(c->upstream + (size_t)i * size, c->dtype, 0.25 + shard_uniform(c));
    }
    for (int64_t i = 0; i < c->classes; i++)
        store_scalar(c->weights + (size_t)i * size, c->dtype, random_below(&c->chance, 9) ? shard_uniform(c) : 0);
}

static inline void shard_begin(shard_case *c, const shard_place *place, uint64_t seed, bool in_double,
                               int64_t longest) {
    static const int64_t sizes[] = {1, 7, 1000, 1024, 1028, 2048, 3001, 5000, 9001};
    static const int32_t dtypes[] = {ONEPASS_F32, ONEPASS_BF16, ONEPASS_F16};
    *c = (shard_case){.place = place, .chance = seed * 7919 + in_double};
    c->loss = label_loss_at(twice_the_first(random_below(&c->chance, label_loss_count() + 1)));
    c->dtype = in_double ? ONEPASS_F64 : dtypes[random_below(&c->chance, 3)];
    c->value_dtype = in_double || random_below(&c->chance, 2) ? c->dtype : ONEPASS_F32;
    c->label_dtype = random_below(&c->chance, 3) ? ONEPASS_I64 : ONEPASS_I32;
    c->reduction = (int32_t)random_below(&c->chance, 3);
    c->classes = longest ? longest : sizes[random_below(&c->chance, 9)];
    c->rows = longest ? 1 : 1 + random_below(&c->chance, 9);
    c->classes_first = random_below(&c->chance, 3) == 0;
    c->smooth = strcmp(c->loss, "cross_entropy") == 0 && random_below(&c->chance, 3);
    c->weighted = random_below(&c->chance, 3) == 0;
    c->sums = c->smooth ? ONEPASS_SMOOTH_TILE_SUMS : ONEPASS_TILE_SUMS;
    c->tiles = (c->classes + ONEPASS_TILE - 1) / ONEPASS_TILE;
    shard_parameters(c);
    snprintf(c->text, sizeof c->text, "seed %llu, %s, type %d, %lld x %lld%s%s%s, reduction %d",
             (unsigned long long)seed, c->loss, c->dtype, (long long)c->rows, (long long)c->classes,
             c->classes_first ? ", classes first" : "", c->smooth ? ", smooth" : "", c->weighted ? ", weighted" : "",
             c->reduction);
    const size_t rows = (size_t)c->rows, classes = (size_t)c->classes;
    c->input = shard_memory(c, rows * classes * 8);
    c->gradient = shard_memory(c, rows * classes * 8);
    c->labels = shard_memory(c, rows * 8);
    c->weights = shard_memory(c, classes * 8);
    c->upstream = shard_memory(c, rows * 8);
    c->value = shard_memory(c, rows * 8);
    c->lse = shard_memory(c, rows * 8);
    c->state = shard_memory(c, rows * ONEPASS_ROW_STATE * 8);
    c->tile_sums = shard_memory(c, rows * (size_t)(c->tiles * c->sums) * 8);
    c->label_logit = shard_memory(c, rows * 8);
    shard_fill(c);
}

static inline void shard_end(shard_case *c) {
    for (int i = 0; i < c->memories; i++)
        c->place->release(c->memory[i]);
}

/* --------------------------------------------------------------------- a call -- */

/* A call with some of the classes, and the tensors it is made of. */
typedef struct shard_call {
    onepass_call call;
    onepass_tensor input, labels, weights, gradient, upstream, value, lse, state, tile_sums, label_logit;
    int64_t shape[2], strides[2], own_strides[2], rows[1], classes[1], states[2], tiles[3];
} shard_call;

static inline void shard_call_of(const shard_case *c, int64_t first, int64_t end, shard_call *s) {
    const int axis = c->classes_first ? 0 : 1;
    const int64_t here = first * (c->classes_first ? c->rows : 1) * (int64_t)dtype_size(c->dtype);
    *s = (shard_call){.call = ONEPASS_CALL_INIT};
    s->shape[axis] = end - first;
    s->shape[1 - axis] = c->rows;
    s->strides[axis] = c->classes_first ? c->rows : 1;
    s->strides[1 - axis] = c->classes_first ? 1 : c->classes;
    s->rows[0] = c->rows;
    s->classes[0] = c->classes;
    s->states[0] = c->rows;
    s->states[1] = ONEPASS_ROW_STATE;
    s->tiles[0] = c->rows;
    s->tiles[1] = c->sums;
    s->tiles[2] = (end - first + ONEPASS_TILE - 1) / ONEPASS_TILE;
    s->input = (onepass_tensor){c->input + here, c->dtype, 2, s->shape, s->strides};
    s->gradient = (onepass_tensor){c->gradient + here, c->dtype, 2, s->shape, s->strides};
    s->labels = (onepass_tensor){c->labels, c->label_dtype, 1, s->rows, NULL};
    s->weights = (onepass_tensor){c->weights, c->dtype, 1, s->classes, NULL};
    s->upstream = (onepass_tensor){c->upstream, c->dtype, c->reduction == ONEPASS_NONE, s->rows, NULL};
    s->value = (onepass_tensor){c->value, c->value_dtype, c->reduction == ONEPASS_NONE, s->rows, NULL};
    s->lse = (onepass_tensor){c->lse, c->dtype, 1, s->rows, NULL};
    s->state = (onepass_tensor){c->state, ONEPASS_F64, 2, s->states, NULL};
    s->tile_sums = (onepass_tensor){c->tile_sums, ONEPASS_F64, 3, s->tiles, NULL};
    s->label_logit = (onepass_tensor){c->label_logit, ONEPASS_F64, 1, s->rows, NULL};
    s->call.loss = c->loss;
    s->call.reduction = c->reduction;
    s->call.parameter_count = c->parameters;
    memcpy(s->call.parameter, c->parameter, sizeof c->parameter);
    s->call.axis = axis + 1;
    s->call.operand[0] = &s->input;
    s->call.operand[1] = &s->labels;
    s->call.operand[2] = c->weighted ? &s->weights : NULL;
}

/* -------------------------------------------------------------------- in pieces -- */

/* The sums of some tiles go to their places among those of all. */
static inline bool shard_sums(shard_case *c, int64_t first_tile, int64_t end_tile) {
    shard_call s;
    const int64_t end = end_tile * ONEPASS_TILE < c->classes ? end_tile * ONEPASS_TILE : c->classes;
    const int64_t tiles = end_tile - first_tile;
    shard_call_of(c, first_tile * ONEPASS_TILE, end, &s);
    double *sums = c->place->allocate((size_t)(c->rows * tiles * c->sums) * 8);
    double *logits = c->place->allocate((size_t)c->rows * 8);
    s.tile_sums.data = sums;
    s.label_logit.data = logits;
    s.call.tile_sums = &s.tile_sums;
    s.call.label_logit = &s.label_logit;
    s.call.first_class = first_tile * ONEPASS_TILE;
    s.call.all_classes = c->classes;
    const bool good = CHECK_OK(c->place->run(&s.call, c->text), c->text);
    for (int64_t r = 0; r < c->rows && good; r++) {
        for (int64_t k = 0; k < c->sums; k++)
            memcpy(c->tile_sums + (r * c->sums + k) * c->tiles + first_tile, sums + (r * c->sums + k) * tiles,
                   (size_t)tiles * 8);
        if (!(logits[r] <= c->label_logit[r])) /* a NaN too */
            c->label_logit[r] = logits[r];
    }
    c->place->release(sums);
    c->place->release(logits);
    return good;
}

static inline bool shard_value(shard_case *c) {
    shard_call s;
    shard_call_of(c, 0, 0, &s);
    s.tiles[2] = c->tiles;
    s.input.data = NULL;
    s.call.all_classes = c->classes;
    s.call.tile_sums = &s.tile_sums;
    s.call.label_logit = &s.label_logit;
    s.call.value = &s.value;
    s.call.log_sum_exp = &s.lse;
    s.call.row_state = &s.state;
    return CHECK_OK(c->place->run(&s.call, c->text), c->text);
}

/* A gradient in memory of its own, with some behind that nobody may touch, goes to its place among all. */
static inline void shard_place_gradient(shard_case *c, const shard_call *s, int64_t first, const unsigned char *own) {
    const int axis = c->classes_first ? 0 : 1;
    const size_t size = dtype_size(c->dtype);
    const int64_t classes = s->shape[axis];
    for (int64_t r = 0; r < c->rows; r++)
        for (int64_t i = 0; i < classes; i++)
            memcpy(c->gradient + (size_t)(r * s->strides[1 - axis] + (first + i) * s->strides[axis]) * size,
                   own + (size_t)(r * s->own_strides[1 - axis] + i * s->own_strides[axis]) * size, size);
    bool clean = true;
    for (size_t i = (size_t)(c->rows * classes) * size; i < (size_t)(c->rows * classes + SHARD_BEHIND) * size; i++)
        clean &= own[i] == 0xA5;
    CHECK(clean, "%s: a gradient of %lld classes wrote beyond its memory", c->text, (long long)classes);
}

/* Of classes that begin with a tile, or are within one; torn tiles are told their largest logits. */
static inline bool shard_gradient(shard_case *c, int64_t first, int64_t end) {
    shard_call s;
    shard_call_of(c, first, end, &s);
    const int64_t tile = first / ONEPASS_TILE, tiles = s.tiles[2];
    const bool torn = first % ONEPASS_TILE != 0 || (end % ONEPASS_TILE != 0 && end != c->classes);
    double *sums = c->place->allocate((size_t)(c->rows * tiles * c->sums) * 8);
    const size_t bytes = (size_t)(c->rows * (end - first) + SHARD_BEHIND) * dtype_size(c->dtype);
    unsigned char *own = c->place->allocate(bytes);
    memset(own, 0xA5, bytes);
    s.own_strides[0] = c->classes_first ? c->rows : end - first;
    s.own_strides[1] = 1;
    s.gradient.data = own;
    s.gradient.strides = s.own_strides;
    for (int64_t r = 0; r < c->rows * c->sums; r++)
        memcpy(sums + r * tiles, c->tile_sums + r * c->tiles + tile, (size_t)tiles * 8);
    s.tile_sums.data = sums;
    s.call.tile_sums = torn ? &s.tile_sums : NULL;
    s.call.label_logit = &s.label_logit;
    s.call.row_state = &s.state;
    s.call.upstream = &s.upstream;
    s.call.gradient[0] = &s.gradient;
    s.call.first_class = first;
    s.call.all_classes = c->classes;
    const bool good = CHECK_OK(c->place->run(&s.call, c->text), c->text);
    if (good)
        shard_place_gradient(c, &s, first, own);
    c->place->release(sums);
    c->place->release(own);
    return good;
}

static inline bool shard_all(shard_case *c) {
    bool good = true;
    for (int64_t r = 0; r < c->rows; r++)
        c->label_logit[r] = -INFINITY;
    for (int64_t tile = 0; tile < c->tiles && good;) {
        const int64_t end = tile + 1 + random_below(&c->chance, c->tiles - tile);
        good = shard_sums(c, tile, end);
        tile = end;
    }
    good = good && shard_value(c);
    for (int64_t first = 0; first < c->classes && good;) {
        int64_t end = first + 1 + random_below(&c->chance, c->classes - first);
        const int64_t border = first / ONEPASS_TILE * ONEPASS_TILE + ONEPASS_TILE;
        if (first % ONEPASS_TILE && end > border)
            end = border;
        good = shard_gradient(c, first, end);
        first = end;
    }
    return good;
}

/* ------------------------------------------------------------------ comparing -- */

static inline void *shard_copy(const void *memory, size_t size) {
    void *copy = malloc(size);
    memcpy(copy, memory, size);
    return copy;
}

static inline void shard_check(const shard_place *place, uint64_t seed, bool in_double, int64_t longest) {
    shard_case c;
    shard_call whole;
    shard_begin(&c, place, seed, in_double, longest);
    const size_t rows = (size_t)c.rows, numbers = rows * (size_t)c.classes * 8 + 64;
    shard_call_of(&c, 0, c.classes, &whole);
    whole.call.value = &whole.value;
    whole.call.log_sum_exp = &whole.lse;
    whole.call.row_state = &whole.state;
    whole.call.upstream = &whole.upstream;
    whole.call.gradient[0] = &whole.gradient;
    if (CHECK_OK(onepass_run(&whole.call), c.text)) {
        void *gradient = shard_copy(c.gradient, numbers), *value = shard_copy(c.value, rows * 8 + 64);
        void *lse = shard_copy(c.lse, rows * 8 + 64), *state = shard_copy(c.state, rows * ONEPASS_ROW_STATE * 8 + 64);
        memset(c.gradient, 0xA5, numbers);
        memset(c.value, 0xA5, rows * 8 + 64);
        memset(c.lse, 0xA5, rows * 8 + 64);
        memset(c.state, 0xA5, rows * ONEPASS_ROW_STATE * 8 + 64);
        if (shard_all(&c)) {
            CHECK(memcmp(gradient, c.gradient, numbers) == 0, "%s: other gradients", c.text);
            CHECK(memcmp(value, c.value, rows * 8 + 64) == 0, "%s: other values", c.text);
            CHECK(memcmp(lse, c.lse, rows * 8 + 64) == 0, "%s: other logarithms", c.text);
            CHECK(memcmp(state, c.state, rows * ONEPASS_ROW_STATE * 8 + 64) == 0, "%s: other states", c.text);
        }
        free(gradient);
        free(value);
        free(lse);
        free(state);
    }
    shard_end(&c);
}

#endif
