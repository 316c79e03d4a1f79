/*
 * What the CUDA engine's host side and its kernels share: the parameters of the kernels. Plain C for the host compiler
 * and for nvcc.
 *
 * A direct kernel serves tensors whose every tile lies in memory without gaps and
 * aligned, or is one number: registers are loaded from there. There is one for the value
 * alone, one for value and gradient of the prediction and one for that gradient alone,
 * since these are what evaluation and training need; the first two there are also for dense
 * tensors with a weight or a mask, whose means have one more, and for dense ones that are small or
 * tiny, with another for those of a few tiles. The general kernel serves
 * all outputs, types, strides and shapes and goes through shared memory.
 */
#ifndef ONEPASS_CUDA_PARAMETER_H
#define ONEPASS_CUDA_PARAMETER_H

#include "engine.h"

/* A workspace: a counter, alone on its cache line, then the sum of the weights, which one launch leaves to the next,
 * and behind this head a double for each block, two of a mean over weights, or one and its mark (await.h); for losses
 * over rows also a count of rows and blocks and, last, a term a row. */
#define CUDA_WORKSPACE_HEAD 256
#define CUDA_WEIGHTS_AT     128
#define CUDA_COUNT_AT       192
#define CUDA_MOST_BLOCKS    ((ONEPASS_WORKSPACE_SIZE - CUDA_WORKSPACE_HEAD) / 8)

/* In the count of rows the blocks that have counted theirs are below: there are fewer than 2 to the power of it. */
#define CUDA_BLOCK_BITS 28

/* So many blocks, at most, of a small kernel or a mean over weights leave 16 bytes for each of their sums: see
 * await.h. */
#define CUDA_MOST_AWAITED  2048
#define CUDA_AWAITED_BYTES 16

/* The first workspace is part of a module: a driver hands out memory in steps of 2 MiB, and the kernels
 * leave room for it in theirs. */
#define CUDA_FIRST_WORKSPACE      onepass_first_workspace
#define CUDA_FIRST_WORKSPACE_NAME "onepass_first_workspace"

/* A kernel of clusters that does nothing. */
#define CUDA_ANY_CLUSTER      onepass_any_cluster
#define CUDA_ANY_CLUSTER_NAME "onepass_any_cluster"

/* Warps of a block, but in the kernels for a few tiles. */
#define CUDA_MOST_WARPS 8

/* Warps of a tile in those: of a few tiles, and of one. */
#define CUDA_FEW_WARPS  2
#define CUDA_TINY_WARPS 4

/* Warps of a tile in the kernel for a gradient with weights or a mask. */
#define CUDA_BACKWARD_WARPS 4

/* Warps of a block that computes a gradient of whole lines, one each; and elements. */
#define CUDA_WHOLE_WARPS    4
#define CUDA_WHOLE_ELEMENTS (CUDA_WHOLE_WARPS * 128)

/* Doubles in a block's shared memory for the nodes of the tree. */
#define CUDA_MOST_NODES 256

/* What a kernel is made for. */
typedef enum direction {
    FORWARD,       /* the value of a mean or sum */
    MEAN,          /* that of a mean over weights, whose sum is found in the same pass; there may be a mask */
    WEIGHT_MEAN,   /* the same without a mask */
    MASK_MEAN,     /* the same over a mask, without weights */
    BOTH,          /* the value with the gradient for the prediction */
    BACKWARD,      /* that gradient alone */
    MEAN_BACKWARD, /* the same of such a mean, whose divisor is known; there is a mask */
    WEIGHT_BACKWARD,
    MASK_BACKWARD,
    ANEW,       /* as BACKWARD where the gradient is there already, for an upstream gradient of 1 */
    ANY_OUTPUT, /* whatever outputs there are */
    SCALE,      /* gradients that are there already, times the upstream gradient */
    MEAN_BOTH,  /* as MEAN, WEIGHT_MEAN and MASK_MEAN, with the gradient for the prediction */
    WEIGHT_BOTH,
    MASK_BOTH
} direction;

/* Numbers in the compute type. */
typedef union cuda_real {
    float f32;
    double f64;
} cuda_real;
typedef union cuda_reals {
    float f32[ONEPASS_MAX_PARAMETERS];
    double f64[ONEPASS_MAX_PARAMETERS];
} cuda_reals;

