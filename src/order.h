/*
 * The order of summation. Nobody else in onepass adds numbers up.
 *
 * The order depends on the index of the elements alone, so that a sum has the
 * same bits whoever computes it, and it leaves every engine free in its schedule:
 *
 *   1. Elements are numbered in row-major order of the common shape.
 *   2. A tile is 1024 consecutive elements, seen as 8 lines of 128 lanes: element
 *      i of a tile belongs to line i / 128 and lane i mod 128.
 *   3. The terms of a lane are added in `real` by the tree over the lines,
 *      ((l0+l1)+(l2+l3))+((l4+l5)+(l6+l7)). Terms beyond the end are +0.
 *   4. The 128 lane sums are widened to double and added by halves: lane l and
 *      l+64, then l and l+32, l+16, ... l+1. From here on everything is double.
 *   5. The tiles are added by the aligned binary tree over their index: node
 *      (level, i) is node (level-1, 2i) plus node (level-1, 2i+1); where there is
 *      no right child the left one stands alone. So an aligned span of 2^k tiles
 *      is one number.
 *
 * Why so: 8 lines of float keep the error of constant terms at zero and leave a
 * GPU thread enough loads in flight; whole lines of 128 lanes are what a vector
 * unit and a warp both like; an aligned tree can be cut anywhere and joined again.
 * tests/golden.txt holds the bits. After the first release a change of the order
 * is a change of version.
 */
#ifndef ONEPASS_ORDER_H
#define ONEPASS_ORDER_H

#include "math/real.h"

#include <stdint.h>

#define ORDER_LINES 8
#define ORDER_LANES 128
#define ORDER_TILE  (ORDER_LINES * ORDER_LANES)

/* A 64-bit count of tiles makes a tree of at most this many levels. */
#define ORDER_MAX_LEVELS 64

/* A node of this level has all the tiles that there can be. */
#define ORDER_TOP_LEVEL 62

/* What stands for a node that is not there: x + -0 is x, whatever x is. */
#define ORDER_NOTHING (-0.0)

/* Step 3 for one lane, whose terms come line by line. Few of them are alive at a time. */
ALWAYS_INLINE void order_line(int line, real term, real *sum, real *two, real *four) {
    switch (line) {
    case 0:
        *sum = term;
        break;
    case 1:
        *sum = *sum + term;
        break;
    case 2:
        *two = term;
        break;
    case 3:
        *sum = *sum + (*two + term);
        break;
    case 4:
        *four = term;
        break;
    case 5:
        *four = *four + term;
        break;
    case 6:
        *two = term;
        break;
    default:
        *sum = *sum + (*four + (*two + term));
    }
}

#if defined(__cplusplus) /* the CUDA engine's kernels; C is the CPU's */

/* ------------------------------------------------------ a tile by a warp -- */

/*
 * Thread l of a warp of 32 has four lanes of each line, as it gets them by 16-byte
 * loads: 4l to 4l+3 in float; in double 2l and 2l+1 of each half of the line.
 */
#define ORDER_WARP      32
#define ORDER_OWN_LANES 4

ALWAYS_INLINE int order_lane(int thread, int own) {
    return sizeof(real) == sizeof(float) ? 4 * thread + own : 2 * thread + own % 2 + own / 2 * (ORDER_LANES / 2);
}

ALWAYS_INLINE double order_swap(double x, int distance) {
    return __shfl_xor_sync(~0u, x, distance);
}

/* The sum of two lanes that lie `distance` threads apart, for two pairs of them: each
 * of the two threads gives one pair away and adds up the other. */
ALWAYS_INLINE double order_halve(int thread, int distance, double first, double second) {
    const bool upper = thread & distance;
    return (upper ? second : first) + order_swap(upper ? first : second, distance);
}

/* Step 4: every thread gets the sum. Whatever a step brings together is the same for
 * float and double; only the threads that hold it differ. */
