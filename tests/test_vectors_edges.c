/*
 * Vector losses where formulas have kinks, clamps and poles, in numbers that are worked out by hand: zero vectors,
 * equal ones, hinges and margins at exactly 0, ties, NaN, infinities, rows without elements, no rows, rows that are all
 * hidden.
 */
#include "check.h"
#include "oracle.h"

#include <math.h>
#include <stdbool.h>

enum {
    MOST = 4
};

/* One row. A number of results that nobody cares for is UNSAID. */
typedef struct edge {
    const char *name, *loss;
    int32_t parameter_count;
    double parameter[4];
    int64_t elements;
    double x[ORACLE_OPERANDS][MOST];
    double value, gradient[ORACLE_OPERANDS][MOST];
} edge;

#define UNSAID 1e300
#define NOTHING                                                                                                        \
    { UNSAID, UNSAID, UNSAID, UNSAID }
#define NANS                                                                                                           \
    { NAN, NAN, NAN, NAN }

static const edge cosines[] = {
    {"the first vector 0", "cosine_similarity", 0, {0}, 2, {{0, 0}, {3, 4}}, 0, {{6e7, 8e7}, {0, 0}}},
    {"the second vector 0", "cosine_similarity", 0, {0}, 2, {{-3, 4}, {0, 0}}, 0, {{0, 0}, {-6e7, 8e7}}},
    {"both vectors 0", "cosine_similarity", 0, {0}, 2, {{0, 0}, {0, 0}}, 0, {{0, 0}, {0, 0}}},
    {"equal vectors", "cosine_similarity", 0, {0}, 2, {{3, 4}, {3, 4}}, 1, {{0, 0}, {0, 0}}},
    {"opposite vectors", "cosine_similarity", 0, {0}, 2, {{3, 4}, {-3, -4}}, -1, {{0, 0}, {0, 0}}},
    {"norms that are held", "cosine_similarity", 1, {10}, 2, {{3, 4}, {3, 4}}, 0.25, {{0.015, 0.02}, {0.015, 0.02}}},
    {"one norm that is held", "cosine_similarity", 1, {2}, 2, {{0, 1}, {3, 4}}, 0.4, {{0.3, 0.2}, {-0.048, 0.036}}},
    {"squares beyond float",
     "cosine_similarity",
     0,
     {0},
     2,
     {{3e38, 0}, {3e38, 3e38}},
     0.70710678118654752,
     {NOTHING, NOTHING}},
    {"squares below float",
     "cosine_similarity",
     1,
     {0},
     2,
     {{1e-30, 0}, {1e-30, 1e-30}},
     0.70710678118654752,
     {NOTHING, NOTHING}},
    {"a NaN", "cosine_similarity", 0, {0}, 2, {{NAN, 1}, {3, 4}}, NAN, {NANS, NANS}},
    {"an infinity", "cosine_similarity", 0, {0}, 2, {{INFINITY, 1}, {3, 4}}, NAN, {NANS, NOTHING}},

    {"alike and equal", "cosine_embedding", 0, {0}, 2, {{3000, 4000}, {3000, 4000}, {1}}, 0, {{0, 0}, {0, 0}}},
    {"alike and opposite", "cosine_embedding", 0, {0}, 2, {{3000, 4000}, {-3000, -4000}, {1}}, 2, {{0, 0}, {0, 0}}},
    {"alike and 0", "cosine_embedding", 0, {0}, 2, {{0, 0}, {3000, 4000}, {1}}, 1, {{-6e5, -8e5}, {0, 0}}},
    {"unlike at the margin", "cosine_embedding", 0, {0}, 2, {{1000, 0}, {0, 1000}, {-1}}, 0, {{0, 1e-3}, {1e-3, 0}}},
    {"unlike below the margin", "cosine_embedding", 1, {1e-300}, 2, {{1000, 0}, {0, 1000}, {-1}}, 0, {{0, 0}, {0, 0}}},
    {"unlike above the margin",
     "cosine_embedding",
     1,
     {-0.5},
     2,
     {{1000, 0}, {0, 1000}, {-1}},
     0.5,
     {{0, 1e-3}, {1e-3, 0}}},
    {"unlike and 0", "cosine_embedding", 0, {0}, 2, {{0, 0}, {3000, 4000}, {-1}}, 0, {{6e5, 8e5}, {0, 0}}},
    {"a target of 0", "cosine_embedding", 0, {0}, 2, {{3, 4}, {3, 4}, {0}}, 0, {{0, 0}, {0, 0}}},
    {"a target of a half", "cosine_embedding", 0, {0}, 2, {{3, 4}, {3, 5}, {0.5}}, 0, {{0, 0}, {0, 0}}},
    {"a target of -2", "cosine_embedding", 0, {0}, 2, {{3, 4}, {3, 5}, {-2}}, 0, {{0, 0}, {0, 0}}},
    {"a NaN and a target of 0", "cosine_embedding", 0, {0}, 2, {{NAN, 4}, {3, 4}, {0}}, 0, {NOTHING, NOTHING}},
    {"a NaN alike", "cosine_embedding", 0, {0}, 2, {{NAN, 4}, {3, 4}, {1}}, NAN, {NANS, NANS}},
    {"a NaN unlike", "cosine_embedding", 0, {0}, 2, {{NAN, 4}, {3, 4}, {-1}}, NAN, {NOTHING, NOTHING}},
};

