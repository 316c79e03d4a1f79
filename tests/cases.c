/*
 * The list of cases: the sweeps that make it. Each sweep varies one axis or an
 * important pair of axes around a plain case, since the full product would be some
 * ten million cases. Losses differ in a few formulas, which every element goes
 * through, and share all else: so a few have all cases of each sweep, and the
 * others a sample, the same each time.
 */
#include "cases.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --------------------------------------------------------------- sweeps -- */

int case_loss_is_swept(const char *loss) {
    static const char *const swept[] = {
        "mse", "smooth_l1", "hinge", /* no parameter, one, and a slope that is no function of the difference */
    };
    for (size_t i = 0; i < sizeof swept / sizeof swept[0]; i++) {
        if (strcmp(loss, swept[i]) == 0) {
            return 1;
        }
    }
    return 0;
}

typedef struct list {
    test_case *cases;
    size_t count;
    size_t room;
    int64_t one_of; /* so many cases of a sweep makes the sample */
    int of_engine;  /* where losses have no say, and one of them has all cases */
    uint64_t seed;  /* of the next case */
} list;

static uint64_t hash_text(const char *text) {
    uint64_t hash = 1;
    for (; *text; text++) {
        hash = hash * 31 + (unsigned char)*text;
    }
    return hash;
}

static int operands_of(const char *loss) {
    return oracle_loss_named(loss)->operand_count;
}

/* The losses of three operands are few, and have kernels and loops of their own. */
static int is_in_sample(const list *all, const test_case *c) {
    const int64_t one_of = operands_of(c->loss) > ONEPASS_THIRD ? (all->one_of + 2) / 3 : all->one_of;
    uint64_t state = c->seed + hash_text(c->loss) * UINT64_C(0x100000001b3);
    const int has_all = all->of_engine ? strcmp(c->loss, "mse") == 0 : case_loss_is_swept(c->loss);
    return has_all || random_below(&state, one_of) == 0;
}

/* Seeds count within a sweep of a loss, so a new loss or sweep leaves the data of the others alone. */
static void add(list *all, test_case c) {
    if (all->count == all->room) {
        all->room = all->room ? 2 * all->room : 1024;
        all->cases = realloc(all->cases, all->room * sizeof *all->cases);
        if (!all->cases) {
            abort();
        }
    }
    c.seed = all->seed++;
    if (is_in_sample(all, &c)) {
        all->cases[all->count++] = c;
    }
}

/* The plain case that every sweep starts from. 7 rows of 191: a full tile and a
 * part, rows that end inside a line and no length that is a power of two. */
static test_case plain(const char *group, const char *loss) {
    test_case c = case_dense(group, loss, ONEPASS_F32, 191);
    c.wanted = WANT_ALL;
    c.rows = 7;
    return c;
}

static void of_dtype(test_case *c, int32_t dtype) {
    c->prediction = c->target = c->gradient = c->value = c->upstream_dtype = dtype;
}

/* All that a loss has, as a set. */
static int32_t all_of(const char *loss) {
    return (WANT_PREDICTION << operands_of(loss)) - 1;
}

static void sweep_sizes(list *all, const char *loss) {
    test_case c = plain("sizes", loss);
    c.rows = 1;
    for (int32_t dtype = ONEPASS_F16; dtype <= ONEPASS_F64; dtype++) {
        of_dtype(&c, dtype);
        c.value = ONEPASS_F64; /* in which no bit of the sum is rounded away */
        c.layout = dtype % 2 ? LAYOUT_DENSE : LAYOUT_UNALIGNED;
        /* Empty, one, every remainder of any vector length, and both sides of one and two lines. */
        for (c.columns = 0; c.columns <= 264; c.columns++) {
            add(all, c);
        }
        /* Both sides of every further line of a tile, and of the tile. */
        for (int64_t row = 3; row <= 9; row++) {
            for (c.columns = row * 128 - 1; c.columns <= row * 128 + 1; c.columns++) {
                add(all, c);
            }
        }
        /* Runs of 2, 3, 5, 8, 16, 31, 33 and 64 tiles: whole and broken aligned trees, with a part
         * of one element, of a line and a bit, and all but one element. */
        static const int64_t tiles[] = {2, 3, 5, 8, 16, 31, 33, 64};
        static const int64_t around[] = {-129, -128, -127, -1, 0, 1, 127, 128, 129};
        for (size_t i = 0; i < sizeof tiles / sizeof tiles[0]; i++) {
            for (size_t j = 0; j < sizeof around / sizeof around[0]; j++) {
                c.columns = tiles[i] * ONEPASS_TILE + around[j];
                /* The long ones in both compute types: what is particular to 16 bits shows in the short ones. */
                if (tiles[i] <= 3 || dtype >= ONEPASS_F32) {
                    add(all, c);
                }
            }
        }
    }
}

