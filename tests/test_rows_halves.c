/*
 * Long rows of bf16, whose slopes may go straight from the logits in memory to the gradient there: they have the bits
 * of rows whose classes lie two numbers apart, which never do, whatever the logits are, where the label is, by what the
 * gradient is multiplied, and over the logits themselves; what lies behind is as it was.
 */
#include "check.h"
#include "oracle.h"
#include "row_losses.h"

#include <math.h>

enum {
    MOST_ROWS = 7,
    MOST_CLASSES = 4100,
    FENCE = 16,
    ROOM = MOST_ROWS * 2 * MOST_CLASSES + FENCE
};

typedef enum halves_kind {
    CALM,
    FAR,  /* some logits are far below the others, whose exponentials are 0 or denormal */
    ODD,  /* rows with NaN, inf, nothing but -inf, or logits beyond whole numbers of float */
    TINY, /* slopes are denormal, or round to 0 */
    KINDS
} halves_kind;

typedef struct halves {
    uint16_t input[ROOM], gradient[ROOM];
    float value;
} halves;

static halves together, apart;
static int64_t label[MOST_ROWS];

static double logit_at(halves_kind kind, int64_t row, int64_t class, int64_t classes) {
    const int64_t i = row * classes + class;
    const double near = (double)(i * 2654435761 % 4093) / 512 - 4;
    switch (kind) {
    case FAR:
        return i * 31 % 61 == 0 ? -INFINITY : i * 17 % 53 == 0 ? -95 : i * 19 % 47 == 0 ? near - 87 : near;
    case ODD:
        return row % 5 == 1   ? (class == row * 7 % classes ? NAN : near)
               : row % 5 == 2 ? (class == row * 11 % classes ? INFINITY : near)
               : row % 5 == 3 ? -INFINITY
               : row % 5 == 4 ? 1e8 + 8 * near
                              : near;
    case TINY:
        return class / 1024 % 2 ? near - 80 : near;
    default:
        return near;
    }
}

/* `by` is the distance of classes; of two, one is nobody's. */
static void ask_for(halves *own, int64_t by, const char *loss, int64_t rows, int64_t classes, float upstream,
                    bool in_place, int32_t reduction) {
    float values[MOST_ROWS];
    const int64_t shape[] = {rows, classes}, strides[] = {by * classes, by};
    const onepass_tensor logits = {own->input, ONEPASS_BF16, 2, shape, strides};
    const onepass_tensor slopes = {in_place ? own->input : own->gradient, ONEPASS_BF16, 2, shape, strides};
    const onepass_tensor labels = {label, ONEPASS_I64, 1, shape, NULL};
    const onepass_tensor one = {&own->value, ONEPASS_F32, 0, NULL, NULL}, each = {values, ONEPASS_F32, 1, shape, NULL};
    const onepass_tensor scale = {&upstream, ONEPASS_F32, 0, NULL, NULL};
    const float scales[MOST_ROWS] = {upstream, 1, upstream, -2, upstream, 0.5f, upstream};
    const onepass_tensor scaled = {(void *)(uintptr_t)scales, ONEPASS_F32, 1, shape, NULL};
    onepass_call call = ONEPASS_CALL_INIT;
    call.loss = loss;
    call.operand[0] = &logits;
    call.operand[1] = &labels;
    call.gradient[0] = &slopes;
    call.reduction = reduction;
    call.value = reduction == ONEPASS_NONE ? &each : &one;
    call.upstream = reduction == ONEPASS_NONE ? &scaled : &scale;
    call.threads = 1 + (int32_t)(classes % 2);
    CHECK_OK(onepass_run(&call), loss);
    for (int64_t r = 0; reduction == ONEPASS_NONE && r < rows; r++)
        own->value = r == 0 || values[r] > own->value ? values[r] : own->value;
}

static void test_halves(halves_kind kind, const char *loss, int64_t rows, int64_t classes, float upstream,
                        bool in_place, int32_t reduction) {
    memset(&together, 0xa5, sizeof together);
    memset(&apart, 0xa5, sizeof apart);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < classes; c++) {
            oracle_store(ONEPASS_BF16, &together.input[r * classes + c], logit_at(kind, r, c, classes));
            apart.input[2 * (r * classes + c)] = together.input[r * classes + c];
        }
    for (int64_t r = 0; r < rows; r++)
        label[r] = r == 3 ? -100 : (r * 1537 + 1023 + (r > 4 ? classes - 1 : 0)) % classes;
    ask_for(&together, 1, loss, rows, classes, upstream, in_place, reduction);
    ask_for(&apart, 2, loss, rows, classes, upstream, in_place, reduction);
    const uint16_t *got = in_place ? together.input : together.gradient;
    const uint16_t *other = in_place ? apart.input : apart.gradient;
    int64_t differ = 0, touched = 0;
    for (int64_t i = 0; i < rows * classes; i++) {
        differ += got[i] != other[2 * i];
        touched += other[2 * i + 1] != 0xa5a5;
    }
    for (int64_t i = rows * classes; i < ROOM; i++)
        touched += together.gradient[i] != 0xa5a5 || together.input[i] != 0xa5a5;
    CHECK(differ == 0 && touched == 0 && memcmp(&together.value, &apart.value, sizeof apart.value) == 0,
          "%s, %d rows of %d classes, logits of kind %d, upstream %g, in place %d, reduction %d: %lld slopes differ, "
          "%lld "
          "numbers beside them were written",
          loss, (int)rows, (int)classes, kind, (double)upstream, in_place, reduction, (long long)differ,
          (long long)touched);
}

int main(void) {
    static const int64_t sizes[] = {1024, 1025, 2048, 3000, 3072, 4096, 4099};
    static const uint32_t odd_nan = 0xffc12345u;
    float upstreams[] = {1, -0.37f, 1e-30f, INFINITY, NAN, 3e38f};
    memcpy(&upstreams[4], &odd_nan, sizeof odd_nan);
    uint64_t turn = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int kind = 0; kind < KINDS; kind++)
            for (int u = 0; u < 6; u++, turn++)
                test_halves((halves_kind)kind, turn % 2 ? "cross_entropy" : label_loss_in_turn(turn / 2),
                            2 + (int64_t)(turn % 6), sizes[i], upstreams[u], turn % 3 == 2,
                            turn % 4 == 1   ? ONEPASS_NONE
                            : turn % 4 == 2 ? ONEPASS_SUM
                                            : ONEPASS_MEAN);
    return check_finish();
}
