/*
 * 02: a straight line fitted by gradient descent.
 *
 * Shows the loss and its gradient from one pass over the inputs, which is all that
 * a training step needs: the chain rule takes it from there.
 */
#include <stdio.h>

#include <onepass.h>

enum {
    COUNT = 64,
    STEPS = 80
};

int main(void) {
    /* The points lie on y = 3 x - 1; the model starts at y = 0 x + 0. */
    float x[COUNT], target[COUNT], prediction[COUNT], gradient[COUNT];
    for (int i = 0; i < COUNT; i++) {
        x[i] = -1 + 2 * (float)i / (COUNT - 1);
        target[i] = 3 * x[i] - 1;
    }
    float slope = 0, offset = 0, value;

    for (int step = 0; step <= STEPS; step++) {
        for (int i = 0; i < COUNT; i++)
            prediction[i] = slope * x[i] + offset;

        if (onepass_mean_f32("smooth_l1", COUNT, prediction, target, &value, gradient) != ONEPASS_OK) {
            fprintf(stderr, "%s\n", onepass_message());
            return 1;
        }
        if (step % 20 == 0)
            printf("step %2d   loss %.6f   y = %.4f x %+.4f\n", step, (double)value, (double)slope, (double)offset);

        /* The gradient has 1/N in it already. */
        float slope_gradient = 0, offset_gradient = 0;
        for (int i = 0; i < COUNT; i++) {
            slope_gradient += gradient[i] * x[i];
            offset_gradient += gradient[i];
        }
        slope -= 0.5f * slope_gradient;
        offset -= 0.5f * offset_gradient;
    }
    printf("fitted: y = %.3f x %+.3f\n", (double)slope, (double)offset);
    return 0;
}