/* Every pair of operand types with every gradient type; the value's type and the reduction go around. */
static void sweep_types(list *all, const char *loss) {
    test_case c = plain("types", loss);
    int turn = 0;
    for (c.prediction = ONEPASS_F16; c.prediction <= ONEPASS_F64; c.prediction++) {
        for (c.target = ONEPASS_F16; c.target <= ONEPASS_F64; c.target++) {
            for (c.gradient = ONEPASS_F16; c.gradient <= ONEPASS_F64; c.gradient++) {
                for (c.reduction = ONEPASS_MEAN; c.reduction <= ONEPASS_NONE; c.reduction++) {
                    c.value = ONEPASS_F16 + (c.gradient + turn / 3) % 4;
                    c.upstream = turn % 2 ? UPSTREAM_OTHER : UPSTREAM_ABSENT;
                    c.upstream_dtype = ONEPASS_F16 + turn % 4;
                    turn++;
                    add(all, c);
                }
            }
        }
    }
}

/* Every reduction with every set of outputs and every kind of upstream gradient. */
static void sweep_outputs(list *all, const char *loss) {
    static const int32_t dtypes[] = {ONEPASS_F32, ONEPASS_F64, ONEPASS_F16};
    test_case c = plain("outputs", loss);
    for (int i = 0; i < 3; i++) {
        of_dtype(&c, dtypes[i]);
        for (c.reduction = ONEPASS_MEAN; c.reduction <= ONEPASS_NONE; c.reduction++) {
            for (c.wanted = 1; c.wanted <= all_of(loss); c.wanted++) {
                for (c.upstream = UPSTREAM_ABSENT; c.upstream <= UPSTREAM_TENSOR; c.upstream++) {
                    c.upstream_dtype = c.wanted == all_of(loss) ? ONEPASS_F64 : dtypes[i];
                    add(all, c);
                }
            }
        }
    }
}

static void sweep_layouts(list *all, const char *loss) {
    static const int64_t shapes[][2] = {
        {7, 191},   /* a tile begins and ends inside rows */
        {67, 33},   /* rows shorter than a line: a tile holds many */
        {3, 1024},  /* rows that are tiles */
        {2, 1500},  /* rows longer than a tile: a tile lies within a row or crosses one */
        {3, 5000},  /* rows of several tiles: what is constant along a row is so for whole tiles, then changes */
        {4, 2048},  /* the same, but the change comes between two whole tiles */
        {2, 20000}, /* rows of some twenty tiles, more than an engine takes at a time */
        {300, 1},   /* a column: the last dimension has nothing to run along */
        {1, 300},   /* a row: the first one has not */
        {0, 5},     /* no rows, */
        {5, 0},     /* and rows of no length */
    };
    static const int32_t pairs[][2] = {{ONEPASS_F32, ONEPASS_F32},
                                       {ONEPASS_F16, ONEPASS_F32},
                                       {ONEPASS_F64, ONEPASS_F64},
                                       {ONEPASS_BF16, ONEPASS_BF16}};
    test_case c = plain("layouts", loss);
    for (c.layout = 0; c.layout < case_layout_count(); c.layout++) {
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
            c.rows = shapes[i][0];
            c.columns = shapes[i][1];
            if (c.columns > 10000 && case_layout_rank(c.layout) == 4) {
                continue; /* six times as long, to show nothing more */
            }
            c.data = c.columns > 10000 ? DATA_UNIFORM : DATA_NORMAL; /* the quicker to make */
            c.prediction = c.gradient = c.value = pairs[i % 4][0];
            c.target = pairs[i % 4][1];
            c.reduction = (int32_t)(i + (size_t)c.layout) % 3;
            c.upstream = UPSTREAM_TENSOR;
            c.threads = c.rows == 2 ? 3 : 0;
            add(all, c);
        }
        c.threads = 0;
        /* At the plain shape, every pair of types, with the sum and with a value an element. */
        c.rows = 7;
        c.columns = 191;
        c.upstream = UPSTREAM_ABSENT;
        for (int i = 0; i < 4; i++) {
            c.prediction = c.gradient = c.value = pairs[i][0];
            c.target = pairs[i][1];
            c.reduction = ONEPASS_NONE;
            add(all, c);
            c.reduction = ONEPASS_SUM;
            add(all, c);
        }
        /* Each output alone, since a layout may take another path without the others. */
        for (c.wanted = 1; c.wanted <= all_of(loss); c.wanted *= 2) {
            c.prediction = c.target = c.gradient = ONEPASS_F32;
            c.reduction = ONEPASS_MEAN;
            add(all, c);
        }
        c.wanted = WANT_ALL;
    }
}

