/*
 * 01: the mean squared error of two arrays, in one call.
 *
 * Shows the shortest function of the library and how an error is reported.
 */
#include <stdio.h>

#include <onepass.h>

int main(void) {
    const float prediction[] = {2.5f, 0.0f, 2.0f, 8.0f};
    const float target[] = {3.0f, -0.5f, 2.0f, 7.0f};
    float value;

    if (onepass_mean_f32("mse", 4, prediction, target, &value, NULL) != ONEPASS_OK) {
        fprintf(stderr, "%s\n", onepass_message());
        return 1;
    }
    printf("mse = %g\n", (double)value);

    /* What is wrong comes back as a status and a sentence, and nothing is written. */
    const onepass_status status = onepass_mean_f32("msee", 4, prediction, target, &value, NULL);
    printf("%s: %s\n", onepass_status_name(status), onepass_message());
    return status == ONEPASS_INVALID_ARGUMENT ? 0 : 1;
}
