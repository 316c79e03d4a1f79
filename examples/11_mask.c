/*
 * 11: a mask.
 *
 * Sequences of different lengths in one padded array. The mask says which elements take part: the mean is over
 * those, and the others have the gradient 0, whatever stands there, NaN included, which no weight can do. Then a
 * loss of three operands under the same mask, with a gradient for each of them.
 */
#include <math.h>
#include <stdio.h>

#include <onepass.h>

enum {
    ROWS = 3,
    LENGTH = 4
};

int main(void) {
    const float none = NAN; /* what stands where there is nothing */
    float prediction[ROWS][LENGTH] = {{1, 2, 3, 2}, {2, 1, none, none}, {3, none, none, none}};
    float target[ROWS][LENGTH] = {{0}}, variance[ROWS] = {1, 4, 1};
    uint8_t counts[ROWS][LENGTH] = {{1, 1, 1, 1}, {1, 1, 0, 0}, {1, 0, 0, 0}};
    float value, gradient[3][ROWS][LENGTH];
    const int64_t shape[] = {ROWS, LENGTH}, column[] = {ROWS, 1};

    const onepass_tensor p = {prediction, ONEPASS_F32, 2, shape, NULL};
    const onepass_tensor t = {target, ONEPASS_F32, 2, shape, NULL};
    const onepass_tensor per_row = {variance, ONEPASS_F32, 2, column, NULL};
    const onepass_tensor m = {counts, ONEPASS_BOOL, 2, shape, NULL};
    const onepass_tensor v = {&value, ONEPASS_F32, 0, NULL, NULL};
    const onepass_tensor g[3] = {{gradient[0], ONEPASS_F32, 2, shape, NULL},
                                 {gradient[1], ONEPASS_F32, 2, shape, NULL},
                                 {gradient[2], ONEPASS_F32, 2, shape, NULL}};

    onepass_call call = ONEPASS_CALL_INIT;
    call.loss = "l1";
    call.operand[ONEPASS_PREDICTION] = &p;
    call.operand[ONEPASS_TARGET] = &t;
    call.mask = &m;
    call.value = &v;
    call.gradient[ONEPASS_PREDICTION] = &g[ONEPASS_PREDICTION];
    if (onepass_run(&call) != ONEPASS_OK)
        goto failed;
    printf("mean of the 7 that count = %g; gradient of the second row: %.3g %.3g %g %g\n", (double)value,
           (double)gradient[0][1][0], (double)gradient[0][1][1], (double)gradient[0][1][2], (double)gradient[0][1][3]);

    /* The third operand is broadcast like the others; a gradient has the common shape. */
    call.loss = "gaussian_nll";
    call.operand[ONEPASS_THIRD] = &per_row;
    call.gradient[ONEPASS_TARGET] = &g[ONEPASS_TARGET];
    call.gradient[ONEPASS_THIRD] = &g[ONEPASS_THIRD];
    call.reduction = ONEPASS_BATCHMEAN; /* the sum divided by the number of rows */
    if (onepass_run(&call) != ONEPASS_OK)
        goto failed;
    printf("gaussian_nll, summed over a row on average = %.4f; slope in the second row's variance = %.4f\n",
           (double)value, (double)(gradient[2][1][0] + gradient[2][1][1] + gradient[2][1][2] + gradient[2][1][3]));
    return 0;

failed:
    fprintf(stderr, "%s\n", onepass_message());
    return 1;
}