/* Whether a loss takes it for its parameter of that index. */
static int takes(const onepass_loss_info *info, int which, double parameter) {
    if (!info || which >= info->parameter_count) {
        return 0;
    }
    const onepass_parameter_info *known = &info->parameter[which];
    const int beyond = parameter < known->minimum || parameter > known->maximum;
    const int at_end = (known->minimum_excluded && parameter == known->minimum) ||
                       (known->maximum_excluded && parameter == known->maximum);
    return parameter == parameter && !beyond && !at_end;
}

/* Every distribution with every type and many a first parameter. */
static void sweep_data(list *all, const char *loss) {
    /* 0.3 is no float; 1e-40 is denormal in float; 1e-50 is 0 in float, 1e50 infinite. */
    static const double parameters[] = {0, 0.3, 1, 2.5, 1e-40, 1e-50, 1e50};
    const onepass_loss_info *info = onepass_loss_named(loss);
    test_case c = plain("data", loss);
    for (c.data = 0; c.data < DATA_COUNT; c.data++) {
        for (int32_t dtype = ONEPASS_F16; dtype <= ONEPASS_F64; dtype++) {
            of_dtype(&c, dtype);
            for (int i = -1; i < (int)(sizeof parameters / sizeof parameters[0]); i++) {
                c.parameter_count = i >= 0;
                c.parameter[0] = i >= 0 ? parameters[i] : 0;
                if (i >= 0 && !takes(info, 0, c.parameter[0])) {
                    continue;
                }
                c.reduction = ONEPASS_NONE;
                c.upstream = UPSTREAM_TENSOR;
                add(all, c);
                c.reduction = ONEPASS_MEAN;
                c.upstream = UPSTREAM_OTHER;
                add(all, c);
            }
        }
    }
    /* NaN, infinity and kinks in every position of a loop's remainder: compilers take the sign
     * of a NaN to be free, and treat it differently in vector and scalar code. */
    c = plain("data", loss);
    c.rows = 1;
    for (c.data = DATA_SPECIAL; c.data <= DATA_KINK; c.data++) {
        for (int32_t dtype = ONEPASS_F16; dtype <= ONEPASS_F64; dtype++) {
            of_dtype(&c, dtype);
            for (c.columns = 1; c.columns <= 48; c.columns++) {
                c.reduction = (int32_t)c.columns % 3;
                c.upstream = (int32_t)c.columns / 3 % 4;
                add(all, c);
            }
        }
    }
}

/* What else may be said of a call: a divisor (tiny and huge ones too), a number of threads. */
static void sweep_settings(list *all, const char *loss) {
    /* For 0.001 and 2^24 + 1, 1 over the divisor's float is not the float of 1 over the divisor. */
    static const double divisors[] = {1, 3, 0.001, 16777217, 1e-30, 1e30, 1e300};
    test_case c = plain("settings", loss);
    for (size_t i = 0; i < sizeof divisors / sizeof divisors[0]; i++) {
        c.divisor = divisors[i];
        for (int32_t dtype = ONEPASS_F16; dtype <= ONEPASS_F64; dtype++) {
            of_dtype(&c, dtype);
            c.reduction = ONEPASS_MEAN;
            add(all, c);
        }
    }
    c = plain("settings", loss);
    /* 98 tiles and a part: enough that threads have something to share. */
    c.rows = 1;
    c.columns = 98 * ONEPASS_TILE + 77;
    for (c.threads = 1; c.threads <= 5; c.threads++) {
        c.reduction = c.threads % 3;
        add(all, c);
    }
}