template <typename number> ALWAYS_INLINE double order_lanes(int thread, const number *own) {
    const double l0 = own[0], l1 = own[1], l2 = own[2], l3 = own[3];
    if (sizeof(real) == sizeof(float)) {
        const double a = order_halve(thread, 16, l0, l2), b = order_halve(thread, 16, l1, l3); /* lanes 64 apart */
        double sum = order_halve(thread, 8, a, b);                                             /* 32 */
        for (int distance = 4; distance > 0; distance /= 2)                                    /* 16, 8, 4 */
            sum = sum + order_swap(sum, distance);
        sum = sum + order_swap(sum, 16); /* 2 */
        return sum + order_swap(sum, 8); /* 1 */
    }
    double sum = order_halve(thread, 16, l0 + l2, l1 + l3); /* 64 within the thread, then 32 */
    for (int distance = 8; distance > 0; distance /= 2)     /* 16, 8, 4, 2 */
        sum = sum + order_swap(sum, distance);
    return sum + order_swap(sum, 16); /* 1 */
}

/* The same in float for up to three sums: when it has one number of each left a thread goes on with one of them, so
 * that a third of the steps is saved. Thread order_share_of(k) gets sum k, and so does whoever differs from it in bits
 * 1, 8 and 16 alone. */
template <int sums> ALWAYS_INLINE double order_share(int thread, const double (*own)[ORDER_OWN_LANES]) {
    if constexpr (sums == 1) {
        return order_lanes(thread, own[0]);
    } else {
        double left[3] = {0, 0, 0};
#pragma unroll
        for (int k = 0; k < sums; k++)
            left[k] = order_halve(thread, 8, order_halve(thread, 16, own[k][0], own[k][2]),
                                  order_halve(thread, 16, own[k][1], own[k][3])); /* lanes 64 and 32 apart */
        double share = order_halve(thread, 4, left[0], left[1]);                  /* 16 */
        share = sums == 2 ? share + order_swap(share, 2)                          /* 8 */
                          : order_halve(thread, 2, share, left[2] + order_swap(left[2], 4));
        share = share + order_swap(share, 1);  /* 4 */
        share = share + order_swap(share, 16); /* 2 */
        return share + order_swap(share, 8);   /* 1 */
    }
}

ALWAYS_INLINE int order_share_of(int k) {
    return k == 0 ? 0 : k == 1 ? 4 : 2;
}

/* Every thread gets all of them. */
template <int sums> ALWAYS_INLINE void order_lanes_of(int thread, const double (*own)[ORDER_OWN_LANES], double *sum) {
    const bool is_shared = sizeof(real) == sizeof(float) && sums > 1;
    const double share = is_shared ? order_share<sums>(thread, own) : 0;
#pragma unroll
    for (int k = 0; k < sums; k++)
        sum[k] = is_shared ? __shfl_sync(~0u, share, order_share_of(k)) : order_lanes(thread, own[k]);
}

/* The same in float where the lanes that are further apart are added up already: the first 4 `threads` are left, and
 * so many neighbouring threads, a power of two, have four each. */
template <int threads> ALWAYS_INLINE double order_near_fours(int thread, const double *own) {
    constexpr int half = threads / 2, quarter = threads / 4;
    const double a = order_halve(thread, half, own[0], own[2]), b = order_halve(thread, half, own[1], own[3]);
    double sum = order_halve(thread, quarter, a, b);
#pragma unroll
    for (int distance = quarter / 2; distance > 0; distance /= 2)
        sum = sum + order_swap(sum, distance);
    sum = sum + order_swap(sum, half);
    return sum + order_swap(sum, quarter);
}

#define ORDER_PAIRS (ORDER_LINES / 2)

/* Steps 3 and 4 where the sums of a tile's lines lie in memory, those of as many neighbouring lines in each part. First
 * the lanes that are 64 and 32 apart: a thread takes four. */
template <int parts> ALWAYS_INLINE double order_far_lanes(int thread, const real (*part)[ORDER_LANES]) {
    static_assert(parts == 2 || parts == 4, "halves or quarters of a tile");
    double lane[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int l = thread + i * ORDER_WARP;
        lane[i] = parts == 2 ? part[0][l] + part[1][l] : (part[0][l] + part[1][l]) + (part[2][l] + part[3][l]);
    }
    return (lane[0] + lane[2]) + (lane[1] + lane[3]);
}

/* Several sums at a time, since each step waits for the one before. */
#define ORDER_EACH_SUM _Pragma("unroll") for (int of = 0; of < sums; of++)

/* The other lanes of a tile, a thread each, ... */
template <int sums> ALWAYS_INLINE void order_near_lanes(double *sum) {
#pragma unroll
    for (int distance = ORDER_WARP / 2; distance > 0; distance /= 2)
        ORDER_EACH_SUM sum[of] = sum[of] + order_swap(sum[of], distance);
}

