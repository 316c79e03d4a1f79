/* The two loops over calls: see plain.h. */
#include "plain.h"

#include <onepass.h>

#include <stddef.h>
#include <string.h>

static int64_t count_of(const plain_work *work) {
    return work->shape[0] * work->shape[1] * work->shape[2] * work->shape[3];
}

static void run_plain(const plain_loss *loss, plain_work *work) {
    const int64_t count = count_of(work);
    const float *p = work->operand[0], *t = work->operand[1], scale = (float)(1 / (double)count);
    switch (work->job) {
    case PLAIN_FORWARD:
        work->value = loss->forward(count, p, t, work->parameter, work->threads);
        break;
    case PLAIN_BACKWARD:
        loss->backward(count, p, t, work->parameter, scale, work->gradient, work->threads);
        break;
    case PLAIN_BOTH:
        work->value = loss->both(count, p, t, work->parameter, scale, work->gradient, work->threads);
        break;
    case PLAIN_NESTED:
        work->value = loss->nested(work);
        break;
    case PLAIN_READ:
        work->value = plain_read(count, p, t, work->threads);
        break;
    default:
        plain_write(count, p, t, work->gradient, work->threads);
    }
}

/* With AVX2 the library is compared with loops that have no wider vectors either. */
static const plain_loss *find_loops(const plain_work *work) {
#if defined(PLAIN_HAS_AVX2)
    onepass_machine_info machine = {.size = sizeof machine};
    if (onepass_machine(&machine) == ONEPASS_OK && strcmp(machine.instruction_set, "avx2") == 0)
        return work->tuned ? plain_tuned_avx2_loss_named(work->loss) : plain_avx2_loss_named(work->loss);
#endif
    return work->tuned ? plain_tuned_loss_named(work->loss) : plain_loss_named(work->loss);
}

const char *plain_repeat(plain_work *work, int64_t calls) {
    const plain_loss *loss = find_loops(work);
    if (!loss)
        return "there is no plain loop for this loss";
    for (int64_t i = 0; i < calls; i++)
        run_plain(loss, work);
    return NULL;
}

const char *onepass_repeat(plain_work *work, int64_t calls) {
    const int first = 4 - work->ndim;
    onepass_tensor operand[2], gradient = {work->gradient, ONEPASS_F32, work->ndim, work->shape + first, NULL};
    for (int k = 0; k < 2; k++)
        operand[k] = (onepass_tensor){(void *)work->operand[k], ONEPASS_F32, work->ndim, work->shape + first,
                                      work->strides[k] + first};
    const onepass_tensor value = {&work->value, ONEPASS_F32, 0, NULL, NULL};
    const onepass_call call = {.size = sizeof call,
                               .loss = work->loss,
                               .operand = {&operand[0], &operand[1]},
                               .value = work->job == PLAIN_BACKWARD ? NULL : &value,
                               .gradient = {work->gradient ? &gradient : NULL},
                               .threads = work->threads};
    for (int64_t i = 0; i < calls; i++)
        if (onepass_run(&call) != ONEPASS_OK)
            return onepass_message();
    return NULL;
}