/* The tensors of a job, as the kernels number them. */
enum {
    CUDA_PREDICTION,
    CUDA_TARGET,
    CUDA_UPSTREAM = CUDA_PREDICTION + MOST_OPERANDS,
    CUDA_VALUE,
    CUDA_GRADIENT, /* for the prediction; the others' are next */
    CUDA_TENSORS = CUDA_GRADIENT + MOST_OPERANDS,
    CUDA_WEIGHT = CUDA_TENSORS, /* these of general kernels alone */
    CUDA_MASK,
    CUDA_GENERAL_TENSORS
};

/* What becomes of the sum, and the beginning of every kernel's parameter; of SCALE the value is the upstream gradient,
 * which is all that most launches look at. A launch waits for each cache line of its
 * parameter that it reads (0.16 us of 1.2), and the first one ends after 48 bytes. */
typedef struct cuda_total {
    void *value;
    void *workspace; /* zeroed before the first launch; a launch leaves the counter zeroed */
    double number;   /* what the sum is divided by, or, if that is the same, multiplied by */
    uint8_t divides;
    uint8_t dtype;     /* of the value */
    uint8_t aligned;   /* of a small kernel: operands and gradient are, to 16 bytes */
    uint8_t warp_bits; /* of a small kernel: a block has 2 to the power of it warps */
    int32_t count;     /* of a small kernel: elements */
} cuda_total;

/* What every kernel but the small ones is told. */
typedef struct cuda_head {
    cuda_total total;
    void *data[CUDA_TENSORS]; /* null: absent */
    int64_t count;
    uint8_t dtype[CUDA_TENSORS];
    uint8_t reduction;
    uint8_t skip_if_one;     /* nothing is done where the upstream gradient is 1 */
    uint8_t rows;            /* of a direct kernel: bit i tells that tensor i has cuda_rows */
    int32_t tiles_per_block; /* a power of two, at most CUDA_MOST_NODES */
    int32_t sweeps;          /* times that a block goes over so many tiles, each time further on */
    cuda_reals parameter;
    cuda_real scale; /* what a slope is multiplied by; 1 unless a mean is wanted */
    int32_t buffers; /* tiles of shared memory for a warp that goes through it */
} cuda_head;

/* n / d without dividing, for every n below 2^63: the high 64 bits of n * magic, shifted right. */
typedef struct cuda_divisor {
    uint64_t magic;
    int32_t shift;
} cuda_divisor;

/* A tensor of a direct kernel whose tiles do not follow on one another. A tile lies within a row. */
typedef struct cuda_rows {
    int64_t tile_step; /* elements from tile to tile of a row; 0: a row is one number */
    int64_t row_step;  /* elements from row to row; 0: all share one, which is worth keeping in the cache */
    int64_t tiles;     /* of a row */
    cuda_divisor by;   /* the same */
} cuda_rows;

typedef struct cuda_direct {
    cuda_head head;
    cuda_rows rows[CUDA_TENSORS];
} cuda_direct;

/* Dense tensors with a weight of the compute type, a mask, or both. */
typedef struct cuda_weighted {
    cuda_head head;
    void *weight, *mask;   /* null: absent */
    int32_t over_weights;  /* as below */
    int32_t over_elements; /* of a mean: weights do not count in what it is divided by */
    void *divisor;         /* as below */
    void *divided_by;      /* of a mean: where it says what it was divided by, */
    uint8_t told;          /* ... and the type of that; 0: nobody asks */
} cuda_weighted;

/* The gradient for the prediction of such, where what a mean is divided by is known. All that is looked at before the
 * first load lies on the first cache line, with what tells that there is nothing to do. */
typedef struct cuda_backward {
    void *operand[2];
    void *weight, *mask; /* null: absent */
    void *upstream;
    int32_t last_tile;
    uint8_t upstream_dtype;
    uint8_t last_is_whole;
    void *gradient;
    void *divisor;      /* a double; null: none beyond the scale */
    int32_t last_count; /* elements of the last tile */
    int32_t blocks;     /* of the launch */
    cuda_real scale;
    cuda_reals parameter;
} cuda_backward;

/* The same of whole lines, with weights or without, where nothing needs to be asked: all on the first cache line but a
 * mask beside weights and the loss's parameters. Blocks begin at the end: addresses are those of the last one's
 * elements. */