/* Every layout of a weight with the reductions and the outputs that may take another path; types go around. */
static void sweep_weight_layouts(list *all, const char *loss) {
    static const int64_t shapes[][2] = {{7, 191}, {3, 1024}, {2, 1500}, {4, 2048}, {0, 5}};
    static const int32_t wanted[] = {WANT_VALUE, WANT_PREDICTION, WANT_VALUE | WANT_PREDICTION, WANT_ALL};
    test_case c = plain("weight layouts", loss);
    int turn = 0;
    c.layout = case_layout_named("dense, strides given");
    for (c.weight = WEIGHT_DENSE; c.weight < WEIGHT_COUNT; c.weight++) {
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
            c.rows = shapes[i][0];
            c.columns = shapes[i][1];
            for (c.reduction = ONEPASS_MEAN; c.reduction <= ONEPASS_NONE; c.reduction++, turn++) {
                of_dtype(&c, turn % 4 == 3 ? ONEPASS_F64 : ONEPASS_F32);
                c.weight_dtype = ONEPASS_F16 + turn / 2 % 4;
                c.wanted = wanted[turn % 4];
                c.upstream = turn / 3 % 4;
                add(all, c);
            }
        }
    }
    /* Every layout of the operands, in-place gradients among them, with a weight that lies otherwise. */
    for (c.layout = 0; c.layout < case_layout_count(); c.layout++) {
        for (int i = 0; i < 3; i++, turn++) {
            c.rows = shapes[i][0];
            c.columns = shapes[i][1];
            of_dtype(&c, i == 1 ? ONEPASS_F16 : i == 2 ? ONEPASS_F64 : ONEPASS_F32);
            c.weight = WEIGHT_DENSE + turn % (WEIGHT_COUNT - WEIGHT_DENSE);
            c.weight_dtype = i == 1 ? ONEPASS_BF16 : ONEPASS_F32;
            c.reduction = turn % 4 == 3 ? ONEPASS_MEAN : turn % 4;
            c.wanted = WANT_ALL;
            c.upstream = turn / 2 % 4;
            add(all, c);
        }
    }
}

/* Every type of a weight with every type of the operands, and what it is made of with what they are made of. */
static void sweep_weights(list *all, const char *loss) {
    test_case c = plain("weights", loss);
    int turn = 0;
    for (c.weight_dtype = ONEPASS_F16; c.weight_dtype <= ONEPASS_F64; c.weight_dtype++) {
        for (c.prediction = ONEPASS_F16; c.prediction <= ONEPASS_F64; c.prediction++) {
            for (c.reduction = ONEPASS_MEAN; c.reduction <= ONEPASS_NONE; c.reduction++, turn++) {
                c.weight = WEIGHT_DENSE + turn % 3;
                c.target = turn % 2 ? ONEPASS_F32 : c.prediction;
                c.gradient = ONEPASS_F16 + turn % 4;
                c.value = ONEPASS_F16 + turn / 2 % 4;
                c.upstream = turn / 3 % 4;
                c.upstream_dtype = ONEPASS_F16 + turn / 4 % 4;
                add(all, c);
            }
        }
    }
    static const int32_t data[] = {DATA_NORMAL, DATA_WIDE, DATA_SPECIAL, DATA_KINK, DATA_HUGE, DATA_TINY};
    for (c.weights = 0; c.weights < WEIGHTS_COUNT; c.weights++) {
        for (size_t i = 0; i < sizeof data / sizeof data[0]; i++) {
            for (c.reduction = ONEPASS_MEAN; c.reduction <= ONEPASS_NONE; c.reduction++, turn++) {
                c.data = data[i];
                of_dtype(&c, turn % 3 ? ONEPASS_F32 : ONEPASS_F64);
                c.value = ONEPASS_F64;
                c.weight = WEIGHT_DENSE;
                c.weight_dtype = turn % 5 ? c.prediction : ONEPASS_F16;
                c.upstream = turn / 3 % 4;
                add(all, c);
            }
        }
    }
    /* A divisor of the call's own, which comes before the sum of the weights; 0.001 has no exact reciprocal. */
    c = plain("weights", loss);
    c.weight = WEIGHT_DENSE;
    for (c.weight_dtype = ONEPASS_F32; c.weight_dtype <= ONEPASS_F64; c.weight_dtype++) {
        for (c.wanted = 1; c.wanted <= all_of(loss); c.wanted++) {
            c.divisor = c.wanted % 2 ? 0.001 : 1024;
            add(all, c);
        }
    }
}