static const edge distances[] = {
    {"equal vectors",
     "pairwise_distance",
     0,
     {0},
     4,
     {{1, 2, 3, 4}, {1, 2, 3, 4}},
     2e-6,
     {{0.5, 0.5, 0.5, 0.5}, {-0.5, -0.5, -0.5, -0.5}}},
    {"equal vectors without eps", "pairwise_distance", 2, {2, 0}, 2, {{1, 2}, {1, 2}}, 0, {{0, 0}, {0, 0}}},
    {"equal vectors without eps, p 1", "pairwise_distance", 2, {1, 0}, 2, {{1, 2}, {1, 2}}, 0, {{0, 0}, {0, 0}}},
    {"equal elements", "pairwise_distance", 2, {2, 0}, 3, {{3, 7, 4}, {0, 7, 0}}, 5, {{0.6, 0, 0.8}, {-0.6, 0, -0.8}}},
    {"equal elements, p 1", "pairwise_distance", 2, {1, 0}, 3, {{1, 7, -2}, {0, 7, 0}}, 3, {{1, 0, -1}, {-1, 0, 1}}},
    {"eps has a sign", "pairwise_distance", 2, {1, 0.5}, 2, {{0, 0}, {0, 1}}, 1, {{1, -1}, {-1, 1}}},
    {"eps cancels", "pairwise_distance", 2, {1, 0.5}, 2, {{0, 0}, {0.5, 0}}, 0.5, {{0, 1}, {0, -1}}},
    {"squares beyond float",
     "pairwise_distance",
     0,
     {0},
     2,
     {{0x3p125, 0}, {0, 0x4p125}},
     0x5p125,
     {{0.6, -0.8}, {-0.6, 0.8}}},
    {"squares below float",
     "pairwise_distance",
     2,
     {2, 0},
     2,
     {{0x3p-115, 0}, {0, 0x4p-115}},
     0x5p-115,
     {{0.6, -0.8}, {-0.6, 0.8}}},
    {"a NaN", "pairwise_distance", 0, {0}, 2, {{NAN, 1}, {3, 4}}, NAN, {NANS, NANS}},
    {"a NaN, p 1", "pairwise_distance", 2, {1, 0}, 2, {{NAN, 1}, {3, 4}}, NAN, {{NAN, UNSAID}, {NAN, UNSAID}}},
    {"an infinity", "pairwise_distance", 0, {0}, 2, {{INFINITY, 1}, {3, 4}}, INFINITY, {{NAN, 0}, {NAN, 0}}},
    {"an infinity, p 1", "pairwise_distance", 2, {1, 0}, 2, {{INFINITY, 1}, {3, 4}}, INFINITY, {{1, -1}, {-1, 1}}},
    {"infinities that cancel", "pairwise_distance", 0, {0}, 2, {{INFINITY, 1}, {INFINITY, 4}}, NAN, {NANS, NANS}},

    {"a hinge at 0", "triplet_margin", 3, {1, 2, 0}, 2, {{0, 0}, {0, 0}, {1, 0}}, 0, {{1, 0}, {0, 0}, {-1, 0}}},
    {"a hinge below 0", "triplet_margin", 3, {1, 2, 0}, 2, {{0, 0}, {0, 0}, {2, 0}}, 0, {{0, 0}, {0, 0}, {0, 0}}},
    {"a hinge above 0",
     "triplet_margin",
     3,
     {1, 2, 0},
     2,
     {{0, 0}, {3, 4}, {0, 2}},
     4,
     {{-0.6, 0.2}, {0.6, 0.8}, {0, -1}}},
    {"a hinge at 0, p 1", "triplet_margin", 3, {1, 1, 0}, 2, {{0, 0}, {1, 1}, {2, 1}}, 0, {{0, 0}, {1, 1}, {-1, -1}}},
    {"swapped", "triplet_margin", 4, {1, 2, 0, 1}, 2, {{0, 0}, {0, 4}, {0, 5}}, 4, {{0, -1}, {0, 2}, {0, -1}}},
    {"not swapped", "triplet_margin", 4, {1, 2, 0, 1}, 2, {{0, 0}, {0, 4}, {0, -1}}, 4, {{0, -2}, {0, 1}, {0, 1}}},
    {"a tie",
     "triplet_margin",
     4,
     {1, 2, 0, 1},
     2,
     {{0, 0}, {0, 2}, {1, 1}},
     3 - 1.4142135623730951,
     {{0.35355339059327376, -1 + 0.35355339059327376},
      {0.35355339059327376, 1 - 0.35355339059327376},
      {-0.70710678118654752, 0}}},
    {"a tie, p 1",
     "triplet_margin",
     4,
     {1, 1, 0, 1},
     2,
     {{0, 0}, {0, 2}, {1, 1}},
     1,
     {{0.5, -0.5}, {0.5, 0.5}, {-1, 0}}},
    {"all three equal", "triplet_margin", 4, {1, 2, 0, 1}, 2, {{1, 2}, {1, 2}, {1, 2}}, 1, {{0, 0}, {0, 0}, {0, 0}}},
    {"a NaN", "triplet_margin", 0, {0}, 2, {{NAN, 1}, {3, 4}, {1, 1}}, NAN, {NOTHING, NOTHING, NOTHING}},
    {"a NaN in the negative",
     "triplet_margin",
     4,
     {1, 2, 0, 1},
     2,
     {{0, 1}, {3, 4}, {1, NAN}},
     NAN,
     {NOTHING, NOTHING, NOTHING}},
};

