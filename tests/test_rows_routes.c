/*
 * Rows go different ways by how they lie: those without gaps may be turned, those whose classes lie together are taken
 * several at a time, and those whose classes lie apart one by one. All of it is bit-identical, whatever the logits are
 * and whatever else is asked for, and nothing between rows is written.
 */
#include "row_questions.h"

enum {
    MOST_ROWS = 70,
    MOST_CLASSES = 1030,
    FENCE = 16, /* numbers behind the last */
    ROOM = MOST_ROWS * 2 * (MOST_CLASSES + 3) + FENCE
};

/* How rows lie: so many classes apart, and classes so many numbers. */
typedef enum way {
    WITHOUT_GAPS,
    ROWS_APART,
    CLASSES_APART,
    WAYS
} way;

/* What is asked for beside a value and a gradient. */
typedef enum asked {
    A_MEAN,        /* of some rows, with an upstream gradient */
    EACH_ROW,      /* values, each with an upstream gradient, weights and a mask */
    WITH_OUTPUTS,  /* class weights, and all that comes with a row */
    OUTPUTS_ALONE, /* the same without a gradient */
    A_VALUE,       /* and no gradient */
    ASKED
} asked;

typedef enum logits_kind {
    NEAR,      /* each other */
    FAR,       /* below the largest, some at -inf */
    HUGE_ONES, /* beyond whole numbers that are exact */
    INFINITE,  /* one in some rows, the others near */
    BROKEN,    /* NaN, inf, or nothing but -inf, in some rows */
    KINDS
} logits_kind;

typedef struct answers {
    float input[ROOM], gradient[ROOM];
    float value[MOST_ROWS], log_sum_exp[MOST_ROWS];
    double state[MOST_ROWS][ONEPASS_ROW_STATE], divided_by;
} answers;

static answers answer[WAYS];
static int64_t label[MOST_ROWS];
static float class_weight[MOST_CLASSES], weight[MOST_ROWS], upstream[MOST_ROWS];
static unsigned char mask[MOST_ROWS];

static float logit_of(logits_kind kind, int64_t row, int64_t class, int64_t classes) {
    const int64_t i = row * classes + class;
    const float near = (float)(i * 2654435761 % 4093) / 512 - 4;
    switch (kind) {
    case NEAR:
        return near;
    case FAR:
        return i * 31 % 61 == 0 ? -INFINITY : i * 17 % 53 == 0 ? -95 : i * 19 % 47 == 0 ? near - 87 : near;
    case HUGE_ONES:
        return row % 3 == 0 ? 1e8f + 8 * near : row % 3 == 1 ? near * 1e36f : near;
    case INFINITE:
        return row % 5 == 2 && class == (row * 11) % classes ? INFINITY : near;
    default:
        return row % 5 == 1 && class == (row * 7) % classes    ? NAN
               : row % 5 == 2 && class == (row * 11) % classes ? INFINITY
               : row % 5 == 3                                  ? -INFINITY
                                                               : near;
    }
}

static int64_t apart(way way, int64_t classes) {
    return way == WITHOUT_GAPS ? classes : way == ROWS_APART ? classes + 3 : 2 * classes + 1;
}

static int64_t place_of(way way, int64_t row, int64_t class, int64_t classes) {
    return row * apart(way, classes) + class * (way == CLASSES_APART ? 2 : 1);
}

static void make_numbers(logits_kind kind, int64_t rows, int64_t classes) {
    for (int w = 0; w < WAYS; w++) {
        memset(&answer[w], 0xa5, sizeof answer[w]);
        for (int64_t r = 0; r < rows; r++)
            for (int64_t c = 0; c < classes; c++)
                answer[w].input[place_of((way)w, r, c, classes)] = logit_of(kind, r, c, classes);
    }
    for (int64_t r = 0; r < rows; r++) {
        label[r] = r % 9 == 4 ? -100 : (r * 37 + 5) % classes;
        weight[r] = (float)(r % 4) / 2;
        upstream[r] = r % 6 == 5 ? 1 : (float)r / 8 - 3;
        mask[r] = r % 7 != 3;
    }
    for (int64_t c = 0; c < classes; c++)
        class_weight[c] = (float)(c % 5) / 4;
}

