/*
 * 03: shapes, strides and types.
 *
 * Shows a target that is one number a row, a target row that all rows share, every second
 * column of an array, and a bf16 prediction with a float target. Nothing is copied.
 */
#include <stdio.h>

#include <onepass.h>

static int show(const char *what, const onepass_tensor *prediction, const onepass_tensor *target) {
    float value;
    const onepass_tensor scalar = {&value, ONEPASS_F32, 0, NULL, NULL};
    if (onepass_forward("mse", ONEPASS_MEAN, prediction, target, &scalar) != ONEPASS_OK) {
        fprintf(stderr, "%s: %s\n", what, onepass_message());
        return 1;
    }
    printf("%-34s mse = %g\n", what, (double)value);
    return 0;
}

int main(void) {
    /* Two rows of four columns. */
    float prediction[] = {1, 2, 3, 4, 5, 6, 7, 8};
    const int64_t shape[] = {2, 4};
    const onepass_tensor p = {prediction, ONEPASS_F32, 2, shape, NULL};

    float per_row[] = {2, 6};
    const onepass_tensor row_constant = {per_row, ONEPASS_F32, 2, (const int64_t[]){2, 1}, NULL};

    float row[] = {1, 2, 3, 4};
    const onepass_tensor shared_row = {row, ONEPASS_F32, 1, (const int64_t[]){4}, NULL};

    /* Columns 0 and 2: strides count elements. */
    const onepass_tensor columns = {prediction, ONEPASS_F32, 2, (const int64_t[]){2, 2}, (const int64_t[]){4, 2}};

    /* bf16 is the upper half of a float: 1, 2, 3 and 4, as one row for all. */
    uint16_t half[] = {0x3f80, 0x4000, 0x4040, 0x4080};
    const onepass_tensor bf16 = {half, ONEPASS_BF16, 1, (const int64_t[]){4}, NULL};

    int failed = 0;
    failed |= show("target (2,1), one number a row:", &p, &row_constant);
    failed |= show("target (4,), a row for all:", &p, &shared_row);
    failed |= show("columns 0 and 2, target (2,1):", &columns, &row_constant);
    failed |= show("bf16 prediction, float target:", &bf16, &p);
    if (failed)
        return 1;

    /* A target of shape (2,) does not broadcast: shapes are aligned at the last dimension. */
    const onepass_tensor wrong = {per_row, ONEPASS_F32, 1, (const int64_t[]){2}, NULL};
    float value;
    const onepass_tensor scalar = {&value, ONEPASS_F32, 0, NULL, NULL};
    const onepass_status status = onepass_forward("mse", ONEPASS_MEAN, &p, &wrong, &scalar);
    printf("%s: %s\n", onepass_status_name(status), onepass_message());
    return status == ONEPASS_INVALID_SHAPE ? 0 : 1;
}