typedef struct cuda_whole {
    void *operand[2];
    void *weight;   /* or the mask, if there is nothing else */
    void *upstream; /* a float */
    void *gradient;
    union {
        void *divisor;   /* of a mean over weights or a mask: a double */
        cuda_real scale; /* else */
    };
    void *mask;
    cuda_reals parameter;
} cuda_whole;

/* Dense tensors of few elements. */
typedef struct cuda_small {
    cuda_total total;
    void *operand[2];
    void *gradient, *upstream; /* null: absent */
    int32_t upstream_dtype;
    cuda_real scale;
    cuda_reals parameter;
} cuda_small;

/* A mean over weights, a mask or both of few elements. All but the weights and the loss's parameters lie on the first
 * cache line. */
typedef struct cuda_small_mean {
    void *value;
    void *workspace; /* where cuda_total has it */
    void *operand[2];
    void *mask; /* null: absent */
    int32_t count;
    uint8_t warp_bits;
    uint8_t dtype; /* of the value */
    uint8_t told;  /* as of cuda_weighted */
    void *weight;  /* null: absent */
    cuda_reals parameter;
    void *divided_by;
} cuda_small_mean;

/* The same of a tile: the value is a float. */
typedef struct cuda_tiny_mean {
    void *value;
    void *operand[2];
    void *mask, *weight; /* null: absent */
    int32_t count;
    uint8_t told; /* as of cuda_weighted */
    void *divided_by, *gradient;
    cuda_reals parameter;
} cuda_tiny_mean;

/* The same of a few whole tiles. */
typedef struct cuda_few_mean {
    cuda_tiny_mean tiny;
} cuda_few_mean;

/* Two operands of a tile, a mean or sum of them that is a float. All but the third and later parameters of a loss lie
 * on the first cache line. */
typedef struct cuda_tiny {
    void *value;
    void *operand[2];
    double number; /* what the sum is multiplied by or, of less than 0, divided by -number */
    int32_t count;
    cuda_reals parameter;
} cuda_tiny;

/* The same of a few whole tiles. */
typedef struct cuda_few {
    cuda_tiny tiny;
} cuda_few;

/* As a tiny one that needs no division, with the gradient for the prediction. The parameters of a loss lie behind the
 * first cache line. */
typedef struct cuda_tiny_both {
    void *value;
    void *operand[2];
    double factor; /* of the sum, and of the slopes */
    void *gradient;
    int32_t count;
    cuda_reals parameter;
} cuda_tiny_both;

/* A tensor of a general kernel, with the dimensions of its view. */
typedef struct cuda_view {
    int32_t ndim;
    int64_t first; /* the element that the job begins with; 0 but in parts of a slice, of several dimensions */
    int64_t extent[ONEPASS_MAX_DIMENSIONS];
    int64_t stride[ONEPASS_MAX_DIMENSIONS];
    cuda_divisor by[ONEPASS_MAX_DIMENSIONS]; /* the extent */
} cuda_view;

typedef struct cuda_general {
    cuda_head head;
    cuda_view view[CUDA_GENERAL_TENSORS];
    void *weight, *mask; /* null: absent */
    int32_t weight_dtype;
    int32_t over_weights; /* 1: divide by the sum of the weights in the workspace as well; the head then divides by 1 */
    int32_t weight_buffer; /* the tile of shared memory that the weight has, behind all others */
    void *divisor;         /* where it is to be found instead: a double. Null: in the workspace */
} cuda_general;

/* ------------------------------------------------------------ losses over rows -- */

/* The tensors of a loss over rows that have something for each row. Views lead to a row's first class. */
enum {
    CUDA_ROW_INPUT,
    CUDA_ROW_TARGET,
    CUDA_ROW_WEIGHT,
    CUDA_ROW_MASK,
    CUDA_ROW_UPSTREAM,
    CUDA_ROW_VALUE,
    CUDA_ROW_LOG_SUM_EXP,
    CUDA_ROW_PREDICTED,
    CUDA_ROW_GRADIENT, /* for the logits; that for the target is next */
    CUDA_ROW_TENSORS = CUDA_ROW_GRADIENT + 2
};

/* Tiles of a row, or of the rows that a block has at a time, whose sums wait in shared memory to be joined. */
#define CUDA_MOST_ROW_TILES 512

