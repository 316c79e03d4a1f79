/*
 * 07: weights.
 *
 * Sequences of different lengths in one padded array: a weight of 0 takes the padding out of the
 * loss and of its gradient, and the mean is over what counts. Then one weight a row, by
 * broadcasting, and the sum of the weights given as the divisor.
 */
#include <stdio.h>

#include <onepass.h>

enum {
    ROWS = 3,
    LENGTH = 4
};

int main(void) {
    float prediction[ROWS][LENGTH] = {{1, 2, 3, 2}, {2, 1, 77, 77}, {3, 77, 77, 77}}; /* 77 is padding */
    float target[ROWS][LENGTH] = {{0}};
    float counts[ROWS][LENGTH] = {{1, 1, 1, 1}, {1, 1, 0, 0}, {1, 0, 0, 0}};
    float row_weight[ROWS] = {1, 2, 4}, value, gradient[ROWS][LENGTH];
    const int64_t shape[] = {ROWS, LENGTH}, column[] = {ROWS, 1};

    const onepass_tensor p = {prediction, ONEPASS_F32, 2, shape, NULL};
    const onepass_tensor t = {target, ONEPASS_F32, 2, shape, NULL};
    const onepass_tensor w = {counts, ONEPASS_F32, 2, shape, NULL};
    const onepass_tensor v = {&value, ONEPASS_F32, 0, NULL, NULL};
    const onepass_tensor g = {gradient, ONEPASS_F32, 2, shape, NULL};

    onepass_call call = ONEPASS_CALL_INIT;
    call.loss = "smooth_l1";
    call.parameter_count = 1;
    call.parameter[0] = 0; /* beta = 0: the distance */
    call.operand[ONEPASS_PREDICTION] = &p;
    call.operand[ONEPASS_TARGET] = &t;
    call.weight = &w;
    call.value = &v;
    call.gradient[ONEPASS_PREDICTION] = &g;
    if (onepass_run(&call) != ONEPASS_OK)
        goto failed;
    printf("mean of what counts = %g; gradient of the second row: %g %g %g %g\n", (double)value, (double)gradient[1][0],
           (double)gradient[1][1], (double)gradient[1][2], (double)gradient[1][3]);

    /* Shape (3, 1): one weight for each row, padding included; the sum of the losses, not a mean. */
    const onepass_tensor per_row = {row_weight, ONEPASS_F32, 2, column, NULL};
    call.weight = &per_row;
    call.reduction = ONEPASS_SUM;
    if (onepass_run(&call) != ONEPASS_OK)
        goto failed;
    printf("rows weighted, padding included: sum = %g\n", (double)value);

    /* A divisor comes before the sum of the weights. Here it is that sum, so the mean is the first one again. */
    call.weight = &w;
    call.reduction = ONEPASS_MEAN;
    call.divisor = 7;
    if (onepass_run(&call) != ONEPASS_OK)
        goto failed;
    printf("divided by 7, which is the same: %g\n", (double)value);
    return 0;

failed:
    fprintf(stderr, "%s\n", onepass_message());
    return 1;
}