/* The sum of the weights has the order of any sum. */
static void sweep_weight_sizes(list *all, const char *loss) {
    static const int64_t sizes[] = {0,
                                    1,
                                    2,
                                    3,
                                    4,
                                    5,
                                    7,
                                    8,
                                    15,
                                    16,
                                    17,
                                    31,
                                    32,
                                    33,
                                    63,
                                    127,
                                    128,
                                    129,
                                    1023,
                                    1024,
                                    1025,
                                    2047,
                                    2048,
                                    2049,
                                    3077,
                                    4096,
                                    5121,
                                    8192,
                                    9 * 1024 + 1,
                                    31 * 1024 + 1,
                                    33 * 1024 - 1,
                                    64 * 1024,
                                    98 * 1024 + 77};
    test_case c = plain("weight sizes", loss);
    c.rows = 1;
    c.value = ONEPASS_F64;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        c.columns = sizes[i];
        for (int turn = 0; turn < 3; turn++) {
            of_dtype(&c, turn == 2 ? ONEPASS_F64 : ONEPASS_F32);
            c.value = ONEPASS_F64;
            c.weight = turn == 1 ? WEIGHT_UNALIGNED : WEIGHT_DENSE;
            c.weight_dtype = turn == 1 ? ONEPASS_F16 : c.prediction;
            c.weights = turn == 0 ? WEIGHTS_WIDE : WEIGHTS_POSITIVE;
            c.wanted = i % 2 ? WANT_VALUE : WANT_VALUE | WANT_PREDICTION;
            c.reduction = i % 5 == 4 ? ONEPASS_SUM : ONEPASS_MEAN;
            c.threads = (int32_t)i % 4;
            add(all, c);
        }
    }
}

/* Each parameter at the ends of what it may be, and next to them. */
static void sweep_parameters(list *all, const char *loss) {
    const onepass_loss_info *info = onepass_loss_named(loss);
    static const int32_t data[] = {DATA_NORMAL, DATA_KINK, DATA_WIDE, DATA_SPECIAL};
    test_case c = plain("parameters", loss);
    int turn = 0;
    for (int which = 0; info && which < info->parameter_count; which++) {
        const onepass_parameter_info *known = &info->parameter[which];
        const double values[] = {known->default_value,
                                 known->minimum,
                                 nextafter(known->minimum, known->maximum),
                                 -1,
                                 0.75,
                                 known->default_value * 3,
                                 1e6,
                                 nextafter(known->maximum, known->minimum),
                                 -0.0,
                                 known->maximum};
        oracle_parameters(oracle_loss_named(loss), 0, NULL, c.parameter);
        c.parameter_count = which + 1;
        for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
            c.parameter[which] = values[i];
            for (size_t j = 0; j < sizeof data / sizeof data[0] && takes(info, which, values[i]); j++, turn++) {
                c.data = data[j];
                of_dtype(&c, ONEPASS_F16 + turn % 4);
                c.reduction = turn % 5 == 4 ? ONEPASS_MEAN : ONEPASS_NONE;
                c.upstream = turn / 4 % 4;
                add(all, c);
            }
        }
    }
}

/* A third operand: how it lies, its type beside the others', and the gradients that it makes possible. */
static void sweep_third(list *all, const char *loss) {
    static const int64_t shapes[][2] = {{7, 191}, {3, 1024}, {2, 1500}, {4, 2048}, {5, 0}};
    test_case c = plain("third", loss);
    int turn = 0;
    if (operands_of(loss) <= ONEPASS_THIRD) {
        return;
    }
    c.layout = case_layout_named("dense, strides given");
    for (c.third = WEIGHT_DENSE; c.third < WEIGHT_COUNT; c.third++) {
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
            c.rows = shapes[i][0];
            c.columns = shapes[i][1];
            for (c.reduction = ONEPASS_MEAN; c.reduction <= ONEPASS_NONE; c.reduction++, turn++) {
                of_dtype(&c, turn % 4 == 3 ? ONEPASS_F64 : ONEPASS_F32);
                c.third_dtype = ONEPASS_F16 + turn / 2 % 4;
                c.wanted = 1 + turn % WANT_ALL;
                c.upstream = turn / 3 % 4;
                c.weight = turn % 7 == 6 ? WEIGHT_DENSE : WEIGHT_ABSENT;
                c.weight_dtype = ONEPASS_F32;
                add(all, c);
            }
        }
    }
    /* Every layout of the others, in-place gradients among them, with a third operand that lies as the target does or
     * otherwise. */
    c.weight = WEIGHT_ABSENT;
    for (c.layout = 0; c.layout < case_layout_count(); c.layout++) {
        for (int i = 0; i < 4; i++, turn++) {
            c.rows = shapes[i][0];
            c.columns = shapes[i][1];
            of_dtype(&c, i == 1 ? ONEPASS_F16 : i == 2 ? ONEPASS_F64 : ONEPASS_F32);
            c.third = turn % 3 ? turn % WEIGHT_COUNT : WEIGHT_ABSENT;
            c.third_dtype = i == 3 ? ONEPASS_BF16 : c.target;
            c.reduction = turn % 4;
            c.wanted = turn % 2 ? WANT_ALL : 1 + turn % WANT_ALL;
            c.upstream = turn / 2 % 4;
            add(all, c);
        }
    }
    /* Every three types. */
    c = plain("third", loss);
    for (c.prediction = ONEPASS_F16; c.prediction <= ONEPASS_F64; c.prediction++) {
        for (c.target = ONEPASS_F16; c.target <= ONEPASS_F64; c.target++) {
            for (c.third_dtype = ONEPASS_F16; c.third_dtype <= ONEPASS_F64; c.third_dtype++, turn++) {
                c.gradient = ONEPASS_F16 + turn % 4;
                c.value = ONEPASS_F16 + turn / 4 % 4;
                c.reduction = turn % 3;
                add(all, c);
            }
        }
    }
}

