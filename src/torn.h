/*
 * Torn tiles: those that a slice began or ended within. Their terms are kept one by one until the neighbours have
 * come, since a tile is summed lane by lane and not from its beginning to its end. Depends on order.h.
 */
#ifndef ONEPASS_TORN_H
#define ONEPASS_TORN_H

#include "internal.h"
#include "onepass.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TORN_WORDS (ONEPASS_TILE / 64)

/* Which elements of a tile. */
typedef struct torn_elements {
    uint64_t word[TORN_WORDS]; /* bit i % 64 of word i / 64 is element i */
} torn_elements;

typedef struct torn_tile {
    int64_t tile;
    torn_elements has;
    int32_t compute; /* the terms' type, ONEPASS_F32 or ONEPASS_F64 */
    bool has_weights;
    _Alignas(64) unsigned char terms[]; /* +0 where there is none; behind them are as many weights, if it has them */
} torn_tile;

/* By their index, each once. */
typedef struct torn_tiles {
    torn_tile **tile;
    int64_t count, room;
} torn_tiles;

/* All terms are +0, and none is there. Null without memory; free() is for the caller. */
ONEPASS_INTERNAL torn_tile *onepass_torn_new(int64_t tile, int32_t compute, bool has_weights);
ONEPASS_INTERNAL torn_tile *onepass_torn_copy(const torn_tile *from);
ONEPASS_INTERNAL void *onepass_torn_weights(torn_tile *torn);

/* Moves `count` terms, and weights, that lie at the beginning to their place, and says that they are there. */
ONEPASS_INTERNAL void onepass_torn_place(torn_tile *torn, int64_t first, int64_t count);

/* Elements first to end - 1 of a tile; how many there are; which two have in common. */
ONEPASS_INTERNAL torn_elements onepass_torn_range(int64_t first, int64_t end);
ONEPASS_INTERNAL int64_t onepass_torn_count(const torn_elements *elements);
ONEPASS_INTERNAL torn_elements onepass_torn_common(const torn_elements *a, const torn_elements *b);

/* The first element from `from` on that is there, or is not; ONEPASS_TILE if there is none. */
ONEPASS_INTERNAL int64_t onepass_torn_next(const torn_elements *elements, int64_t from, bool there);

/* Copies what is there of `from`, all of it new, into another part of the same tile. */
ONEPASS_INTERNAL void onepass_torn_join(torn_tile *into, const torn_tile *from);

/* The sums of the tile's terms and of its weights, as order.h adds them up. */
ONEPASS_INTERNAL void onepass_torn_sums(torn_tile *torn, double *sum, double *weights);

/* Where a tile is or belongs. */
ONEPASS_INTERNAL int64_t onepass_torn_find(const torn_tiles *tiles, int64_t tile);

/* Room for so many more. */
ONEPASS_INTERNAL onepass_status onepass_torn_make_room(torn_tiles *tiles, int64_t more);

/* There is room, and the place is the one that was found. */
ONEPASS_INTERNAL void onepass_torn_insert(torn_tiles *tiles, int64_t at, torn_tile *torn);
ONEPASS_INTERNAL void onepass_torn_remove(torn_tiles *tiles, int64_t at);
ONEPASS_INTERNAL void onepass_torn_free(torn_tiles *tiles);

#endif
