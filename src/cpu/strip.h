/*
 * What the CPU engine hands to the functions of a loss, and what those functions are. run.c fills strips; a unit a loss
 * (unit.c) computes them.
 */
#ifndef ONEPASS_CPU_STRIP_H
#define ONEPASS_CPU_STRIP_H

#include "engine.h"
#include "order.h"

/*
 * A strip is a few neighbouring tiles that are computed by one call of a loss's
 * function: as many as lie in memory as the computation wants them, or one that
 * was gathered into a buffer. Within a strip nothing is stored but whole cache
 * lines of results. That is not only less work: cores that stop fetching lines
 * which are about to be overwritten (write streaming) give up at the first store
 * of another kind, and one a tile cost 30 % of the rate on a Neoverse N1. Strips
 * of 16 tiles instead of 64 cost 1 %.
 */
#define STRIP_TILES 64

typedef struct strip {
    const void *operand[MOST_OPERANDS]; /* those that the loss does not have are another's */
    int64_t stride[MOST_OPERANDS];      /* elements from number to number; looked at only if the access is strided */
    int64_t step[MOST_OPERANDS];        /* elements from tile to tile; 0 where one constant tile serves all */
    real parameter[ONEPASS_MAX_PARAMETERS];
    real scale;
    real *gradient;   /* for the prediction, if it comes with the sums */
    bool from_memory; /* the operands are too many for a cache */
    bool is_last;     /* of this thread's */
    int tiles;
    int count; /* elements: ORDER_TILE a tile, fewer in a tile that the input ends in */
} strip;

/* One tile of a strip. */
typedef struct tile {
    const void *operand[MOST_OPERANDS];
    int64_t stride[MOST_OPERANDS];
    real parameter[ONEPASS_MAX_PARAMETERS];
    real scale;
    real *gradient;
    bool from_memory, is_followed; /* as the strip; by another tile of this thread's */
    bool prefetch_operands;        /* of that one */
} tile;

/* How the operands of a strip lie: as `real` without gaps, or in one of the ways
 * that the sums can read without a detour through a buffer: as floats with gaps,
 * or all in the same 16-bit type. */
typedef enum access {
    ACCESS_REAL,
    ACCESS_STRIDED,
    ACCESS_F16,
    ACCESS_BF16,
    ACCESS_COUNT
} access;

/* The functions of a loss, for a strip. The sums are of whole tiles and come alone
 * or with the gradient for the prediction, since that is how training uses them. A
 * gradient is slope * scale here, and times the upstream gradient, if that is not
 * 1, in a step of its own. */
typedef struct REAL_NAME(cpu_loss) {
    void (*sums[ACCESS_COUNT])(const strip *strip, double *sum);
    void (*sums_and_gradient[ACCESS_COUNT])(const strip *strip, double *sum);
    void (*values)(const strip *strip, real *value);
    void (*gradient[MOST_OPERANDS])(const strip *strip, real *gradient);
    bool (*together)(const real *parameter);  /* or null: whether sums may come with a gradient */
    void (*mend)(real *gradient, real scale); /* or null: a tile's that came with a sum that is not finite */
} cpu_loss;

#endif
