/*
 * Whatever NaN comes in, the canonical one comes out, in each type: 16-bit results are those in float, rounded. Every
 * loss, with NaNs of either sign whose bits are all set, or few, and infinities among its numbers.
 */
#include <stdbool.h>

#include "check.h"
#include "oracle.h"

enum {
    ROWS = 7,
    MOST = 1500, /* elements of a row */
    OPERANDS = 3
};

static float operand[OPERANDS][ROWS * MOST], in_float[ROWS * MOST], value_in_float[ROWS * MOST];
static uint16_t rounded[ROWS * MOST], value_rounded[ROWS * MOST];
static int64_t label[ROWS];
static float sign_of_row[ROWS];

static uint32_t next_random(void) {
    static uint64_t state = UINT64_C(88172645463325252);
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 16);
}

static float number(void) {
    static const uint32_t special[] = {0x7fffffff, 0xffffffff, 0x7f800001, 0xffc12345, 0x7f800000, 0xff800000};
    const uint32_t choice = next_random() % 14;
    if (choice < 6) {
        float x;
        memcpy(&x, &special[choice], sizeof x);
        return x;
    }
    return (float)(next_random() % 4000) / 1000 - (choice == 6 ? 4 : 0);
}

/* What an operand of the loss is: numbers, or a class or a sign for each row. */
static onepass_tensor operand_of(const onepass_loss_info *loss, int k, const int64_t *shape) {
    const bool of_rows =
        k == 1 && (loss->over_rows == ONEPASS_CLASS_INDEX || loss->over_rows == ONEPASS_CLASS_A_VECTOR);
    if (of_rows)
        return (onepass_tensor){label, ONEPASS_I64, 1, shape, NULL};
    if (loss->over_rows == ONEPASS_NUMBER_A_VECTOR && k == loss->operand_count - 1)
        return (onepass_tensor){sign_of_row, ONEPASS_F32, 1, shape, NULL};
    return (onepass_tensor){operand[k], ONEPASS_F32, 2, shape, NULL};
}

/* How many operands are given, class weights not among them, and how many have a gradient. */
static int operands_of(const onepass_loss_info *loss) {
    const bool has_class = loss->over_rows == ONEPASS_CLASS_INDEX || loss->over_rows == ONEPASS_CLASS_A_VECTOR;
    return has_class || loss->over_rows == ONEPASS_CLASS_PROBABILITIES ? 2 : loss->operand_count;
}

static void run(const onepass_loss_info *loss, int which, int32_t reduction, const int64_t *shape, int32_t dtype,
                void *gradient, void *value) {
    onepass_tensor in[OPERANDS];
    const onepass_tensor g = {gradient, dtype, 2, shape, NULL};
    const onepass_tensor one = {value, dtype, 0, NULL, NULL},
                         each = {value, dtype, loss->over_rows ? 1 : 2, shape, NULL};
    onepass_call call = {.size = sizeof call, .loss = loss->name, .reduction = reduction};
    for (int k = 0; k < operands_of(loss); k++) {
        in[k] = operand_of(loss, k, shape);
        call.operand[k] = &in[k];
    }
    call.value = reduction == ONEPASS_NONE ? &each : &one;
    call.gradient[which] = &g;
    CHECK_OK(onepass_run(&call), loss->name);
}

static void compare(const onepass_loss_info *loss, int32_t dtype, int64_t count, const float *wanted,
                    const uint16_t *got) {
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &wanted[i], sizeof bits);
        uint16_t expected;
        oracle_store(dtype, &expected, wanted[i]);
        const bool is_nan = (bits & 0x7fffffff) > 0x7f800000;
        if (is_nan)
            expected = dtype == ONEPASS_F16 ? 0x7e00 : 0x7fc0;
        CHECK((!is_nan || bits == 0x7fc00000) && got[i] == expected,
              "%s, element %lld: float %08x, 16 bits %04x, not %04x", loss->name, (long long)i, bits, got[i], expected);
    }
}

static void test_loss(const onepass_loss_info *loss, int64_t classes) {
    const int64_t shape[] = {ROWS, classes};
    for (int32_t reduction = ONEPASS_MEAN; reduction <= ONEPASS_NONE; reduction++)
        for (int which = 0; which < operands_of(loss); which++) {
            if (operand_of(loss, which, shape).ndim != 2)
                continue;
            /* A mean or sum is rounded from double. */
            const int64_t values = reduction != ONEPASS_NONE ? 0 : loss->over_rows ? ROWS : ROWS * classes;
            run(loss, which, reduction, shape, ONEPASS_F32, in_float, value_in_float);
            for (int32_t dtype = ONEPASS_F16; dtype <= ONEPASS_BF16; dtype++) {
                run(loss, which, reduction, shape, dtype, rounded, value_rounded);
                compare(loss, dtype, ROWS * classes, in_float, rounded);
                compare(loss, dtype, values, value_in_float, value_rounded);
            }
        }
}

int main(void) {
    static const int64_t sizes[] = {1500, 10, 37, 1024, 3, 600};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        for (int row = 0; row < ROWS; row++) {
            label[row] = next_random() % sizes[s];
            sign_of_row[row] = row % 2 ? 1.0F : -1.0F;
        }
        for (int k = 0; k < OPERANDS; k++)
            for (int i = 0; i < ROWS * MOST; i++)
                operand[k][i] = number();
        for (int i = 0; onepass_loss_at(i); i++)
            test_loss(onepass_loss_at(i), sizes[s]);
        for (int i = 0; onepass_row_loss_at(i); i++)
            test_loss(onepass_row_loss_at(i), sizes[s]);
        for (int i = 0; onepass_vector_loss_at(i); i++)
            if (onepass_vector_loss_at(i)->over_rows !=
                ONEPASS_CLASSES_A_VECTOR) /* lists, which have tests of their own */
                test_loss(onepass_vector_loss_at(i), sizes[s]);
    }
    return check_finish();
}
