/* The numbers that a call has one of for each row: a row's share of them, and outputs. */
#ifndef ONEPASS_CPU_ROW_NUMBERS_H
#define ONEPASS_CPU_ROW_NUMBERS_H

#include "cpu/memory.h"

ALWAYS_INLINE double element_of(const view *view, int64_t row, double otherwise) {
    return view->data ? load_scalar(address_of(view, row), view->dtype) : otherwise;
}

ALWAYS_INLINE real upstream_of(const job *job, int64_t row) {
    if (!job->upstream.data)
        return (real)job->expected_upstream;
    return (real)(job->reduction == ONEPASS_NONE ? element_of(&job->upstream, row, 1)
                                                 : load_scalar(job->upstream.data, job->upstream.dtype));
}

ALWAYS_INLINE void write_number(const view *view, int64_t row, double number) {
    if (view->data)
        store_scalar(address_of(view, row), view->dtype, number);
}

#endif