/* ... or of some tiles, in memory, by one warp, of which four threads have a tile: a thread adds up its own first,
 * since that takes it a third of the time. Then step 5, as far as there are tiles. The pitch keeps the tiles in
 * different banks of shared memory. */
#define ORDER_FEW       8
#define ORDER_FEW_PITCH (ORDER_WARP + 4)

template <int sums, int most>
ALWAYS_INLINE void order_few(int thread, const double (*node)[most][ORDER_FEW_PITCH], int tiles, double *total) {
    ORDER_EACH_SUM {
        const double *own = node[of][most == 1 ? 0 : thread / 4] + thread % 4;
        double sum[8];
#pragma unroll
        for (int i = 0; i < 8; i++)
            sum[i] = own[4 * i];
#pragma unroll
        for (int i = 0; i < 4; i++) /* lanes 16 apart */
            sum[i] = sum[i] + sum[i + 4];
        total[of] = (sum[0] + sum[2]) + (sum[1] + sum[3]); /* 8, 4 */
    }
    ORDER_EACH_SUM total[of] = total[of] + order_swap(total[of], 2);
    ORDER_EACH_SUM total[of] = total[of] + order_swap(total[of], 1);
    if constexpr (most > 1) {
        ORDER_EACH_SUM total[of] = thread / 4 < tiles ? total[of] : ORDER_NOTHING;
        ORDER_EACH_SUM total[of] = total[of] + order_swap(total[of], 4);
        if (tiles > 2)
            ORDER_EACH_SUM total[of] = total[of] + order_swap(total[of], 8);
        if (tiles > 4)
            ORDER_EACH_SUM total[of] = total[of] + order_swap(total[of], 16);
    }
}

/* Step 4 for four tiles together, ORDER_PITCH apart: eight threads have a tile, and get its sum. A thread adds up all
 * lanes that are a multiple of 8 apart, which are the first four steps, by itself; so four tiles cost little more than
 * one does by order_lanes(). The pitch keeps the tiles in different banks of shared memory. */
#define ORDER_TOGETHER 4
#define ORDER_PITCH    (ORDER_LANES + 8)

template <typename number> ALWAYS_INLINE double order_lanes_together(int thread, const number *lane) {
    const number *own = lane + thread / 8 * ORDER_PITCH + thread % 8;
    double sum[8];
#pragma unroll
    for (int i = 0; i < 8; i++) /* lanes 64 apart */
        sum[i] = (double)own[8 * i] + (double)own[8 * i + 64];
#pragma unroll
    for (int i = 0; i < 4; i++) /* 32 */
        sum[i] = sum[i] + sum[i + 4];
    double total = (sum[0] + sum[2]) + (sum[1] + sum[3]); /* 16, 8 */
    for (int distance = 4; distance > 0; distance /= 2)
        total = total + order_swap(total, distance);
    return total;
}

/* Step 5 for neighbouring nodes, one a thread: `count`, a power of two, have a common ancestor. */
ALWAYS_INLINE double order_neighbours(double node, int count) {
    for (int distance = 1; distance < count; distance *= 2)
        node = node + order_swap(node, distance);
    return node;
}

/* The same for 256 neighbouring nodes, eight a thread: the thread's i-th is node 32 i + thread.
 * Three rounds leave each thread with one eighth of what there is to add. */
#define ORDER_SHARE 8

ALWAYS_INLINE double order_shares(int thread, double *share) {
#pragma unroll
    for (int half = ORDER_SHARE / 2, distance = 1; half > 0; half /= 2, distance *= 2)
#pragma unroll
        for (int i = 0; i < half; i++)
            share[i] = order_halve(thread, distance, share[i], share[i + half]);
    double node = share[0];
    node = node + order_swap(node, 8);
    node = node + order_swap(node, 16); /* 32 neighbours; now over i, whose bits are those of the thread in reverse */
    for (int distance = 4; distance > 0; distance /= 2)
        node = node + order_swap(node, distance);
    return node;
}

#else

/* ---------------------------------------------------- a tile by a thread -- */

/* `omp simd` because a term may also write a gradient, at its own index only. 64-bit
 * indices because clang gathers one by one with 32-bit ones, at a fifth of the rate. */
#define ORDER_EACH_LANE(statement)                                                                                     \
    _Pragma("omp simd") for (int64_t lane = 0; lane < ORDER_LANES; lane++) {                                           \
        statement;                                                                                                     \
    }