static const edge overlaps[] = {
    {"all found", "tversky", 0, {0}, 2, {{1, 1}, {1, 1}}, 0, {{-0.25, -0.25}, {-0.25, -0.25}}},
    {"nothing found", "tversky", 0, {0}, 2, {{0, 0}, {1, 1}}, 1, {{-1, -1}, {0, 0}}},
    {"nothing there", "tversky", 0, {0}, 2, {{0, 0}, {0, 0}}, 1, {{0, 0}, {0, 0}}},
    {"nothing there, smooth", "tversky", 3, {0.5, 0.5, 1}, 2, {{0, 0}, {0, 0}}, 0, {{0.5, 0.5}, {0.5, 0.5}}},
    {"held by eps", "tversky", 4, {0.5, 0.5, 0, 4}, 2, {{1, 1}, {1, 0}}, 0.75, {{-0.25, 0}, {-0.25, -0.25}}},
    {"at eps itself",
     "tversky",
     4,
     {0.5, 0.5, 0, 1.5},
     2,
     {{1, 1}, {1, 0}},
     1 - 1 / 1.5,
     {{-(1 - 0.5 / 1.5) / 1.5, 0.5 / 1.5 / 1.5}, {-(1 - 0.5 / 1.5) / 1.5, -(1 - 0.5 / 1.5) / 1.5}}},
    {"jaccard", "tversky", 2, {1, 1}, 2, {{1, 1}, {1, 0}}, 0.5, {{-0.5, 0.25}, {-0.5, -0.5}}},
    {"a NaN", "tversky", 0, {0}, 2, {{NAN, 1}, {1, 1}}, NAN, {NANS, NANS}},
    {"an infinity", "tversky", 0, {0}, 2, {{INFINITY, 1}, {1, 1}}, NAN, {NOTHING, NOTHING}},
    {"logits of 0", "tversky_with_logits", 0, {0}, 2, {{0, 0}, {1, 0}}, 0.5, {{-0.1875, 0.0625}, {-0.25, -0.25}}},
    {"logits that are infinite",
     "tversky_with_logits",
     0,
     {0},
     2,
     {{INFINITY, -INFINITY}, {1, 0}},
     0,
     {{0, 0}, {-0.5, 0.5}}},
    {"a NaN among logits", "tversky_with_logits", 0, {0}, 2, {{NAN, 1}, {1, 1}}, NAN, {NANS, NANS}},
};

#define LOG_2 0.69314718055994531
#define LOG_7 1.9459101490553132