/* Bytes of those of a tile, with those of weights. */
#define CUDA_WAITING_SIZE (4 * (int)sizeof(double) + (int)sizeof(float))

/* A lane describes a row: so many have a block, or a warp, at most. */
#define CUDA_MOST_GROUP 32

/* But values with probabilities, of which each warp of a block finishes as many; and bytes of shared memory that such a
 * block may ask for, and that it has besides, at most. */
#define CUDA_WEIGHED_GROUP 64
#define CUDA_WEIGHED_ROOM  (42 << 10)
#define CUDA_WEIGHED_OWN   (8 << 10)

/* Warps of a block that computes values alone, each with room for the lanes of its tiles. */
#define CUDA_VALUES_WARPS 4

/* And of the kernel that joins tiles whose sums have been told, and so many of which can wait in a block. */
#define CUDA_TOLD_WARPS 8
#define CUDA_TOLD_TILES 2048

/* Warps of a block that has a longer row, a tile each. */
#define CUDA_WIDE_WARPS 32

/* Where such rows are of bf16, bytes of shared memory that a warp has for a tile's exponentials and the next one's
 * logits, and that a block has of its own, at most. */
#define CUDA_WIDE_ROOM (1024 * (4 + 2))
#define CUDA_WIDE_OWN  (3 * 1024)

/* Rows of no more classes can be had by a thread each. */
#define CUDA_FEW_CLASSES 32

/* The places of such a row in shared memory. */
#define CUDA_FEW_PITCH(classes) ((classes) % 8 == 0 ? (classes) + 4 : (classes))

/* Rows side by side: the most of a block, its warps unless it has CUDA_WIDE_WARPS, and the classes of a row that a
 * thread keeps. */
#define CUDA_ASIDE_ROWS  256
#define CUDA_ASIDE_WARPS 8
#define CUDA_ASIDE_KEPT  32

/* The fewest tiles of a row of bf16 that share a shift. */
#define CUDA_LONG_TILES 64

/* Rows one behind the other that are had by teams of lanes: the most lanes of one, and classes of such a row; warps of
 * a block, and numbers that a warp has at a time; bytes of some, and those of what it knows of 32 rows, three doubles,
 * three floats and two integers each. */
#define CUDA_MOST_TEAM              16
#define CUDA_TEAM_CLASSES           (CUDA_MOST_TEAM * CUDA_ASIDE_KEPT)
#define CUDA_TEAM_WARPS             4
#define CUDA_TEAM_NUMBERS           (32 * CUDA_ASIDE_KEPT)
#define CUDA_TEAM_ROOM(count, size) (((count) * (size) + 15) / 16 * 16)
#define CUDA_TEAM_KNOWN             (32 * 44)

/* Blocks of a multiprocessor for their values and with gradients, and how many times as many there are as there can be
 * at a time. With a block more for gradients, and fewer registers, they took a tenth longer on an H200. */
#define CUDA_TEAM_BLOCKS      7
#define CUDA_TEAM_BLOCKS_BOTH 5
#define CUDA_TEAM_WAVES       8

/* With so few, more warps share a multiprocessor. */
#define CUDA_FEWER_CLASSES 16

/* Blocks of a multiprocessor that stay for all rows of few classes, for values and with gradients. */
#define CUDA_PLAIN_BLOCKS      7
#define CUDA_PLAIN_BLOCKS_BOTH 5

/* Rows of nothing but labels: blocks of a multiprocessor that stay for their values, and warps that do so with
 * gradients. More of either, with fewer registers each, took longer on an H200, and so did fewer warps. */
#define CUDA_SIMPLE_BLOCKS     7
#define CUDA_SIMPLE_WARPS_BOTH 20

/* Long rows that a cluster of blocks has: its blocks; warps of a block that have tiles, two each; tiles of a row, at
 * most, and more than which it has at least; bytes of shared memory that a warp has for its tiles, and that a block has
 * of its own, at most. */
#define CUDA_CLUSTER       4
#define CUDA_CLUSTER_WARPS 16
#define CUDA_CLUSTER_TILES (CUDA_CLUSTER * CUDA_CLUSTER_WARPS * 2)
#define CUDA_CLUSTER_LEAST 32
#define CUDA_CLUSTER_ROOM  (2 * 1024 * (4 + 2))
#define CUDA_CLUSTER_OWN   (14 * 1024)

