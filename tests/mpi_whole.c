/* What the MPI example comes to in one call over the whole array. */
#include <onepass.h>
#include <stdio.h>

enum {
    COUNT = 3000017
};
static float p[COUNT], t[COUNT];

int main(void) {
    const int64_t count = COUNT;
    double mean = 0;
    for (int64_t i = 0; i < COUNT; i++) {
        p[i] = (float)(i % 1009) / 7;
        t[i] = (float)(i % 911) / 11;
    }
    const onepass_tensor prediction = {p, ONEPASS_F32, 1, &count, NULL}, target = {t, ONEPASS_F32, 1, &count, NULL};
    const onepass_tensor value = {&mean, ONEPASS_F64, 0, NULL, NULL};
    if (onepass_forward("mse", ONEPASS_MEAN, &prediction, &target, &value) != ONEPASS_OK)
        return puts(onepass_message()), 1;
    printf("%a\n", mean);
    return 0;
}