/* Of logits whose exponentials are exact. */
static const edge distributions[] = {
    {"equal rows", "kl_div_with_logits", 0, {0}, 3, {{1, 2, 4}, {1, 2, 4}}, 0, {{0, 0, 0}, {0, 0, 0}}},
    {"a target that is sure", "kl_div_with_logits", 0, {0}, 2, {{0, 0}, {0, -INFINITY}}, LOG_2, {{-0.5, 0.5}, {0, 0}}},
    {"a class that neither has",
     "kl_div_with_logits",
     0,
     {0},
     3,
     {{0, 0, -INFINITY}, {0, -INFINITY, -INFINITY}},
     LOG_2,
     {{-0.5, 0.5, 0}, {0, 0, 0}}},
    {"a class that the input lacks",
     "kl_div_with_logits",
     0,
     {0},
     2,
     {{0, -INFINITY}, {1, 1}},
     INFINITY,
     {{0.5, -0.5}, NOTHING}},
    {"large logits", "kl_div_with_logits", 0, {0}, 2, {{1e8, 1e8}, {1e8, -1e8}}, LOG_2, {{-0.5, 0.5}, {0, 0}}},
    {"an input that leads by more than exponentials hold",
     "kl_div_with_logits",
     0,
     {0},
     2,
     {{4096, 0}, {0, 0}},
     2048 - LOG_2,
     {{0.5, -0.5}, {-1024, 1024}}},
    {"a NaN in the input", "kl_div_with_logits", 0, {0}, 2, {{NAN, 1}, {3, 4}}, NAN, {NANS, NANS}},
    {"a NaN in the target", "kl_div_with_logits", 0, {0}, 2, {{3, 4}, {1, NAN}}, NAN, {NANS, NANS}},
    {"an infinity in the input", "kl_div_with_logits", 0, {0}, 2, {{INFINITY, 1}, {3, 4}}, NAN, {NANS, NANS}},
    {"an infinity in the target", "kl_div_with_logits", 0, {0}, 2, {{3, 4}, {1, INFINITY}}, NAN, {NANS, NANS}},
    {"an input of -inf", "kl_div_with_logits", 0, {0}, 2, {{-INFINITY, -INFINITY}, {3, 4}}, NAN, {NANS, NANS}},
    {"a target of -inf", "kl_div_with_logits", 0, {0}, 2, {{3, 4}, {-INFINITY, -INFINITY}}, NAN, {NANS, NANS}},

    {"equal rows", "js_div_with_logits", 0, {0}, 3, {{1, 2, 4}, {1, 2, 4}}, 0, {{0, 0, 0}, {0, 0, 0}}},
    {"nothing in common", "js_div_with_logits", 0, {0}, 2, {{1, -INFINITY}, {-INFINITY, 1}}, LOG_2, {{0, 0}, {0, 0}}},
    {"nothing in common that exponentials hold",
     "js_div_with_logits",
     0,
     {0},
     2,
     {{4096, 0}, {0, 4096}},
     LOG_2,
     {{0, 0}, {0, 0}}},
    {"a NaN in the input", "js_div_with_logits", 0, {0}, 2, {{NAN, 1}, {3, 4}}, NAN, {NANS, NANS}},
    {"a NaN in the target", "js_div_with_logits", 0, {0}, 2, {{3, 4}, {1, NAN}}, NAN, {NANS, NANS}},
    {"an infinity in the input", "js_div_with_logits", 0, {0}, 2, {{INFINITY, 1}, {3, 4}}, NAN, {NANS, NANS}},
    {"an input of -inf", "js_div_with_logits", 0, {0}, 2, {{-INFINITY, -INFINITY}, {3, 4}}, NAN, {NANS, NANS}},

    {"equal rows", "tv_distance_with_logits", 0, {0}, 3, {{1, 2, 4}, {1, 2, 4}}, 0, {{0, 0, 0}, {0, 0, 0}}},
    {"nothing in common", "tv_distance_with_logits", 0, {0}, 2, {{1, -INFINITY}, {-INFINITY, 1}}, 1, {{0, 0}, {0, 0}}},
    {"a half", "tv_distance_with_logits", 1, {0.5}, 2, {{1, 1}, {-INFINITY, 1}}, 0.5, {{0.5, -0.5}, {0, 0}}},
    {"large logits", "tv_distance_with_logits", 0, {0}, 2, {{1e8, 1e8}, {1e8, -1e8}}, 0.5, {{-0.25, 0.25}, {0, 0}}},
    {"a NaN in the input", "tv_distance_with_logits", 0, {0}, 2, {{NAN, 1}, {3, 4}}, NAN, {NANS, NANS}},
    {"an infinity in the target", "tv_distance_with_logits", 0, {0}, 2, {{3, 4}, {1, INFINITY}}, NAN, {NANS, NANS}},
    {"a target of -inf", "tv_distance_with_logits", 0, {0}, 2, {{3, 4}, {-INFINITY, -INFINITY}}, NAN, {NANS, NANS}},
};

