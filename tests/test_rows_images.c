/*
 * Large images, whose rows come in blocks of which the next is brought while one is computed, and whose gradients may
 * be stored past the caches: they have the bits of the same rows one behind the other, wherever they begin, with gaps
 * between planes, in the logits' place, and however many threads there are; what lies between planes is as it was.
 */
#include "check.h"
#include "onepass.h"

#include <math.h>
#include <stdbool.h>

enum {
    FENCE = 16
};

typedef struct image_case {
    int64_t images, classes, rows; /* of an image */
    int64_t gap, shift;            /* numbers between planes, and before the first */
    bool has_gradient, in_place, weighs, is_none;
    int32_t threads;
} image_case;

typedef struct numbers {
    float *input, *gradient, *value, *log_sum_exp;
    int64_t count;
} numbers;

static float logit_at(int64_t i) {
    const int64_t kind = i % 1000003;
    return kind == 77 ? -INFINITY : kind == 78 ? 90000.0f : kind == 79 ? NAN : (float)(i * 2654435761 % 8191) / 512 - 8;
}

static float *floats(int64_t count) {
    float *made = malloc((size_t)count * sizeof *made);
    if (made)
        memset(made, 0xa5, (size_t)count * sizeof *made);
    return made;
}

/* By rows, or by planes: where a row's class is. */
static int64_t place_of(const image_case *c, bool by_planes, int64_t image, int64_t class, int64_t row) {
    return by_planes ? c->shift + (image * c->classes + class) * (c->rows + c->gap) + row
                     : (image * c->rows + row) * c->classes + class;
}

static bool make_numbers(const image_case *c, bool by_planes, numbers *made) {
    const int64_t all = c->images * c->rows;
    made->count = (by_planes ? c->shift + c->images * c->classes * (c->rows + c->gap) : all * c->classes) + FENCE;
    made->input = floats(made->count);
    made->gradient = floats(made->count);
    made->value = floats(all);
    made->log_sum_exp = floats(all);
    if (!made->input || !made->gradient || !made->value || !made->log_sum_exp)
        return false;
    for (int64_t image = 0; image < c->images; image++)
        for (int64_t class = 0; class < c->classes; class ++)
            for (int64_t row = 0; row < c->rows; row++)
                made->input[place_of(c, by_planes, image, class, row)] =
                    logit_at((image * c->rows + row) * c->classes + class);
    return true;
}

static void drop_numbers(numbers *made) {
    free(made->input);
    free(made->gradient);
    free(made->value);
    free(made->log_sum_exp);
}

/* (images, classes, rows), or (images, rows, classes) with the classes last. */
static void ask(const image_case *c, bool by_planes, const int64_t *label, const float *class_weight, numbers *own) {
    const int64_t plane = c->rows + c->gap;
    const int64_t shape[] = {c->images, by_planes ? c->classes : c->rows, by_planes ? c->rows : c->classes};
    const int64_t strides[] = {by_planes ? c->classes * plane : c->rows * c->classes, by_planes ? plane : c->classes,
                               1};
    const int64_t labels[] = {c->images, c->rows};
    const int64_t first = by_planes ? c->shift : 0;
    const onepass_tensor logits = {own->input + first, ONEPASS_F32, 3, shape, strides};
    const onepass_tensor slopes = {own->gradient + first, ONEPASS_F32, 3, shape, strides};
    const onepass_tensor target = {(void *)(uintptr_t)label, ONEPASS_I64, 2, labels, NULL};
    const onepass_tensor weights = {(void *)(uintptr_t)class_weight, ONEPASS_F32, 1, &c->classes, NULL};
    const onepass_tensor one = {own->value, ONEPASS_F32, 0, NULL, NULL},
                         each = {own->value, ONEPASS_F32, 2, labels, NULL};
    const onepass_tensor sums = {own->log_sum_exp, ONEPASS_F32, 2, labels, NULL};
    onepass_call call = ONEPASS_CALL_INIT;
    call.loss = "cross_entropy";
    call.axis = by_planes ? 2 : 3;
    call.operand[0] = &logits;
    call.operand[1] = &target;
    call.operand[ONEPASS_CLASS_WEIGHT] = c->weighs ? &weights : NULL;
    call.gradient[0] = !c->has_gradient ? NULL : c->in_place ? &logits : &slopes;
    call.reduction = c->is_none ? ONEPASS_NONE : ONEPASS_MEAN;
    call.value = c->is_none ? &each : &one;
    call.log_sum_exp = c->is_none ? &sums : NULL;
    call.threads = c->threads;
    CHECK_OK(onepass_run(&call), "images");
}

