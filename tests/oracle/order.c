/* The order of summation, by the letter of docs/numerics.md. */
#include "oracle.h"

#include <stddef.h>

enum {
    LINES = 8,
    LANES = 128,
    TILE = LINES * LANES
};

static double line_tree_in_float(const double *line) {
    float r[LINES];
    for (int i = 0; i < LINES; i++) {
        r[i] = (float)line[i];
    }
    const float low = (r[0] + r[1]) + (r[2] + r[3]);
    const float high = (r[4] + r[5]) + (r[6] + r[7]);
    const float sum = low + high;
    return sum;
}

static double line_tree_in_double(const double *r) {
    return ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
}

static double tile_sum(const double *term, int64_t count, int in_float) {
    double lane[LANES];
    for (int l = 0; l < LANES; l++) {
        double line[LINES];
        for (int r = 0; r < LINES; r++) {
            const int64_t i = r * LANES + l;
            line[r] = i < count ? term[i] : 0.0;
        }
        lane[l] = in_float ? line_tree_in_float(line) : line_tree_in_double(line);
    }
    for (int half = LANES / 2; half; half /= 2) {
        for (int l = 0; l < half; l++) {
            lane[l] = lane[l] + lane[l + half];
        }
    }
    return lane[0];
}

typedef struct terms {
    const double *term;
    int64_t count;
    int in_float;
} terms;

static double node(const terms *all, int level, int64_t i) {
    if (level == 0) {
        const int64_t left = all->count - i * TILE;
        return tile_sum(all->term + i * TILE, left < TILE ? left : TILE, all->in_float);
    }
    const int64_t tiles = (all->count + TILE - 1) / TILE;
    const double left = node(all, level - 1, 2 * i);
    if ((2 * i + 1) << (level - 1) >= tiles) {
        return left;
    }
    return left + node(all, level - 1, 2 * i + 1);
}

static int levels(int64_t tiles) {
    int level = 0;
    while (INT64_C(1) << level < tiles) {
        level++;
    }
    return level;
}

double oracle_sum(const double *term, int64_t count, int in_float) {
    const terms all = {term, count, in_float};
    return count ? node(&all, levels((count + TILE - 1) / TILE), 0) : 0.0;
}

/* A node over `full` full tiles and, where part is not null, one partial tile. */
static double node_of_equals(double tile, const double *part, int level, int64_t full) {
    if (full == INT64_C(1) << level && !part) {
        double sum = tile;
        for (int i = 0; i < level; i++) {
            sum = sum + sum;
        }
        return sum;
    }
    if (level == 0) {
        return *part;
    }
    const int64_t half = INT64_C(1) << (level - 1);
    if (full + (part ? 1 : 0) <= half) {
        return node_of_equals(tile, part, level - 1, full);
    }
    return node_of_equals(tile, NULL, level - 1, half) + node_of_equals(tile, part, level - 1, full - half);
}

double oracle_sum_of_equals(double term, int64_t count, int in_float) {
    double same[TILE];
    for (int i = 0; i < TILE; i++) {
        same[i] = term;
    }
    const int64_t full = count / TILE;
    const int64_t rest = count % TILE;
    const double part = tile_sum(same, rest, in_float);
    return count ? node_of_equals(tile_sum(same, TILE, in_float), rest ? &part : NULL, levels(full + (rest ? 1 : 0)),
                                  full)
                 : 0.0;
}

/* Knuth's two-sum keeps each addition's error; the errors are added up beside
 * the sum. Long double would be slow in software on Arm and 64 bits on x86. */
double oracle_exact_sum(const double *term, int64_t count) {
    double sum = 0;
    double error = 0;
    for (int64_t i = 0; i < count; i++) {
        const double next = sum + term[i];
        const double taken = next - sum;
        error += (sum - (next - taken)) + (term[i] - taken);
        sum = next;
    }
    return sum + error;
}