/* Every layout of a mask with the reductions and the outputs that may take another path, with and without a weight. */
static void sweep_mask_layouts(list *all, const char *loss) {
    static const int64_t shapes[][2] = {{7, 191}, {3, 1024}, {2, 1500}, {4, 2048}, {0, 5}};
    static const int32_t wanted[] = {WANT_VALUE, WANT_PREDICTION, WANT_VALUE | WANT_PREDICTION, WANT_ALL};
    test_case c = plain("mask layouts", loss);
    int turn = 0;
    c.layout = case_layout_named("dense, strides given");
    for (c.mask = WEIGHT_DENSE; c.mask < WEIGHT_COUNT; c.mask++) {
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
            c.rows = shapes[i][0];
            c.columns = shapes[i][1];
            for (c.reduction = ONEPASS_MEAN; c.reduction <= ONEPASS_BATCHMEAN; c.reduction++, turn++) {
                of_dtype(&c, turn % 5 == 3 ? ONEPASS_F64 : turn % 5 == 4 ? ONEPASS_F16 : ONEPASS_F32);
                c.weight = turn % 3 ? WEIGHT_ABSENT : WEIGHT_DENSE + turn / 3 % (WEIGHT_COUNT - WEIGHT_DENSE);
                c.weight_dtype = ONEPASS_F16 + turn / 2 % 4;
                c.wanted = wanted[turn / 4 % 4];
                c.upstream = turn / 3 % 4;
                c.masks = turn % 2 ? MASKS_OVER_NAN : turn / 2 % 3;
                add(all, c);
            }
        }
    }
    /* Every layout of the operands, in-place gradients among them, with a mask that lies otherwise. */
    for (c.layout = 0; c.layout < case_layout_count(); c.layout++) {
        for (int i = 0; i < 3; i++, turn++) {
            c.rows = shapes[i][0];
            c.columns = shapes[i][1];
            of_dtype(&c, i == 1 ? ONEPASS_BF16 : i == 2 ? ONEPASS_F64 : ONEPASS_F32);
            c.mask = WEIGHT_DENSE + turn % (WEIGHT_COUNT - WEIGHT_DENSE);
            c.weight = turn % 4 ? WEIGHT_ABSENT : WEIGHT_PER_ROW;
            c.weight_dtype = ONEPASS_F32;
            c.reduction = turn % 4;
            c.wanted = WANT_ALL;
            c.upstream = turn / 2 % 4;
            c.masks = turn % 3 ? MASKS_OVER_NAN : MASKS_HALF;
            add(all, c);
        }
    }
}

/* What a mask is made of with what the operands are made of, and every set of outputs. */
static void sweep_masks(list *all, const char *loss) {
    static const int32_t data[] = {DATA_NORMAL, DATA_SPECIAL, DATA_KINK, DATA_HUGE};
    test_case c = plain("masks", loss);
    int turn = 0;
    for (c.masks = 0; c.masks < MASKS_COUNT; c.masks++) {
        for (size_t i = 0; i < sizeof data / sizeof data[0]; i++) {
            for (c.reduction = ONEPASS_MEAN; c.reduction <= ONEPASS_BATCHMEAN; c.reduction++, turn++) {
                c.data = data[i];
                of_dtype(&c, turn % 3 ? ONEPASS_F32 : ONEPASS_F64);
                c.value = ONEPASS_F64;
                c.mask = WEIGHT_DENSE + turn % 4;
                c.weight = turn % 4 == 1 ? WEIGHT_DENSE : WEIGHT_ABSENT;
                c.weight_dtype = c.prediction;
                c.weights = turn / 4 % WEIGHTS_COUNT;
                c.upstream = turn / 3 % 4;
                add(all, c);
            }
        }
    }
    /* A divisor of the call's own comes before the number of elements that take part. */
    c = plain("masks", loss);
    c.mask = WEIGHT_DENSE;
    for (c.wanted = 1; c.wanted <= all_of(loss); c.wanted++) {
        c.divisor = c.wanted % 2 ? 0.001 : 1024;
        add(all, c);
        c.divisor = 0;
        add(all, c);
    }
}

