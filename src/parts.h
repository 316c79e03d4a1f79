/*
 * A slice of an accumulator, cut: the rest of a tile that it begins within, aligned blocks of whole tiles, each of
 * which is a node of the tree over the whole, and the beginning of a tile that it ends within. Where the whole ends its
 * last tile is a whole one, too.
 */
#ifndef ONEPASS_PARTS_H
#define ONEPASS_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct slice_part {
    int64_t first, count; /* elements, from the slice's first on */
    int64_t tile;
    int level;             /* of the node; TORN: the terms are kept one by one */
    size_t at, weights_at; /* bytes: of results in the memory of a GPU, the part's sum or terms; and of its weights */
} slice_part;

#define TORN       (-1)
#define MOST_PARTS 130 /* ORDER_MOST_NODES, and two that are torn */

typedef struct slice_parts {
    int64_t first, end; /* elements of the whole */
    int32_t compute;    /* ONEPASS_F32 or ONEPASS_F64: the terms' type */
    bool over_weights;  /* weights are summed beside the terms */
    int count;
    slice_part part[MOST_PARTS];
    size_t size; /* of all results */
} slice_parts;

#endif
