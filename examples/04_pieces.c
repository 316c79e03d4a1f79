/*
 * 04: inputs that arrive in pieces.
 *
 * Shows two accumulators, as two machines would have them, that see the slices in
 * any order. One travels as bytes; merged, they have the very bits of one call over
 * everything.
 */
#include <stdio.h>
#include <string.h>

#include <onepass.h>

enum {
    SLICE = 4000, /* slices may begin and end at any element */
    COUNT = 5 * SLICE + 123,
    ROOM = 20000 /* for what one contiguous slice leaves of floats */
};

static float prediction[COUNT], target[COUNT];
static unsigned char bytes[ROOM];

static onepass_status add_slice(onepass_accumulator *accumulator, int64_t first) {
    const int64_t count = COUNT - first < SLICE ? COUNT - first : SLICE;
    const onepass_tensor p = {prediction + first, ONEPASS_F32, 1, &count, NULL};
    const onepass_tensor t = {target + first, ONEPASS_F32, 1, &count, NULL};
    const onepass_call call = {.size = sizeof call, .loss = "mse", .operand = {&p, &t}};
    return onepass_accumulator_add(accumulator, &call, first);
}

int main(void) {
    for (int i = 0; i < COUNT; i++) {
        prediction[i] = (float)(i % 1009) / 7;
        target[i] = (float)(i % 911) / 11;
    }
    const onepass_call call = {.size = sizeof call, .loss = "mse", .reduction = ONEPASS_MEAN};
    onepass_accumulator *here = NULL, *there = NULL, *arrived = NULL;
    float pieces = 0, whole = 0;
    const onepass_tensor value = {&pieces, ONEPASS_F32, 0, NULL, NULL};

    /* The last slices go here, the first ones there. */
    onepass_status status = onepass_accumulator_begin(&here, &call, COUNT);
    if (status == ONEPASS_OK)
        status = onepass_accumulator_begin(&there, &call, COUNT);
    for (int64_t slice = 5; slice >= 0 && status == ONEPASS_OK; slice--)
        status = add_slice(slice < 2 ? there : here, slice * SLICE);

    /* What is there travels as bytes, by whatever carries bytes. */
    size_t size = 0;
    if (status == ONEPASS_OK)
        status = onepass_accumulator_export(there, bytes, sizeof bytes, &size);
    if (status == ONEPASS_OK)
        status = onepass_accumulator_import(&arrived, bytes, size);
    if (status == ONEPASS_OK)
        status = onepass_accumulator_merge(here, arrived);
    if (status == ONEPASS_OK)
        status = onepass_accumulator_finish(here, &value);
    if (status == ONEPASS_OK)
        status = onepass_mean_f32("mse", COUNT, prediction, target, &whole, NULL);
    if (status != ONEPASS_OK)
        fprintf(stderr, "%s\n", onepass_message());
    onepass_accumulator_destroy(arrived);
    onepass_accumulator_destroy(there);
    onepass_accumulator_destroy(here);

    const int same = status == ONEPASS_OK && memcmp(&pieces, &whole, sizeof whole) == 0;
    printf("%zu bytes travelled; in pieces %a, in one call %a: %s\n", size, (double)pieces, (double)whole,
           same ? "the same bits" : "DIFFERENT");
    return same ? 0 : 1;
}
