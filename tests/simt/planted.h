/*
 * A kernel that adds numbers up and can be told to make a mistake of a kind that
 * the harness must find. For C and C++.
 */
#ifndef ONEPASS_TESTS_SIMT_PLANTED_H
#define ONEPASS_TESTS_SIMT_PLANTED_H

#include "simt.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum mistake {
    MISTAKE_NONE,
    /* The result is wrong, for most seeds. */
    MISTAKE_NO_SYNCWARP,         /* after writing what another lane reads */
    MISTAKE_NO_SECOND_SYNCWARP,  /* before writing there again */
    MISTAKE_NO_BARRIER,          /* the same between warps */
    MISTAKE_NO_SECOND_BARRIER,   /* */
    MISTAKE_UNWRITTEN,           /* shared memory is taken to be zero */
    MISTAKE_LATE_PARTIAL_SUM,    /* a block says that its partial sum is there, then writes it */
    MISTAKE_LAST_BLOCK_BY_INDEX, /* the block of the highest index is taken for the last one */
    /* The harness ends the program. */
    MISTAKE_REPORTED,
    MISTAKE_TWO_BARRIERS = MISTAKE_REPORTED, /* a warp at one, the others at another */
    MISTAKE_BARRIER_AND_SHUFFLE,             /* half of the lanes at each */
    MISTAKE_DIFFERENT_OPERATIONS,            /* lanes of a warp at a shuffle and at __syncwarp */
    MISTAKE_EARLY_RETURN,                    /* of a lane for which the others wait */
    MISTAKE_MASK_WITHOUT_SELF,
    MISTAKE_SOURCE_OUTSIDE_MASK,
    MISTAKE_MISALIGNED_LOAD,
    MISTAKE_MISALIGNED_STORE,
    MISTAKE_BEYOND_DYNAMIC, /* writes one element too far */
    MISTAKE_WILD_ADDRESS,
    MISTAKE_DEEP_STACK,
    /* The compiler's sanitizer ends it. */
    MISTAKE_SANITIZED,
    MISTAKE_MISALIGNED_VECTOR = MISTAKE_SANITIZED, /* by a plain 16-byte access */
    MISTAKE_TOO_MANY_THREADS,                      /* for the arrays in shared memory */
    MISTAKE_COUNT
} mistake;

enum {
    PLANTED_WARPS = 8, /* at most */
    PLANTED_ROUNDS = 3
};

typedef struct planted_job {
    const float *in; /* blocks * PLANTED_ROUNDS * threads numbers */
    double *partial; /* one a block */
    unsigned *counter;
    double *sum;
    const void *nowhere; /* an address that is none */
    int mistake;
} planted_job;

void planted_sum(planted_job job);
const simt_library *planted_library(void);

#ifdef __cplusplus
}
#endif
#endif
