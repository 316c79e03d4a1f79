#include "task.h"

#ifdef _OPENMP
#include <omp.h>
#endif

bool task_is_weighted(const task *task) {
    return task->input[WEIGHTS].file >= 0;
}

bool task_sums_weights(const task *task) {
    return task_is_weighted(task) && task->gradient.file.name && task->call.reduction == ONEPASS_MEAN &&
           task->common.count > 0;
}

uint64_t input_bytes(const input *input) {
    return (uint64_t)input->layout.count * dtype_bytes(input->layout.dtype);
}

int task_threads(const task *task) {
#ifdef _OPENMP
    const int here = omp_get_max_threads();
#else
    const int here = 1;
#endif
    return task->call.threads > 0 && task->call.threads < here ? task->call.threads : here;
}