/* The gradient of the rows one behind the other, and nothing beside it. */
static bool has_gradient_of(const image_case *c, const numbers *planes, const numbers *rows) {
    const float *got = c->in_place ? planes->input : planes->gradient;
    const float *expected = c->in_place ? rows->input : rows->gradient;
    bool good = true;
    int64_t others = planes->count;
    for (int64_t image = 0; image < c->images; image++)
        for (int64_t class = 0; class < c->classes; class ++)
            for (int64_t row = 0; row < c->rows; row++, others--)
                good &= memcmp(&got[place_of(c, true, image, class, row)],
                               &expected[place_of(c, false, image, class, row)], sizeof *got) == 0;
    for (int64_t i = 0; i < planes->count; i++) {
        uint32_t bits;
        memcpy(&bits, &got[i], sizeof bits);
        others -= bits == 0xa5a5a5a5u; /* which no gradient is */
    }
    return good && others == 0;
}

static void test_images(const image_case *c) {
    const int64_t all = c->images * c->rows;
    numbers planes = {0}, rows = {0};
    int64_t *label = malloc((size_t)all * sizeof *label);
    float *class_weight = floats(c->classes);
    if (CHECK(label && class_weight && make_numbers(c, true, &planes) && make_numbers(c, false, &rows), "no memory")) {
        for (int64_t i = 0; i < all; i++)
            label[i] = i % 19 == 3 ? -100 : i * 7919 % c->classes;
        for (int64_t i = 0; i < c->classes; i++)
            class_weight[i] = (float)(i % 5) / 4;
        ask(c, false, label, class_weight, &rows);
        ask(c, true, label, class_weight, &planes);
        const size_t values = (size_t)(c->is_none ? all : 1) * sizeof *rows.value;
        CHECK(memcmp(planes.value, rows.value, values) == 0 &&
                  memcmp(planes.log_sum_exp, rows.log_sum_exp, (size_t)all * sizeof *rows.log_sum_exp) == 0,
              "%d images of %d classes and %d rows: other values", (int)c->images, (int)c->classes, (int)c->rows);
        CHECK(!c->has_gradient || has_gradient_of(c, &planes, &rows),
              "%d images of %d classes and %d rows: another gradient, or more than that", (int)c->images,
              (int)c->classes, (int)c->rows);
    }
    drop_numbers(&planes);
    drop_numbers(&rows);
    free(label);
    free(class_weight);
}

int main(void) {
    static const image_case cases[] = {
        {.images = 2, .classes = 21, .rows = 4096, .threads = 1},
        {.images = 3, .classes = 9, .rows = 4103, .gap = 5, .shift = 3, .is_none = true, .threads = 2},
        {.images = 1, .classes = 33, .rows = 5024, .gap = 1, .weighs = true, .threads = 3},
        {.images = 2, .classes = 36, .rows = 4128, .shift = 1, .is_none = true, .weighs = true, .threads = 1},
        {.images = 2, .classes = 12, .rows = 6001, .has_gradient = true, .threads = 2},
        {.images = 5, .classes = 21, .rows = 40, .gap = 3, .has_gradient = true, .in_place = true, .threads = 1},
        {.images = 2, .classes = 16, .rows = 524320, .has_gradient = true, .threads = 2},
        {.images = 2, .classes = 19, .rows = 450007, .gap = 9, .shift = 5, .has_gradient = true, .threads = 2},
        {.images = 1,
         .classes = 11,
         .rows = 1600033,
         .has_gradient = true,
         .in_place = true,
         .weighs = true,
         .threads = 1},
    };
    const bool quick = check_quick("two of three images of 64 MB and more");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (!quick || cases[i].rows < 100000 || i == 6)
            test_images(&cases[i]);
    return check_finish();
}