struct tile;
typedef real order_term(const struct tile *tile, int64_t element);
typedef void order_prefetch(const struct tile *tile, int64_t element, int64_t count);

/* The terms of one lane in `lines` neighbouring lines, by the tree. */
ALWAYS_INLINE real order_some_lines(order_term *term, const struct tile *tile, int64_t i, int lines) {
    const int64_t line = ORDER_LANES;
    if (lines == 1)
        return term(tile, i);
    if (lines == 2)
        return term(tile, i) + term(tile, i + line);
    return (term(tile, i) + term(tile, i + line)) + (term(tile, i + 2 * line) + term(tile, i + 3 * line));
}

/* Step 3 for a whole tile: term(tile, i) is the term of element i, asked for once each, in 1, 2 or 4 lines at a time.
 * More lines leave fewer sums that wait in L1 for the rest of the tree, and more computations that do not wait for each
 * other; fewer lines are fewer streams of memory. A block of lanes is what lies between two calls of `prefetch`, which
 * get all elements of the tile one after the other. `part` has a line for each so many lines. */
ALWAYS_INLINE void order_lines(order_term *term, order_prefetch *prefetch, const struct tile *tile, int lines,
                               int block, real (*part)[ORDER_LANES], real *sum) {
    for (int64_t i = 0; i < ORDER_LINES / lines; i++)
        for (int64_t first = 0; first < ORDER_LANES; first += block) {
            const int64_t element = i * lines * ORDER_LANES;
            prefetch(tile, element + first * lines, block * lines);
#pragma omp simd
            for (int64_t lane = first; lane < first + block; lane++)
                part[i][lane] = order_some_lines(term, tile, element + lane, lines);
        }
    if (lines == 4)
        ORDER_EACH_LANE(sum[lane] = part[0][lane] + part[1][lane])
    else if (lines == 2)
        ORDER_EACH_LANE(sum[lane] = (part[0][lane] + part[1][lane]) + (part[2][lane] + part[3][lane]))
    else
        ORDER_EACH_LANE(sum[lane] = ((part[0][lane] + part[1][lane]) + (part[2][lane] + part[3][lane])) +
                                    ((part[4][lane] + part[5][lane]) + (part[6][lane] + part[7][lane])))
}

/* A lane's sum, of reals or of doubles. */
typedef double order_load(const void *sum, int lane);

ALWAYS_INLINE double order_load_real(const void *sum, int lane) {
    return (double)((const real *)sum)[lane];
}

ALWAYS_INLINE double order_load_wide(const void *sum, int lane) {
    return ((const double *)sum)[lane];
}

/* Step 4. The halves from 64 down to 16 act on 16 columns of lanes that do not
 * meet, so each column is added in registers before the next is begun. `omp simd`
 * because gcc leaves columns that it has unrolled in scalar code: value and
 * gradient of mse took 3 % longer in a Neoverse N1's second-level cache. */
#define ORDER_COLUMNS 16

ALWAYS_INLINE double order_column(order_load *load, const void *sum, int l) {
    const double q0 = load(sum, l), q1 = load(sum, l + 16), q2 = load(sum, l + 32), q3 = load(sum, l + 48);
    const double q4 = load(sum, l + 64), q5 = load(sum, l + 80), q6 = load(sum, l + 96), q7 = load(sum, l + 112);
    return ((q0 + q4) + (q2 + q6)) + ((q1 + q5) + (q3 + q7));
}

ALWAYS_INLINE double order_columns(const double *column) {
    double last[4];
#pragma omp simd
    for (int l = 0; l < 4; l++)
        last[l] = (column[l] + column[l + 8]) + (column[l + 4] + column[l + 12]);
    return (last[0] + last[2]) + (last[1] + last[3]);
}

ALWAYS_INLINE double order_lanes_of(order_load *load, const void *sum) {
    double column[ORDER_COLUMNS];
#pragma omp simd
    for (int l = 0; l < ORDER_COLUMNS; l++)
        column[l] = order_column(load, sum, l);
    return order_columns(column);
}

ALWAYS_INLINE double order_lanes(const real *sum) {
    return order_lanes_of(order_load_real, sum);
}

/* A lane's terms in two lines, or in a tile. */
ALWAYS_INLINE double order_load_two(const void *term, int lane) {
    const double *own = (const double *)term + lane;
    return own[0] + own[ORDER_LANES];
}

