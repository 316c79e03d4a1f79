/*
 * 12: cross-entropy, a loss over rows.
 *
 * Rows of logits and a class index for each, the last one padding: the mean loss, its gradient and the predicted
 * classes, all from one call. Then the same with the classes in another dimension, as images have them.
 */
#include <stdio.h>
#include <string.h>

#include <onepass.h>

enum {
    ROWS = 4,
    CLASSES = 3,
    PADDING = -100 /* ignore_index unless said otherwise */
};

int main(void) {
    float logits[ROWS][CLASSES] = {{2, 1, 0}, {0, 3, 1}, {1, 1, 1}, {5, 5, 5}};
    int64_t labels[ROWS] = {0, 1, 2, PADDING}, predicted[ROWS];
    float value, gradient[ROWS][CLASSES];
    const int64_t shape[] = {ROWS, CLASSES};

    const onepass_tensor z = {logits, ONEPASS_F32, 2, shape, NULL};
    const onepass_tensor y = {labels, ONEPASS_I64, 1, shape, NULL};
    const onepass_tensor v = {&value, ONEPASS_F32, 0, NULL, NULL};
    const onepass_tensor g = {gradient, ONEPASS_F32, 2, shape, NULL};
    const onepass_tensor p = {predicted, ONEPASS_I64, 1, shape, NULL};

    onepass_call call = ONEPASS_CALL_INIT;
    call.loss = "cross_entropy";
    call.operand[ONEPASS_PREDICTION] = &z;
    call.operand[ONEPASS_TARGET] = &y;
    call.value = &v;
    call.gradient[ONEPASS_PREDICTION] = &g;
    call.predicted = &p;
    if (onepass_run(&call) != ONEPASS_OK)
        goto failed;
    printf("mean of 3 rows = %.4f; gradient of the first: %.4f %.4f %.4f; predicted %d %d %d, padding %d\n",
           (double)value, (double)gradient[0][0], (double)gradient[0][1], (double)gradient[0][2], (int)predicted[0],
           (int)predicted[1], (int)predicted[2], (int)predicted[3]);

    /* The same memory, seen as classes by rows: the classes are the first dimension, and the strides say how they lie.
     */
    const int64_t images[] = {CLASSES, ROWS}, strides[] = {1, CLASSES};
    const onepass_tensor z_first = {logits, ONEPASS_F32, 2, images, strides};
    float same;
    const onepass_tensor v_first = {&same, ONEPASS_F32, 0, NULL, NULL};
    onepass_call other = ONEPASS_CALL_INIT;
    other.loss = "cross_entropy";
    other.axis = 1; /* counted from 1: 0 is the default, the second */
    other.operand[ONEPASS_PREDICTION] = &z_first;
    other.operand[ONEPASS_TARGET] = &y;
    other.value = &v_first;
    if (onepass_run(&other) != ONEPASS_OK)
        goto failed;
    printf("classes first: %s\n", memcmp(&same, &value, sizeof value) == 0 ? "the same bits" : "other bits");

    labels[1] = 7;
    if (onepass_run(&call) == ONEPASS_OUT_OF_BOUNDS)
        printf("%s\n", onepass_message());
    return 0;

failed:
    fprintf(stderr, "%s\n", onepass_message());
    return 1;
}