/* A row of scores, which is its own, and what classes weigh, if the first weighs anything. As in PyTorch there is no
 * slope at the margin itself, and a NaN counts for nothing. */
static const edge margins[] = {
    {"at the margin", "multi_margin", 0, {0}, 3, {{1, 2, 1.5}, {1}}, 0.5 / 3, {{0, -1.0 / 3, 1.0 / 3}}},
    {"labels 1 and 2 of 0 to 3",
     "multilabel_margin",
     0,
     {0},
     4,
     {{1, 2, 0, 1.5}, {1, 2, -1, 0}},
     1.25,
     {{0.25, -0.25, -0.5, 0.5}}},
    {"a label twice", "multilabel_margin", 0, {0}, 2, {{1, 3}, {0, 0}}, 3, {{-1, 1}}},
    {"no labels", "multilabel_margin", 0, {0}, 2, {{1, 3}, {-1, 1}}, 0, {{0, 0}}},
    {"nothing but labels", "multilabel_margin", 0, {0}, 2, {{1, 3}, {1, 0}}, 0, {{0, 0}}},
    {"a NaN beside labels",
     "multilabel_margin",
     0,
     {0},
     4,
     {{1, NAN, 2, 0}, {0, -1, -1, -1}},
     0.5,
     {{-0.25, 0, 0.25, 0}}},
    {"a label of NaN", "multilabel_margin", 0, {0}, 2, {{NAN, 1}, {0, -1}}, 0, {{0, 0}}},
    {"a label of -inf",
     "multilabel_margin",
     0,
     {0},
     3,
     {{-INFINITY, 1, 2}, {0, 1, -1}},
     INFINITY,
     {{-1.0 / 3, -1.0 / 3, 2.0 / 3}}},
    {"an infinity above labels", "multilabel_margin", 0, {0}, 2, {{1, INFINITY}, {0, -1}}, INFINITY, {{-0.5, 0.5}}},
    {"squares", "multi_margin", 1, {2}, 4, {{1, 0, 3, 0.5}, {0}}, 2.3125, {{-1.75, 0, 1.5, 0.25}}},
    {"one class", "multi_margin", 0, {0}, 1, {{3}, {0}}, 0, {{0}}},
    {"nobody within the margin", "multi_margin", 0, {0}, 2, {{5, 3}, {0}}, 0, {{0, 0}}},
    {"a margin below 0", "multi_margin", 2, {1, -1}, 2, {{1, 4}, {0}}, 1, {{-0.5, 0.5}}},
    {"a NaN elsewhere", "multi_margin", 0, {0}, 4, {{1, NAN, 2, 0}, {0}}, 0.5, {{-0.25, 0, 0.25, 0}}},
    {"a NaN of its own", "multi_margin", 0, {0}, 2, {{NAN, 1}, {0}}, 0, {{0, 0}}},
    {"an infinity elsewhere", "multi_margin", 0, {0}, 2, {{1, INFINITY}, {0}}, INFINITY, {{-0.5, 0.5}}},
    {"an infinity elsewhere, squared",
     "multi_margin",
     1,
     {2},
     2,
     {{1, INFINITY}, {0}},
     INFINITY,
     {{-INFINITY, INFINITY}}},
    {"a class that weighs 3", "multi_margin", 1, {2}, 3, {{1, 0, 3}, {0}, {3, 5, 7}}, 9, {{-6, 0, 6}}},
    {"a class that weighs nothing", "multi_margin", 0, {0}, 2, {{4, 1}, {1}, {5, 0}}, 0, {{0, 0}}},
    {"an infinity that weighs nothing", "multi_margin", 0, {0}, 2, {{INFINITY, 1}, {1}, {5, 0}}, NAN, {{0, 0}}},
    {"a weight of NaN", "multi_margin", 0, {0}, 2, {{4, 1}, {1}, {5, NAN}}, NAN, {{NAN, NAN}}},
    {"an infinity of its own", "multi_margin", 0, {0}, 3, {{1, INFINITY, INFINITY}, {1}}, 0, {{0, 0, 0}}},
    {"-inf of its own",
     "multi_margin",
     0,
     {0},
     4,
     {{1, -INFINITY, -INFINITY, 2}, {1}},
     INFINITY,
     {{0.25, -0.5, 0, 0.25}}},
};