ALWAYS_INLINE double order_load_tile(const void *term, int lane) {
    const double *own = (const double *)term + lane;
    return (order_load_two(own, 0) + order_load_two(own, 2 * ORDER_LANES)) +
           (order_load_two(own, 4 * ORDER_LANES) + order_load_two(own, 6 * ORDER_LANES));
}

/* Steps 3 and 4 for terms that are doubles, whatever `real` is, in the first, the first two or all 8 lines of a tile.
 * The other lines are +0. All that adding this does, anywhere in the tree, is that a sum is not -0: that is left for
 * the end. */
ALWAYS_INLINE double order_wide_lines(const double *term, int lines) {
    if (lines == 1)
        return order_lanes_of(order_load_wide, term) + 0;
    if (lines == 2)
        return order_lanes_of(order_load_two, term) + 0;
    return order_lanes_of(order_load_tile, term);
}

/* The same for no more terms than half a line has: 16, 32 or 64, which end with +0. */
ALWAYS_INLINE double order_wide_few(const double *term, int lanes) {
    double column[ORDER_COLUMNS];
    if (lanes == 16)
        return order_columns(term) + 0;
    if (lanes == 32) {
        for (int l = 0; l < 16; l++)
            column[l] = term[l] + term[l + 16];
    } else {
        for (int l = 0; l < 16; l++)
            column[l] = (term[l] + term[l + 32]) + (term[l + 16] + term[l + 48]);
    }
    return order_columns(column) + 0;
}

/* The same for terms that are `real`, in a whole tile. */
ALWAYS_INLINE double order_stored_lines(const real *term) {
    _Alignas(64) real sum[ORDER_LANES];
    const int64_t line = ORDER_LANES;
    ORDER_EACH_LANE(
        sum[lane] = ((term[lane] + term[lane + line]) + (term[lane + 2 * line] + term[lane + 3 * line])) +
                    ((term[lane + 4 * line] + term[lane + 5 * line]) + (term[lane + 6 * line] + term[lane + 7 * line])))
    return order_lanes(sum);
}

#endif

/* --------------------------------------------------- the tree over tiles -- */

/* Step 5 for tiles that come one after the other, from an aligned one on. The
 * stack holds the nodes that still wait for their right sibling, largest first. */
typedef struct order_stack {
    double node[ORDER_MAX_LEVELS];
    int depth;
    int64_t tiles;
} order_stack;

ALWAYS_INLINE void order_push(order_stack *stack, double tile_sum) {
    double sum = tile_sum;
    for (int64_t tiles = stack->tiles++; tiles & 1; tiles >>= 1)
        sum = stack->node[--stack->depth] + sum;
    stack->node[stack->depth++] = sum;
}

/* The sum of what was pushed: nodes without a right sibling stand alone until they are one. */
ALWAYS_INLINE double order_top(const order_stack *stack) {
    if (stack->depth == 0)
        return 0;
    double sum = stack->node[stack->depth - 1];
    for (int i = stack->depth - 2; i >= 0; i--)
        sum = stack->node[i] + sum;
    return sum;
}

/* The same for nodes of 2^level tiles each, as far as the tiles go: one number a node. */
typedef struct order_nodes {
    order_stack stack;
    int level;
    double *next;
} order_nodes;

ALWAYS_INLINE void order_begin_nodes(order_nodes *nodes, int level, double *next) {
    nodes->stack.depth = 0;
    nodes->stack.tiles = 0;
    nodes->level = level;
    nodes->next = next;
}

ALWAYS_INLINE void order_end_node(order_nodes *nodes) {
    if (nodes->stack.tiles)
        *nodes->next++ = order_top(&nodes->stack);
    nodes->stack.depth = 0;
    nodes->stack.tiles = 0;
}

ALWAYS_INLINE void order_push_tile(order_nodes *nodes, double tile_sum) {
    order_push(&nodes->stack, tile_sum);
    if (nodes->stack.tiles >> nodes->level)
        order_end_node(nodes);
}

/* Step 5 for nodes of one level, in place: returns their common ancestor. */
ALWAYS_INLINE double order_tree(double *node, int64_t count) {
    for (int64_t apart = 1; apart < count; apart *= 2)
        for (int64_t i = 0; i + apart < count; i += 2 * apart)
            node[i] = node[i] + node[i + apart];
    return count > 0 ? node[0] : 0;
}