/* With gradients there are so many times as many blocks as there can be at a time, of rows of up to 16 tiles, so that
 * multiprocessors which are quicker have more of them: 1 to 3 % on an H200. Rows of bf16 take half as long, and what a
 * block finds out before its first one does not: with as many blocks as of floats they took 1 to 6 % longer. */
#define CUDA_SIMPLE_WAVES      8
#define CUDA_SIMPLE_WAVES_BF16 4

/* A block that adds up terms has so many tiles of them at most, and as many warps, or half of that in double. */
#define CUDA_TERMS_TILES       32
#define CUDA_TERMS_WARPS(size) (CUDA_TERMS_TILES * 4 / (size))

/* Warps of a block that goes through shared memory: each has a tile of it. */
#define CUDA_ANY_WARPS(size) ((size) == 8 ? 2 : 4)

/* What a call says about logits, and the same in the compute type: see softmax_of(). */
typedef struct cuda_softmax {
    softmax_scale scale;
    cuda_real factor, factor_low, per_factor, softcap;
} cuda_softmax;

typedef struct cuda_row {
    cuda_total total;             /* of which the workspace alone is used, unless rows are added up at once */
    void *data[CUDA_ROW_TENSORS]; /* null: absent */
    void *class_weight;
    double *state;
    double *tile_sums, *label_logit; /* of classes that are shared out; null: absent */
    int64_t state_at; /* in the workspace: between the launches of one call; 0: it is elsewhere, or not wanted */
    int64_t terms_at; /* where the rows' terms are in the workspace; 0: nobody wants them */
    int64_t rows;
    int64_t classes;
    int64_t first_class, all_classes; /* of which these are some */
    int64_t row_step, sum_step;       /* of tile_sums */
    int64_t tiles;                    /* of a row */
    int64_t class_stride[MOST_OPERANDS];
    int64_t gradient_stride[2];
    int64_t ignore_index;
    uint8_t dtype[CUDA_ROW_TENSORS];
    uint8_t class_weight_dtype;
    uint8_t reduction;
    uint8_t skip_if_one;
    uint8_t reads_state;
    uint8_t shard;          /* shard_step */
    uint8_t sums_of_tile;   /* numbers of a tile in tile_sums */
    uint8_t over_weights;   /* a mean is divided by what is in the workspace */
    uint8_t over_elements;  /* rows count as 1 there, though they have weights */
    uint8_t weighs;         /* u_c are needed */
    uint8_t needs_lse;      /* slopes depend on it */
    uint8_t completes;      /* or something else does */
    uint8_t finishes;       /* rows have values or states to be written */
    uint8_t counts;         /* of a forward kernel: it also counts the rows that take part, for the next launch */
    uint8_t simple;         /* of rows of few classes: there is nothing about them but labels, which lie side by side */
    uint8_t has_parameters; /* the same: some of the loss are not 0 */
    uint8_t in_vectors;     /* the same: those of a warp can be moved 16 bytes at a time */
    uint8_t sums;           /* the same: a block has a tile of rows, and adds up their terms itself */
    uint8_t lines;          /* the same: of as many rows as it has threads, or as a warp has, which a block has */
    int32_t group;       /* rows of a block; where threads have rows, 1: of those that lie as the kernel likes it; where
                            warps share them out, log2 of how many do */
    int32_t long_group;  /* the same of the first blocks, */
    int32_t long_groups; /* of so many */
    int32_t room;        /* bytes of a warp's prefetched tiles in shared memory */
    int32_t target_room; /* where those of probabilities begin there; 0: they are not prefetched */
    cuda_softmax softmax;
    cuda_real kept, share; /* u_c = w_c (kept q_c + share): of smoothed probabilities */
    double smoothing;
    double divisor;           /* of a mean, or 1 */
    double expected_upstream; /* what the upstream gradient is where there is none */
    double parameter[ONEPASS_MAX_PARAMETERS];
    cuda_view view[CUDA_ROW_TENSORS];
} cuda_row;

/* ---------------------------------------------------------------- vector losses -- */

/* The tensors of a vector loss: views of operands that are vectors, and of gradients, are over all elements, the others
 * over rows. */
