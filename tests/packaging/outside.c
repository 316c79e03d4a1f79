/* A program outside of the repository. It is C99, C++98 and everything later at once, so it serves all the builds of
 * the packaging test. */
#include <onepass.h>

#include <stdio.h>

int main(void) {
    static float p[3] = {1, 2, 3}, t[3] = {1, 2, 5};
    float value = 0, gradient[3] = {0, 0, 0};
    int64_t shape[1];
    onepass_tensor prediction, target, loss;
    onepass_call call = ONEPASS_CALL_INIT;

    if (onepass_version() != ONEPASS_VERSION) {
        printf("the header is of version %d, the library of %d\n", ONEPASS_VERSION, onepass_version());
        return 1;
    }
    if (onepass_mean_f32("mse", 3, p, t, &value, gradient) != ONEPASS_OK || value != 4.0f / 3) {
        printf("onepass_mean_f32: %g \"%s\"\n", value, onepass_message());
        return 1;
    }
    shape[0] = 3;
    prediction.data = p;
    prediction.dtype = ONEPASS_F32;
    prediction.ndim = 1;
    prediction.shape = shape;
    prediction.strides = NULL;
    target = loss = prediction;
    target.data = t;
    loss.data = &value;
    loss.ndim = 0;
    call.loss = "mse";
    call.reduction = ONEPASS_SUM;
    call.operand[ONEPASS_PREDICTION] = &prediction;
    call.operand[ONEPASS_TARGET] = &target;
    call.value = &loss;
    if (onepass_run(&call) != ONEPASS_OK || value != 4) {
        printf("onepass_run: %g \"%s\"\n", value, onepass_message());
        return 1;
    }
    printf("onepass %s\n", onepass_version_text());
    return 0;
}