/* Some tiles at a time; their sums are not kept. Where they are a node, as those of a thread's share mostly are, it is
 * pushed as one. */
ALWAYS_INLINE void order_push_tiles(order_nodes *nodes, double *tile_sum, int64_t count) {
    order_stack *stack = &nodes->stack;
    const bool is_node = !(count & (count - 1)) && !(stack->tiles & (count - 1)) && count >> nodes->level <= 1;
    if (!is_node) {
        for (int64_t i = 0; i < count; i++)
            order_push_tile(nodes, tile_sum[i]);
        return;
    }
    const int64_t before = stack->tiles;
    stack->tiles = before / count;
    order_push(stack, order_tree(tile_sum, count));
    stack->tiles = before + count;
    if (stack->tiles >> nodes->level)
        order_end_node(nodes);
}

#if !defined(__cplusplus)

/* ------------------------------------------- nodes that come in any order -- */

/* The sum of the 2^level tiles from `first` on, or of as many as there are. */
typedef struct order_node {
    int64_t first; /* tile */
    int level;
    double sum;
    double weights; /* their sum, joined in the same way; 0 where nobody will divide by it */
} order_node;

/* Nodes of the tree over so many tiles, none within another, by their first tile. Two that are siblings become their
 * parent at once, so that there are no more than the gaps between them ask for, and the last one left is the whole. */
typedef struct order_forest {
    int64_t tiles;
    int64_t count;
    order_node *node; /* whoever inserts has seen to the room */
} order_forest;

/* The largest aligned node that begins at a tile and ends no later than `end`. */
ALWAYS_INLINE int order_level_of(int64_t tile, int64_t end) {
    int level = 0;
    while (level < ORDER_TOP_LEVEL - 1 && !(tile >> level & 1) && end - tile >= (int64_t)2 << level)
        level++;
    return level;
}

/* The most such nodes that a span of tiles can fall into: one of each size on the way up and down. */
#define ORDER_MOST_NODES (2 * ORDER_MAX_LEVELS)

/* One past the last tile: beyond the end there is nothing, at any level. */
static inline int64_t order_node_end(const order_forest *forest, const order_node *node) {
    const int64_t left = forest->tiles - node->first;
    return node->level >= ORDER_TOP_LEVEL || left <= (int64_t)1 << node->level
               ? forest->tiles
               : node->first + ((int64_t)1 << node->level);
}

/* Where a node that begins at this tile is or belongs. */
static inline int64_t order_place(const order_forest *forest, int64_t first) {
    int64_t low = 0, high = forest->count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (forest->node[middle].first < first)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The first of these tiles that is in a node already, or `end`. */
ALWAYS_INLINE int64_t order_first_known(const order_forest *forest, int64_t first, int64_t end) {
    const int64_t at = order_place(forest, first);
    if (at > 0 && order_node_end(forest, &forest->node[at - 1]) > first)
        return first;
    return at < forest->count && forest->node[at].first < end ? forest->node[at].first : end;
}

/* Climbs from a node as far as the tree is known: with its sibling, or alone where there can be none. */
static inline void order_climb(order_forest *forest, int64_t at) {
    for (;;) {
        order_node *own = &forest->node[at];
        if (own->first == 0 && order_node_end(forest, own) == forest->tiles)
            return;
        const int64_t length = (int64_t)1 << own->level;
        const bool is_right = own->first & length;
        if (!is_right && own->first + length >= forest->tiles) {
            own->level++;
            continue;
        }
        const int64_t left = is_right ? at - 1 : at;
        if (left < 0 || left + 1 >= forest->count)
            return;
        order_node *pair = &forest->node[left];
        if (pair[0].level != own->level || pair[1].level != own->level || pair[1].first != pair[0].first + length)
            return;
        pair[0].sum = pair[0].sum + pair[1].sum;
        pair[0].weights = pair[0].weights + pair[1].weights;
        pair[0].level++;
        forest->count--;
        memmove(pair + 1, pair + 2, (size_t)(forest->count - left - 1) * sizeof *pair);
        at = left;
    }
}

ALWAYS_INLINE void order_insert(order_forest *forest, order_node node) {
    const int64_t at = order_place(forest, node.first);
    order_node *place = &forest->node[at];
    memmove(place + 1, place, (size_t)(forest->count - at) * sizeof *place);
    *place = node;
    forest->count++;
    order_climb(forest, at);
}

#endif

#endif