enum {
    CUDA_VECTOR_OPERAND,
    CUDA_VECTOR_WEIGHT = CUDA_VECTOR_OPERAND + MOST_OPERANDS,
    CUDA_VECTOR_MASK,
    CUDA_VECTOR_UPSTREAM,
    CUDA_VECTOR_VALUE,
    CUDA_VECTOR_GRADIENT,
    CUDA_VECTOR_TENSORS = CUDA_VECTOR_GRADIENT + MOST_OPERANDS
};

/* Tiles whose sums wait in shared memory to become one node. */
#define CUDA_MOST_CHUNK 32

/* The same in vectors/ahead.h, where warps wait for each other at the end of one; and how many blocks there are at most
 * for each multiprocessor, which has room for two: those that come later even out what others have left. */
#define CUDA_AHEAD_CHUNK  64
#define CUDA_AHEAD_BLOCKS 4

/* Tiles that a warp goes through for the values of many rows, the warps of a block that does so, and how many such
 * blocks a multiprocessor must have room for; rows of 16-bit elements that a warp has at a time where they come to
 * shared memory; turns that a warp takes at most with rows of half a tile or less. */
#define CUDA_VALUE_TILES  8
#define CUDA_VALUE_WARPS  4
#define CUDA_VALUE_BLOCKS 3
#define CUDA_SHORT_ROWS   2
#define CUDA_MOST_TURNS   8

/* Numbers that a tile leaves for softmaxes; warps that a multiprocessor has registers for where exponentials stay in
 * them; bytes of shared memory that each of their blocks has of its own, at most. */
#define CUDA_TILE_SOFTMAXES 7
#define CUDA_SOFTMAX_WARPS  16
#define CUDA_SOFTMAX_BYTES  38000

typedef struct cuda_vector {
    cuda_total total;                /* of which the workspace alone is used */
    void *data[CUDA_VECTOR_TENSORS]; /* null: absent */
    int64_t rows;
    int64_t length;
    int64_t tiles; /* of a row */
    int64_t
        row_stride[CUDA_VECTOR_TENSORS]; /* from row to row, in elements; of vectors that lie as a kernel likes it */
    int64_t chunks;                      /* of a row */
    cuda_divisor by_chunks;              /* the same */
    cuda_divisor by_tiles;               /* tiles, the same */
    int64_t terms_at;                    /* where the rows' terms are in the workspace; 0: nobody wants them */
    int64_t nodes_at;                    /* the sums of chunks, ... */
    int64_t factors_at;                  /* ... and the factors of rows, between launches; ... */
    int64_t tiles_at, known_at;          /* ... what tiles leave for softmaxes, and what is known of rows */
    int32_t chunk;                       /* tiles of one, a power of two; of short rows the warps that a row has */
    int32_t turns; /* that a warp takes with narrow rows; rows that it has at a time of short ones */
    uint8_t dtype[CUDA_VECTOR_TENSORS];
    uint8_t reduction;
    uint8_t skip_if_one;
    uint8_t over_weights; /* a mean is divided by what is in the workspace */
    uint8_t has_gradient;
    uint8_t
        halves; /* vectors and gradients are of 16-bit types, and not floats; of those that lie as a kernel likes it */
    uint8_t is_staged;    /* of short rows with softmaxes: a warp's next tile comes to shared memory */
    uint8_t is_usual;     /* parameters that choose between formulas are as they usually are */
    double per_divisor;   /* one over that of a mean, unless it is what weights sum to; else 1 */
    cuda_softmax softmax; /* of a loss with softmaxes */
    double parameter[ONEPASS_MAX_PARAMETERS];
    cuda_view view[CUDA_VECTOR_TENSORS];
} cuda_vector;

/* The sum of the terms that rows have left in the workspace, or of what they count for, which stays there. */
typedef struct cuda_terms {
    cuda_total total; /* of the latter without a value */
    int64_t terms_at; /* in the workspace */
    int64_t count;
    int32_t tiles;        /* of a block, a power of two */
    uint8_t over_weights; /* a mean is divided by what is in the workspace */
} cuda_terms;

/* Where to say what a mean was divided by. */
typedef struct cuda_divided_by {
    cuda_total total; /* the value is what is written */
    void *upstream;
    int32_t upstream_dtype;
    double expected_upstream;
    int32_t in_double; /* the compute type is */
    int32_t skip_if_one;
    int32_t over_weights;
} cuda_divided_by;

#endif