/* The number of elements that take part, over many tiles. */
static void sweep_mask_sizes(list *all, const char *loss) {
    static const int64_t sizes[] = {0,
                                    1,
                                    2,
                                    7,
                                    31,
                                    127,
                                    129,
                                    1023,
                                    1024,
                                    1025,
                                    2047,
                                    5 * 1024,
                                    31 * 1024 + 1,
                                    33 * 1024 - 1,
                                    64 * 1024,
                                    98 * 1024 + 77};
    test_case c = plain("mask sizes", loss);
    c.rows = 1;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        c.columns = sizes[i];
        for (int turn = 0; turn < 3; turn++) {
            of_dtype(&c, turn == 2 ? ONEPASS_F64 : ONEPASS_F32);
            c.value = ONEPASS_F64;
            c.mask = turn == 1 ? WEIGHT_UNALIGNED : WEIGHT_DENSE;
            c.masks = turn == 0 ? MASKS_SPARSE : MASKS_OVER_NAN;
            c.weight = i % 3 ? WEIGHT_ABSENT : WEIGHT_DENSE;
            c.weight_dtype = ONEPASS_F32;
            c.wanted = i % 2 ? WANT_VALUE : WANT_VALUE | WANT_PREDICTION;
            c.threads = (int32_t)i % 4;
            add(all, c);
        }
    }
}

/* The mean over the first dimension, whatever else there is. */
static void sweep_batchmean(list *all, const char *loss) {
    static const int64_t shapes[][2] = {{7, 191}, {3, 1024}, {300, 1}, {1, 300}, {0, 5}, {5, 0}};
    static const char *const names[] = {"dense",
                                        "dense, strides given",
                                        "target per row",
                                        "prediction per row",
                                        "both broadcast crosswise",
                                        "dense, leading ones",
                                        "transposed"};
    test_case c = plain("batchmean", loss);
    int turn = 0;
    c.reduction = ONEPASS_BATCHMEAN;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        c.layout = case_layout_named(names[i]);
        for (size_t j = 0; j < sizeof shapes / sizeof shapes[0]; j++, turn++) {
            c.rows = shapes[j][0];
            c.columns = shapes[j][1];
            of_dtype(&c, ONEPASS_F16 + turn % 4);
            c.wanted = turn % 3 ? 1 + turn % WANT_ALL : WANT_ALL;
            c.upstream = turn / 2 % 4;
            c.weight = turn % 4 == 3 ? WEIGHT_DENSE : WEIGHT_ABSENT;
            c.weight_dtype = ONEPASS_F32;
            add(all, c);
        }
    }
}

/* The value with one gradient that lies over its operand: nothing is copied first, as it is where there are several. A
 * loss's own loops have whole tiles of it, more of them than an engine takes at a time, and a tile that ends anywhere.
 */
static void sweep_in_place(list *all, const char *loss) {
    static const char *const layouts[] = {"in place, prediction", "in place, target", "in place, target per row"};
    static const int64_t shapes[][2] = {{1, 1057}, {1, 17439}, {3, 2048}};
    int turn = 0;
    test_case c = plain("in place", loss);
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
        c.layout = case_layout_named(layouts[i]);
        c.wanted = WANT_VALUE | (i == 1 ? WANT_TARGET : WANT_PREDICTION);
        for (size_t j = 0; j < sizeof shapes / sizeof shapes[0]; j++) {
            c.rows = shapes[j][0];
            c.columns = shapes[j][1];
            for (int32_t dtype = ONEPASS_F16; dtype <= ONEPASS_F64; dtype++, turn++) {
                of_dtype(&c, dtype);
                c.reduction = turn % 3;
                c.threads = turn / 4 % 2 + 1;
                add(all, c);
            }
        }
    }
}