static void ask_this_way(way way, asked asked, const char *loss, int64_t rows, int64_t classes) {
    answers *own = &answer[way];
    const int64_t shape[] = {rows, classes}, strides[] = {apart(way, classes), way == CLASSES_APART ? 2 : 1};
    const int64_t states[] = {rows, ONEPASS_ROW_STATE};
    const onepass_tensor logits = {own->input, ONEPASS_F32, 2, shape, strides};
    const onepass_tensor slopes = {own->gradient, ONEPASS_F32, 2, shape, strides};
    const onepass_tensor labels = {label, ONEPASS_I64, 1, shape, NULL},
                         values = {own->value, ONEPASS_F32, 1, shape, NULL};
    const onepass_tensor mean = {own->value, ONEPASS_F32, 0, NULL, NULL};
    const onepass_tensor one = {&upstream[0], ONEPASS_F32, 0, NULL, NULL},
                         each = {upstream, ONEPASS_F32, 1, shape, NULL};
    const onepass_tensor weights = {weight, ONEPASS_F32, 1, shape, NULL}, masks = {mask, ONEPASS_BOOL, 1, shape, NULL};
    const onepass_tensor by_class = {class_weight, ONEPASS_F32, 1, shape + 1, NULL};
    const onepass_tensor sums = {own->log_sum_exp, ONEPASS_F32, 1, shape, NULL};
    const onepass_tensor state = {own->state, ONEPASS_F64, 2, states, NULL};
    const onepass_tensor by = {&own->divided_by, ONEPASS_F64, 0, NULL, NULL};
    onepass_call call = ONEPASS_CALL_INIT;
    call.loss = loss;
    call.operand[0] = &logits;
    call.operand[1] = &labels;
    call.gradient[0] = asked >= OUTPUTS_ALONE ? NULL : &slopes;
    call.reduction = asked == EACH_ROW ? ONEPASS_NONE : ONEPASS_MEAN;
    call.value = asked == EACH_ROW ? &values : &mean;
    call.upstream = asked == A_MEAN ? &one : asked == EACH_ROW ? &each : NULL;
    call.threads = 1 + (int32_t)(rows % 3);
    if (asked == EACH_ROW) {
        call.weight = &weights;
        call.mask = &masks;
    } else if (asked == WITH_OUTPUTS || asked == OUTPUTS_ALONE) {
        call.operand[ONEPASS_CLASS_WEIGHT] = &by_class;
        call.log_sum_exp = &sums;
        call.row_state = &state;
        call.divided_by = &by;
    }
    CHECK_OK(onepass_run(&call), loss);
}

/* Classes of the gradient are those of the first way, and what lies between and behind them is as it was. */
static bool has_gradient_of_first(way way, int64_t rows, int64_t classes) {
    static float expected[ROOM];
    memset(expected, 0xa5, sizeof expected);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < classes; c++)
            expected[place_of(way, r, c, classes)] = answer[WITHOUT_GAPS].gradient[r * classes + c];
    return memcmp(expected, answer[way].gradient, sizeof expected) == 0;
}

static bool are_alike(const answers *a, const answers *b) {
    return memcmp(a->value, b->value, sizeof a->value) == 0 && memcmp(&a->state, &b->state, sizeof a->state) == 0 &&
           memcmp(a->log_sum_exp, b->log_sum_exp, sizeof a->log_sum_exp) == 0 &&
           memcmp(&a->divided_by, &b->divided_by, sizeof a->divided_by) == 0;
}

static void test_rows(const char *loss, logits_kind kind, asked asked, int64_t rows, int64_t classes) {
    make_numbers(kind, rows, classes);
    for (int w = 0; w < WAYS; w++) {
        const way way = (enum way)w;
        ask_this_way(way, asked, loss, rows, classes);
        CHECK(are_alike(&answer[0], &answer[w]) &&
                  (asked >= OUTPUTS_ALONE || has_gradient_of_first(way, rows, classes)),
              "%s of %d rows of %d classes, logits of kind %d, asked for %d: expected way %d to be bit-identical to 0",
              loss, (int)rows, (int)classes, kind, asked, w);
    }
}

int main(void) {
    static const int64_t sizes[] = {4,   10,  16,  17,  33,  47,  48,  49,  63,  64,  65,  80,   100,  127,  128, 129,
                                    144, 200, 255, 256, 257, 383, 385, 512, 513, 641, 896, 1000, 1023, 1024, 1025};
    static const int64_t many[] = {33, 1, 70, 32, 16, 5};
    const int sizes_count = (int)(sizeof sizes / sizeof *sizes);
    uint64_t turn = 0;
    for (int i = 0; i < sizes_count; i++)
        for (int kind = 0; kind < KINDS; kind++)
            for (int asked = 0; asked < ASKED; asked++, turn++)
                test_rows(turn % 2 ? "cross_entropy" : label_loss_in_turn(turn / 2), (logits_kind)kind,
                          (enum asked)asked, many[(turn + turn / 6) % 6], sizes[i]);
    return check_finish();
}
