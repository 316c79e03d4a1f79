/* Torn tiles: see torn.h. */
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed" /* with a sanitizer two sums are no vectors, and need not be */
#endif
#include "torn.h"

#include "dtype.h"
#include "message.h"
#include "order.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(ORDER_TILE == ONEPASS_TILE, "a tile is a tile");

/* ------------------------------------------------------------------ one tile -- */

static size_t terms_size(int32_t compute) {
    return ORDER_TILE * dtype_size(compute);
}

static size_t torn_size(int32_t compute, bool has_weights) {
    return sizeof(torn_tile) + terms_size(compute) * (has_weights ? 2 : 1);
}

torn_tile *onepass_torn_new(int64_t tile, int32_t compute, bool has_weights) {
    const size_t size = torn_size(compute, has_weights);
    torn_tile *torn = aligned_alloc(_Alignof(torn_tile), size);
    if (!torn)
        return NULL;
    memset(torn, 0, size);
    torn->tile = tile;
    torn->compute = compute;
    torn->has_weights = has_weights;
    return torn;
}

torn_tile *onepass_torn_copy(const torn_tile *from) {
    const size_t size = torn_size(from->compute, from->has_weights);
    torn_tile *torn = aligned_alloc(_Alignof(torn_tile), size);
    if (torn)
        memcpy(torn, from, size);
    return torn;
}

void *onepass_torn_weights(torn_tile *torn) {
    return torn->terms + terms_size(torn->compute);
}

static void move_terms(unsigned char *terms, size_t size, int64_t first, int64_t count) {
    memmove(terms + (size_t)first * size, terms, (size_t)count * size);
    memset(terms, 0, (size_t)first * size);
    memset(terms + (size_t)(first + count) * size, 0, (size_t)(ORDER_TILE - first - count) * size);
}

void onepass_torn_place(torn_tile *torn, int64_t first, int64_t count) {
    const size_t size = dtype_size(torn->compute);
    move_terms(torn->terms, size, first, count);
    if (torn->has_weights)
        move_terms(onepass_torn_weights(torn), size, first, count);
    torn->has = onepass_torn_range(first, first + count);
}

void onepass_torn_sums(torn_tile *torn, double *sum, double *weights) {
    const void *terms = torn->terms, *weight = onepass_torn_weights(torn);
    const bool wide = torn->compute == ONEPASS_F64;
    *sum = wide ? order_wide_lines(terms, ORDER_LINES) : order_stored_lines(terms);
    *weights = 0;
    if (torn->has_weights)
        *weights = wide ? order_wide_lines(weight, ORDER_LINES) : order_stored_lines(weight);
}

/* ------------------------------------------------------------------ elements -- */

torn_elements onepass_torn_range(int64_t first, int64_t end) {
    torn_elements elements;
    for (int64_t word = 0; word < TORN_WORDS; word++) {
        const int64_t low = first - 64 * word, high = end - 64 * word;
        const uint64_t from = low <= 0 ? ~UINT64_C(0) : low >= 64 ? 0 : ~UINT64_C(0) << low;
        const uint64_t to = high <= 0 ? 0 : high >= 64 ? ~UINT64_C(0) : ~(~UINT64_C(0) << high);
        elements.word[word] = from & to;
    }
    return elements;
}

int64_t onepass_torn_count(const torn_elements *elements) {
    int64_t count = 0;
    for (int word = 0; word < TORN_WORDS; word++)
        count += __builtin_popcountll(elements->word[word]);
    return count;
}

torn_elements onepass_torn_common(const torn_elements *a, const torn_elements *b) {
    torn_elements common;
    for (int word = 0; word < TORN_WORDS; word++)
        common.word[word] = a->word[word] & b->word[word];
    return common;
}

int64_t onepass_torn_next(const torn_elements *elements, int64_t from, bool there) {
    for (int64_t i = from; i < ORDER_TILE; i = (i / 64 + 1) * 64) {
        const uint64_t word = elements->word[i / 64], left = (there ? word : ~word) >> i % 64;
        if (left)
            return i + __builtin_ctzll(left);
    }
    return ORDER_TILE;
}

void onepass_torn_join(torn_tile *into, const torn_tile *from) {
    const size_t size = dtype_size(into->compute), weights = terms_size(into->compute);
    int64_t first = onepass_torn_next(&from->has, 0, true);
    while (first < ORDER_TILE) {
        const int64_t end = onepass_torn_next(&from->has, first, false);
        const size_t at = (size_t)first * size, bytes = (size_t)(end - first) * size;
        memcpy(into->terms + at, from->terms + at, bytes);
        if (into->has_weights)
            memcpy(into->terms + weights + at, from->terms + weights + at, bytes);
        first = onepass_torn_next(&from->has, end, true);
    }
    for (int word = 0; word < TORN_WORDS; word++)
        into->has.word[word] |= from->has.word[word];
}

/* ---------------------------------------------------------------- many tiles -- */

int64_t onepass_torn_find(const torn_tiles *tiles, int64_t tile) {
    int64_t low = 0, high = tiles->count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (tiles->tile[middle]->tile < tile)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

onepass_status onepass_torn_make_room(torn_tiles *tiles, int64_t more) {
    if (tiles->count + more <= tiles->room)
        return ONEPASS_OK;
    const int64_t room = 2 * (tiles->count + more);
    torn_tile **grown = realloc(tiles->tile, (size_t)room * sizeof *grown);
    if (!grown)
        return onepass_fail(ONEPASS_OUT_OF_MEMORY, "no memory for the %lld torn tiles of an accumulator",
                            (long long)room);
    tiles->tile = grown;
    tiles->room = room;
    return ONEPASS_OK;
}

void onepass_torn_insert(torn_tiles *tiles, int64_t at, torn_tile *torn) {
    torn_tile **place = &tiles->tile[at];
    memmove(place + 1, place, (size_t)(tiles->count - at) * sizeof *place);
    *place = torn;
    tiles->count++;
}

void onepass_torn_remove(torn_tiles *tiles, int64_t at) {
    torn_tile **place = &tiles->tile[at];
    free(*place);
    tiles->count--;
    memmove(place, place + 1, (size_t)(tiles->count - at) * sizeof *place);
}

void onepass_torn_free(torn_tiles *tiles) {
    for (int64_t i = 0; i < tiles->count; i++)
        free(tiles->tile[i]);
    free(tiles->tile);
}