typedef struct sweep {
    const char *group;
    void (*add_all)(list *all, const char *loss);
    int64_t one_of; /* so many cases is in the sample */
    int of_engine;  /* where losses have no say */
} sweep;

/* The samples have what formulas can have a say in: mostly data, types and parameters. */
static const sweep sweeps[] = {
    {"sizes", sweep_sizes, 60, 0},
    {"types", sweep_types, 12, 0},
    {"outputs", sweep_outputs, 12, 0},
    {"layouts", sweep_layouts, 96, 0},
    {"data", sweep_data, 6, 0},
    {"settings", sweep_settings, 24, 0},
    {"weight layouts", sweep_weight_layouts, 48, 0},
    {"weights", sweep_weights, 24, 0},
    {"weight sizes", sweep_weight_sizes, 48, 0},
    {"parameters", sweep_parameters, 2, 0},
    {"third", sweep_third, 9, 0},
    {"mask layouts", sweep_mask_layouts, 48, 1},
    {"masks", sweep_masks, 12, 1},
    {"mask sizes", sweep_mask_sizes, 48, 1},
    {"batchmean", sweep_batchmean, 9, 1},
    {"in place", sweep_in_place, 18, 0},
};

const test_case *case_list(size_t *count) {
    static list all;
    if (!all.count) {
        for (int i = 0; oracle_loss_at(i); i++) {
            for (size_t j = 0; j < sizeof sweeps / sizeof sweeps[0]; j++) {
                all.one_of = sweeps[j].one_of;
                all.of_engine = sweeps[j].of_engine;
                all.seed = hash_text(sweeps[j].group);
                sweeps[j].add_all(&all, oracle_loss_at(i)->name);
            }
        }
    }
    *count = all.count;
    return all.cases;
}

/* Appends to a text of that size. */
__attribute__((format(printf, 3, 4))) static void say(char *text, size_t size, const char *format, ...) {
    const size_t used = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + used, size - used, format, arguments);
    va_end(arguments);
}

void case_describe(const test_case *c, char *text, size_t size) {
    static const char *const reductions[] = {"mean", "sum", "none", "batchmean"};
    static const char *const upstreams[] = {"absent", "1", "a number", "a tensor"};
    static const char *const data[] = {"uniform", "normal", "huge", "tiny", "wide", "special", "kink"};
    static const char *const weights[] = {"positive", "signed", "sparse", "zero", "one", "wide", "special"};
    static const char *const masks[] = {"half", "sparse", "full", "empty", "half, over NaN,"};
    static const char *const outputs[] = {"value", "gradient p", "gradient t", "gradient v"};
    text[0] = 0;
    say(text, size, "%s %s(", c->group, c->loss);
    for (int i = 0; i < c->parameter_count; i++) {
        say(text, size, "%s%.3g", i ? ", " : "", c->parameter[i]);
    }
    say(text, size, "%s) %s, p %s, t %s, gradient %s, value %s, wanted", c->parameter_count ? "" : "default",
        reductions[c->reduction], oracle_dtype_name(c->prediction), oracle_dtype_name(c->target),
        oracle_dtype_name(c->gradient), oracle_dtype_name(c->value));
    for (int i = 0; i < ORACLE_PARTS; i++) {
        say(text, size, "%s%s", case_wanted(c) >> i & 1 ? " " : "", case_wanted(c) >> i & 1 ? outputs[i] : "");
    }
    say(text, size, ", upstream %s in %s, %s, %lld x %lld, %s data, ", upstreams[c->upstream],
        oracle_dtype_name(c->upstream_dtype), case_layout_name(c->layout), (long long)c->rows, (long long)c->columns,
        data[c->data]);
    if (operands_of(c->loss) > ONEPASS_THIRD) {
        say(text, size, "v %s in %s, ", c->third ? case_weight_name(c->third) : "as t",
            oracle_dtype_name(c->third_dtype ? c->third_dtype : c->target));
    }
    if (c->weight != WEIGHT_ABSENT) {
        say(text, size, "%s weight %s in %s, ", weights[c->weights], case_weight_name(c->weight),
            oracle_dtype_name(c->weight_dtype));
    }
    if (c->mask != WEIGHT_ABSENT) {
        say(text, size, "%s mask %s, ", masks[c->masks], case_weight_name(c->mask));
    }
    say(text, size, "divisor %g, threads %d, seed %llu", c->divisor, (int)c->threads, (unsigned long long)c->seed);
}
