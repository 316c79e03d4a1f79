/* What a part was computed from, so that onepass merge can tell parts of other files: types and shapes, and some
 * numbers on both sides of where it begins and ends. They lie where the part is read anyway, and the part before, or
 * behind, has seen the same ones. */
#include "origin.h"
#include "operands.h"
#include "rows.h"

#include <string.h>

_Static_assert((int)PART_INPUTS == (int)INPUTS, "a part file knows all inputs");

enum {
    REACH = 32,         /* elements, or rows, on either side */
    MOST_NUMBERS = 8192 /* of an input on either side: of long rows, fewer, and their first numbers alone */
};

/* ------------------------------------------------------------------- fingerprints -- */

static uint64_t number_of(const unsigned char *at, size_t size) {
    uint8_t u8;
    uint16_t u16;
    uint32_t u32;
    uint64_t u64;
    switch (size) {
    case 1:
        memcpy(&u8, at, sizeof u8);
        return u8;
    case 2:
        memcpy(&u16, at, sizeof u16);
        return u16;
    case 4:
        memcpy(&u32, at, sizeof u32);
        return u32;
    default:
        memcpy(&u64, at, sizeof u64);
        return u64;
    }
}

/* Every step maps numbers, and what came before, one to one. */
static uint64_t joined(uint64_t found, uint64_t number) {
    found = (found ^ number) * UINT64_C(0x9e3779b97f4a7c15);
    return found ^ found >> 32;
}

static uint64_t joined_tensor(uint64_t found, const onepass_tensor *tensor, int64_t count) {
    const size_t size = onepass_dtype_size(tensor->dtype);
    for (int64_t i = 0; i < count; i++)
        found = joined(found, number_of((const unsigned char *)tensor->data + (size_t)i * size, size));
    return found;
}

/* ------------------------------------------------------------------------- reading -- */

/* Numbers of an input that lie one behind the other, from an element, or from a row's first, on. */
static bool join_run(pass *pass, int input, int64_t first, int64_t count, uint64_t *found) {
    const onepass_shape shape = {1, {count}, count};
    onepass_tensor tensor;
    const bool taken = pass->task->loss->over_rows
                           ? take_rows(pass, input, first, &shape, &tensor)
                           : source_take(&pass->source[input], first, &shape, &pass->pieces, 1, &tensor);
    if (taken)
        *found = joined_tensor(*found, &tensor, count);
    return taken;
}

static bool join_input(pass *pass, int input, int64_t at, uint64_t *found) {
    const task *task = pass->task;
    const int64_t width = task->loss->over_rows ? numbers_of_a_row(task, input) : 1;
    const int64_t most = width < 2 ? REACH : MOST_NUMBERS / width;
    const int64_t reach = most < 1 ? 1 : most < REACH ? most : REACH;
    const int64_t first = at < reach ? 0 : at - reach;
    const int64_t end = task->common.count - at < reach ? task->common.count : at + reach;
    bool goes_on = true;
    *found = joined(*found, (uint64_t)input);
    if (width == 1)
        return join_run(pass, input, first, end - first, found);
    for (int64_t row = first; row < end && goes_on; row++)
        goes_on = join_run(pass, input, row, width < MOST_NUMBERS ? width : MOST_NUMBERS, found);
    return goes_on;
}

/* Of class weights the library has one. */
static bool join_place(pass *pass, int64_t at, uint64_t *found) {
    const task *task = pass->task;
    bool goes_on = true;
    *found = 0;
    if (at == 0 || at == task->common.count)
        return true;
    for (int k = 0; k < INPUTS && goes_on; k++)
        if (task_has(task, k) && !(k == ONEPASS_CLASS_WEIGHT && takes_class_weight(task->loss)))
            goes_on = join_input(pass, k, at, found);
    return goes_on;
}

bool find_origin(pass *pass, part_origin *origin) {
    const task *task = pass->task;
    *origin = (part_origin){.axis = task->loss->over_rows ? task->axis : 0};
    for (int k = 0; k < INPUTS; k++) {
        const layout *layout = &task->input[k].layout;
        if (!task_has(task, k))
            continue;
        origin->input[k] = (part_input){.dtype = layout->dtype, .ndim = layout->ndim};
        memcpy(origin->input[k].shape, layout->shape, sizeof layout->shape);
    }
    return join_place(pass, pass->first, &origin->before) && join_place(pass, pass->end, &origin->behind);
}