/* Of others. */
static const edge rounded_distributions[] = {
    {"equal but for an offset", "kl_div_with_logits", 0, {0}, 2, {{1, 2}, {1025, 1026}}, 0, {{0, 0}, {0, 0}}},
    {"one class", "kl_div_with_logits", 0, {0}, 1, {{3}, {-7}}, 0, {{0}, {0}}},
    {"four classes, two in the target",
     "kl_div_with_logits",
     1,
     {2},
     4,
     {{5, 5, 5, 5}, {-INFINITY, 1, 1, -INFINITY}},
     LOG_2,
     {{0.125, -0.125, -0.125, 0.125}, {0, 0, 0, 0}}},
    {"a large offset",
     "kl_div_with_logits",
     0,
     {0},
     2,
     {{1e6, 1e6 + 3}, {0, 0}},
     0.85544017101379668,
     {{-0.45257412682243320, 0.45257412682243320}, {0.75, -0.75}}},
    {"a lead of 80 that is wrong", "kl_div_with_logits", 0, {0}, 2, {{80, 0}, {0, 80}}, 80, {{1, -1}, NOTHING}},
    {"equal but for an offset", "js_div_with_logits", 0, {0}, 2, {{1, 2}, {1025, 1026}}, 0, {{0, 0}, {0, 0}}},
    {"one class", "js_div_with_logits", 0, {0}, 1, {{3}, {-7}}, 0, {{0}, {0}}},
    {"a quarter", /* 3/4 log(8/7) + 1/8 log(4/7) + 1/8 log 4 */
     "js_div_with_logits",
     2,
     {0.25, 1},
     2,
     {{1, -INFINITY}, {1, 1}},
     0.75 * (3 * LOG_2 - LOG_7) + 0.125 * (4 * LOG_2 - LOG_7),
     {{0, 0}, {-0.0625 * LOG_7, 0.0625 * LOG_7}}},
    {"one class", "tv_distance_with_logits", 0, {0}, 1, {{3}, {-7}}, 0, {{0}, {0}}},
};

/* Rows without elements: sums of nothing. */
static const edge empty[] = {
    {"no elements", "cosine_similarity", 0, {0}, 0, {{0}}, 0, {{0}}},
    {"no elements", "cosine_embedding", 0, {0}, 0, {{0}, {0}, {1}}, 1, {{0}}},
    {"no elements", "pairwise_distance", 0, {0}, 0, {{0}}, 0, {{0}}},
    {"no elements", "triplet_margin", 0, {0}, 0, {{0}}, 1, {{0}}},
    {"no elements", "tversky", 0, {0}, 0, {{0}}, 1, {{0}}},
    {"no elements, smooth", "tversky", 3, {0.5, 0.5, 1}, 0, {{0}}, 0, {{0}}},
    {"no elements", "tversky_with_logits", 0, {0}, 0, {{0}}, 1, {{0}}},
    {"no elements", "kl_div_with_logits", 0, {0}, 0, {{0}}, NAN, {{0}}},
    {"no elements", "js_div_with_logits", 0, {0}, 0, {{0}}, NAN, {{0}}},
    {"no elements", "tv_distance_with_logits", 0, {0}, 0, {{0}}, NAN, {{0}}},
};

/* --------------------------------------------------------------- a call -- */

/* A call of one row, or of no row, with everything wanted. */
typedef struct one_row {
    onepass_call call;
    int64_t shape[2];
    onepass_tensor operand[ORACLE_OPERANDS], gradient[ORACLE_OPERANDS], value, mask;
    double memory[2 * ORACLE_OPERANDS][MOST], result;
    unsigned char seen;
} one_row;

