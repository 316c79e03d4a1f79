/*
 * What is computed of a thread's own lanes of a line, whichever way they have come: terms, gradients and the sums of
 * lanes.
 */
#ifndef ONEPASS_CUDA_PAIRWISE_COMPUTE_H
#define ONEPASS_CUDA_PAIRWISE_COMPUTE_H

#include "cuda/pairwise/lines.h"

typedef real (*loss_function)(const real *x, const real *parameter);

/* What each tile yields, the same for all. */
typedef struct outputs {
    bool sum, values;
    unsigned gradients; /* a bit for each operand */
    bool upstream_is_tensor;
    real scale;
    real upstream; /* if it is one number; 1 if there is none */
    const real *parameter;
} outputs;

template <direction direction> ALWAYS_INLINE outputs outputs_of(const cuda_head *head) {
    const bool any = direction == ANY_OUTPUT, none = any && head->reduction == ONEPASS_NONE;
    outputs outputs;
    const bool forward = direction < BOTH;
    outputs.sum = forward || direction == BOTH || (any && !none && head->total.value);
    outputs.values = none && head->data[CUDA_VALUE];
    outputs.gradients = direction == BOTH || direction == BACKWARD;
    for (int k = 0; k < MOST_OPERANDS && any; k++)
        outputs.gradients |= (unsigned)(head->data[CUDA_GRADIENT + k] != NULL) << k;
    outputs.upstream_is_tensor = none && head->data[CUDA_UPSTREAM];
    outputs.scale = REAL(head->scale);
    outputs.parameter = REAL(head->parameter);
    outputs.upstream = 1;
    if (!forward && !none && head->data[CUDA_UPSTREAM])
        outputs.upstream = (real)load_scalar(head->data[CUDA_UPSTREAM], head->dtype[CUDA_UPSTREAM]);
    return outputs;
}

/* The sums of a thread's own lanes. */
typedef struct lane_sums {
    real sum[ORDER_OWN_LANES], two[ORDER_OWN_LANES], four[ORDER_OWN_LANES];
} lane_sums;

ALWAYS_INLINE void add_line(int line, const real *term, lane_sums *sums) {
    EACH_OWN order_line(line, term[own], &sums->sum[own], &sums->two[own], &sums->four[own]);
}

/* A thread's own lanes of a line: for each of them its operands. */
typedef struct own_line {
    real x[ORDER_OWN_LANES][MOST_OPERANDS];
} own_line;

/* The upstream gradient comes last, so that a gradient may also be scaled later with the same bits. */
ALWAYS_INLINE real gradient_of(const outputs *outputs, real slope, real upstream) {
    return canonical(slope * outputs->scale * upstream);
}

/* Terms beyond the end of the input are +0. */
ALWAYS_INLINE void end_line(const tile *tile, int line, real *x) {
    EACH_OWN x[own] = own_element(tile, line, own) < tile->count ? x[own] : 0;
}

#define EACH_OPERAND _Pragma("unroll") for (int k = 0; k < loss::OPERANDS; k++)

template <typename loss, access access> ALWAYS_INLINE void unpack_line(bool f16, const numbers *from, own_line *into) {
    EACH_OPERAND {
        real x[ORDER_OWN_LANES];
        unpack<access>(f16, &from[k], x);
        EACH_OWN into->x[own][k] = x[own];
    }
}

/* Lines that were prefetched, from `first` on. Plain ones are whole and aligned. */
template <typename loss, direction direction, access access, int lines>
ALWAYS_INLINE void compute_lines(const tile *tile, const outputs *outputs, bool f16, bool plain, void *gradient,
                                 int first, const numbers (*from)[loss::OPERANDS], lane_sums *sums) {
    real value[lines][ORDER_OWN_LANES], slope[lines][ORDER_OWN_LANES];
#define EACH_OF_LINES _Pragma("unroll") for (int line = 0; line < lines; line++)
    EACH_OF_LINES {
        own_line in;
        unpack_line<loss, access>(f16, from[line], &in);
        EACH_OWN { /* one after the other, so that the compiler sees what they share */
            if constexpr (direction != BACKWARD)
                value[line][own] = loss::value(in.x[own], outputs->parameter);
            if constexpr (direction != FORWARD)
                slope[line][own] =
                    gradient_of(outputs, loss::slope_p(in.x[own], outputs->parameter), outputs->upstream);
        }
    }
    if constexpr (direction != BACKWARD) {
        if (tile->count < ORDER_TILE)
            EACH_OF_LINES end_line(tile, first + line, value[line]);
        EACH_OF_LINES add_line(first + line, value[line], sums);
    }
    if constexpr (direction != FORWARD) {
        if (plain)
            EACH_OF_LINES put_line<access>(tile, f16, gradient, first + line, slope[line]);
        else
            EACH_OF_LINES put_last_line<access>(tile, f16, gradient, first + line, slope[line]);
    }
#undef EACH_OF_LINES
}

#endif