static void prepare(one_row *r, const edge *e, int32_t dtype, int64_t rows) {
    const size_t size = oracle_size(dtype);
    memset(r, 0, sizeof *r);
    r->shape[0] = rows;
    r->shape[1] = e->elements;
    r->call = (onepass_call){
        .size = sizeof r->call, .loss = e->loss, .reduction = ONEPASS_SUM, .parameter_count = e->parameter_count};
    memcpy(r->call.parameter, e->parameter, sizeof e->parameter);
    for (int k = 0; k < onepass_loss_named(e->loss)->operand_count; k++) {
        const bool is_list = k == 1 && strcmp(e->loss, "multilabel_margin") == 0;
        const int32_t ndim = k < oracle_vector_operands(e->loss) || is_list ? 2 : 1;
        const bool has_labels = strcmp(e->loss, "multi_margin") == 0, is_of_classes = k == 2 && has_labels;
        if (is_of_classes && e->x[k][0] == 0) {
            continue; /* not given */
        }
        r->operand[k] = (onepass_tensor){r->memory[k], dtype, ndim, is_of_classes ? r->shape + 1 : r->shape, NULL};
        r->call.operand[k] = &r->operand[k];
        for (int64_t i = 0; i < MOST; i++) {
            oracle_store(dtype, (char *)r->memory[k] + (size_t)i * size, e->x[k][i]);
        }
        if (k == 1 && has_labels) {
            const int64_t label = (int64_t)e->x[k][0];
            r->operand[k].dtype = ONEPASS_I64;
            memcpy(r->memory[k], &label, sizeof label);
        }
        for (int64_t i = 0; is_list && i < MOST; i++) {
            const int64_t label = (int64_t)e->x[k][i];
            r->operand[k].dtype = ONEPASS_I64;
            memcpy((char *)r->memory[k] + (size_t)i * sizeof label, &label, sizeof label);
        }
        if (k < oracle_vector_operands(e->loss)) {
            r->gradient[k] = (onepass_tensor){r->memory[ORACLE_OPERANDS + k], dtype, 2, r->shape, NULL};
            r->call.gradient[k] = &r->gradient[k];
        }
    }
    r->value = (onepass_tensor){&r->result, dtype, 0, NULL, NULL};
    r->call.value = &r->value;
}

/* ------------------------------------------------------------- what comes -- */

/* What is not a number of few digits may be off by some units, those of double unless said otherwise, and is rounded to
 * the type; a NaN has one form. */
static bool is_as_said(double said, int32_t dtype, const void *at, double scale, bool has_units_of_type) {
    const uint64_t bits = oracle_load_bits(dtype, at);
    const double unit = has_units_of_type && dtype == ONEPASS_F32 ? 0x1p-23 : 0x1p-52;
    const double got = oracle_decode(dtype, bits), error = 8 * unit * scale;
    double range[2] = {said - error, said + error};
    if (said == UNSAID) {
        return true;
    }
    if (isnan(said)) {
        return bits == oracle_encode(dtype, NAN);
    }
    oracle_round(dtype, range, 2);
    return isinf(said) ? got == said : got >= range[0] && got <= range[1];
}

static void check_edge(const edge *e, int32_t dtype, bool has_units_of_type) {
    one_row r;
    char what[256];
    snprintf(what, sizeof what, "%s, %s, %s", e->loss, oracle_dtype_name(dtype), e->name);
    prepare(&r, e, dtype, 1);
    if (!CHECK_OK(onepass_run(&r.call), what)) {
        return;
    }
    const double scale = e->value == 0 ? 1 : fabs(e->value);
    CHECK(is_as_said(e->value, dtype, &r.result, scale, has_units_of_type), "%s: expected the value %.17g, got %.17g",
          what, e->value, oracle_load(dtype, &r.result));
    CHECK(!(oracle_load(dtype, &r.result) < 0) || e->value < 0, "%s: expected no value below 0, got %g", what,
          oracle_load(dtype, &r.result));
    for (int k = 0; k < oracle_vector_operands(e->loss); k++) {
        double largest = 0;
        for (int64_t i = 0; i < e->elements; i++) {
            largest = fmax(largest, fabs(e->gradient[k][i]));
        }
        for (int64_t i = 0; i < e->elements; i++) {
            const char *at = (char *)r.memory[ORACLE_OPERANDS + k] + (size_t)i * oracle_size(dtype);
            CHECK(is_as_said(e->gradient[k][i], dtype, at, fmin(fmax(largest, 1), 1e9), has_units_of_type),
                  "%s: expected gradient[%d] of element %d to be %.17g, got %.17g", what, k, (int)i, e->gradient[k][i],
                  oracle_load(dtype, at));
        }
    }
}

static void check_edges(const edge *edges, size_t count, bool has_units_of_type) {
    for (size_t i = 0; i < count; i++) {
        check_edge(&edges[i], ONEPASS_F32, has_units_of_type);
        check_edge(&edges[i], ONEPASS_F64, has_units_of_type);
    }
}

/* No rows, and rows that are all hidden: a mean is 0 / 0, or 0 with a divisor; a sum is 0. */
static void test_nothing_takes_part(const edge *e) {
    for (int kind = 0; kind < 8; kind++) {
        one_row r;
        char what[256];
        snprintf(what, sizeof what, "%s, nothing takes part, kind %d", e->loss, kind);
        prepare(&r, e, ONEPASS_F32, kind & 1);
        r.result = 5;
        r.mask = (onepass_tensor){&r.seen, ONEPASS_BOOL, 1, r.shape, NULL};
        r.call.mask = &r.mask;
        r.call.reduction = kind & 2 ? ONEPASS_MEAN : ONEPASS_SUM;
        r.call.divisor = kind == 6 || kind == 7 ? 2 : 0;
        memset(r.memory[ORACLE_OPERANDS], 0x11, sizeof r.memory / 2);
        CHECK_OK(onepass_run(&r.call), what);
        CHECK(is_as_said(kind == 2 || kind == 3 ? NAN : 0, ONEPASS_F32, &r.result, 0, false), "%s: got the value %g",
              what, oracle_load(ONEPASS_F32, &r.result));
        for (int k = 0; (kind & 1) && k < oracle_vector_operands(e->loss); k++) {
            for (int64_t i = 0; i < e->elements; i++) {
                const uint64_t bits = oracle_load_bits(ONEPASS_F32, (float *)r.memory[ORACLE_OPERANDS + k] + i);
                CHECK(bits == 0, "%s: expected gradient[%d] to be +0, got bits %llx", what, k,
                      (unsigned long long)bits);
            }
        }
    }
}

/* Products that are all -0 sum to -0 where tiles are whole; missing terms of a tile are +0, and so is the sum then. */
static void test_sign_of_zero(void) {
    static const int64_t lengths[] = {1,   16,  17,  64,   100,  128,  129,  256, 300,
                                      512, 600, 768, 1000, 1023, 1024, 1025, 2048};
    static float zeros[2048], ones[2048];
    for (int i = 0; i < 2048; i++) {
        ones[i] = -1;
    }
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        const int64_t shape[] = {1, lengths[i]};
        const onepass_tensor a = {zeros, ONEPASS_F32, 2, shape, NULL}, b = {ones, ONEPASS_F32, 2, shape, NULL};
        float found = 5;
        onepass_tensor value = {&found, ONEPASS_F32, 1, shape, NULL};
        onepass_call call = {.size = sizeof call,
                             .loss = "cosine_similarity",
                             .reduction = ONEPASS_NONE,
                             .operand = {&a, &b},
                             .value = &value};
        char what[64];
        snprintf(what, sizeof what, "%d products of -0", (int)lengths[i]);
        CHECK_OK(onepass_run(&call), what);
        CHECK_BITS(lengths[i] % 1024 == 0 ? UINT64_C(0x80000000) : 0, oracle_load_bits(ONEPASS_F32, &found), what);
    }
}

int main(void) {
    test_sign_of_zero();
    check_edges(cosines, sizeof cosines / sizeof cosines[0], false);
    check_edges(distances, sizeof distances / sizeof distances[0], false);
    check_edges(overlaps, sizeof overlaps / sizeof overlaps[0], false);
    check_edges(margins, sizeof margins / sizeof margins[0], false);
    check_edges(distributions, sizeof distributions / sizeof distributions[0], false);
    check_edges(rounded_distributions, sizeof rounded_distributions / sizeof rounded_distributions[0], true);
    check_edges(empty, sizeof empty / sizeof empty[0], false);
    for (size_t i = 0; i < sizeof cosines / sizeof cosines[0]; i++) {
        test_nothing_takes_part(&cosines[i]);
    }
    for (size_t i = 0; i < sizeof distances / sizeof distances[0]; i++) {
        test_nothing_takes_part(&distances[i]);
    }
    for (size_t i = 0; i < sizeof overlaps / sizeof overlaps[0]; i++) {
        test_nothing_takes_part(&overlaps[i]);
    }
    for (size_t i = 0; i < sizeof margins / sizeof margins[0]; i++) {
        test_nothing_takes_part(&margins[i]);
    }
    for (size_t i = 0; i < sizeof distributions / sizeof distributions[0]; i++) {
        test_nothing_takes_part(&distributions[i]);
    }
    return check_finish();
}
