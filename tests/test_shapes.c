/*
 * The functions about shapes that programs may ask by themselves: broadcasting, strides at the common shape, fewer
 * dimensions, sizes of types. The oracle counts every index one by one.
 */
#include <onepass.h>

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "check.h"
#include "refusals.h"

enum {
    MOST_ELEMENTS = 4096,
    CASES = 20000
};

static uint64_t state = 0x9e3779b97f4a7c15u;

static int below(int n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int)((state >> 33) % (uint64_t)n);
}

static onepass_tensor tensor_of(int32_t ndim, const int64_t *shape, const int64_t *strides) {
    return (onepass_tensor){.dtype = ONEPASS_F32, .ndim = ndim, .shape = shape, .strides = strides};
}

/* An extent as seen from the end; beyond the beginning there are ones. */
static int64_t from_end(const onepass_shape *shape, int32_t d) {
    return d < shape->ndim ? shape->extent[shape->ndim - 1 - d] : 1;
}

static onepass_shape random_shape(const onepass_shape *like) {
    onepass_shape shape = {.ndim = below(5), .count = 1};
    for (int32_t d = 0; d < shape.ndim; d++) {
        const int64_t other = from_end(like, shape.ndim - 1 - d);
        shape.extent[d] = below(8) == 0 ? below(4) : below(2) ? other : 1;
        shape.count *= shape.extent[d];
    }
    return shape;
}

/* -------------------------------------------------------------------- broadcasting -- */

static void check_broadcast(const onepass_shape *a, const onepass_shape *b) {
    onepass_shape common = *a;
    const onepass_tensor tensor = tensor_of(b->ndim, b->extent, NULL);
    const int32_t ndim = a->ndim > b->ndim ? a->ndim : b->ndim;
    bool fits = true;
    int64_t count = 1;
    for (int32_t d = 0; d < ndim; d++) {
        const int64_t x = from_end(a, d), y = from_end(b, d);
        fits &= x == y || x == 1 || y == 1;
        count *= x == 1 ? y : x;
    }
    const onepass_status status = onepass_broadcast(&common, &tensor);
    if (!CHECK((status == ONEPASS_OK) == fits, "shapes that %s: got %s", fits ? "fit" : "do not fit",
               onepass_status_name(status)))
        return;
    if (!fits) {
        CHECK(status == ONEPASS_INVALID_SHAPE && memcmp(&common, a, sizeof common) == 0,
              "shapes that do not fit: expected a common shape that stays, got another");
        return;
    }
    CHECK(common.ndim == ndim && common.count == count, "expected %d dimensions and %lld elements, got %d and %lld",
          ndim, (long long)count, common.ndim, (long long)common.count);
    for (int32_t d = 0; d < ndim; d++) {
        const int64_t expected = from_end(a, d) == 1 ? from_end(b, d) : from_end(a, d);
        CHECK(from_end(&common, d) == expected, "dimension %d from the end: expected %lld, got %lld", d,
              (long long)expected, (long long)from_end(&common, d));
    }
}

/* --------------------------------------------------------------------------- walks -- */

/* Where each element lies, in row-major order: every index is counted up by hand. */
static int64_t walk(const onepass_shape *shape, const int64_t *strides, int64_t *place) {
    int64_t index[ONEPASS_MAX_DIMENSIONS] = {0}, count = 0;
    for (int32_t d = 0; d < shape->ndim; d++)
        if (shape->extent[d] == 0)
            return 0;
    for (;;) {
        place[count] = 0;
        for (int32_t d = 0; d < shape->ndim; d++)
            place[count] += index[d] * strides[d];
        count++;
        int32_t d = shape->ndim - 1;
        while (d >= 0 && ++index[d] == shape->extent[d])
            index[d--] = 0;
        if (d < 0)
            return count;
    }
}

static int64_t expected_place[MOST_ELEMENTS], got_place[MOST_ELEMENTS];

/* A tensor's own index is that of the common shape, aligned at the end, and 0 where it has one element. */
static int64_t walk_broadcast(const onepass_shape *own, const int64_t *strides, const onepass_shape *common,
                              int64_t *place) {
    int64_t repeated[ONEPASS_MAX_DIMENSIONS];
    for (int32_t d = 0; d < common->ndim; d++) {
        const int32_t its = d + own->ndim - common->ndim;
        repeated[d] = its < 0 || own->extent[its] == 1 ? 0 : strides[its];
    }
    return walk(common, repeated, place);
}

static void check_same_walk(int64_t expected, int64_t got, const char *what) {
    CHECK(expected == got, "%s: expected %lld elements, got %lld", what, (long long)expected, (long long)got);
    CHECK(expected != got || memcmp(expected_place, got_place, (size_t)got * sizeof *got_place) == 0,
          "%s: the elements lie elsewhere", what);
}

static void check_strides(const onepass_shape *own, const onepass_shape *common) {
    int64_t strides[ONEPASS_MAX_DIMENSIONS] = {0}, at_common[ONEPASS_MAX_DIMENSIONS] = {0};
    for (int32_t d = 0; d < own->ndim; d++)
        strides[d] = below(9) - 3;
    const onepass_tensor tensor = tensor_of(own->ndim, own->extent, strides);
    if (!CHECK_OK(onepass_broadcast_strides(&tensor, common, at_common), "strides at the common shape"))
        return;
    const int64_t count = walk_broadcast(own, strides, common, expected_place);
    check_same_walk(count, walk(common, at_common, got_place), "strides");

    onepass_shape merged = *common;
    if (!CHECK_OK(onepass_merge_dimensions(&merged, at_common), "merged"))
        return;
    CHECK(merged.ndim >= 1 && merged.count == common->count, "merged: expected all elements, got others");
    if (count == 0) {
        CHECK(merged.ndim == 1 && merged.extent[0] == 0, "merged: expected one extent of 0 for no elements");
        return;
    }
    check_same_walk(count, walk(&merged, at_common, got_place), "merged");
    for (int32_t d = 0; d < merged.ndim && merged.ndim > 1; d++)
        CHECK(merged.extent[d] != 1 && (d == 0 || at_common[d - 1] != at_common[d] * merged.extent[d]),
              "merged: dimension %d of %d could be left out", d, merged.ndim);
}

/* Null strides are dense ones. */
static void test_dense_strides(void) {
    const int64_t shape[] = {2, 3, 4};
    const onepass_shape common = {.ndim = 3, .extent = {2, 3, 4}, .count = 24};
    const onepass_tensor tensor = tensor_of(3, shape, NULL);
    int64_t strides[3];
    CHECK_OK(onepass_broadcast_strides(&tensor, &common, strides), "dense strides");
    CHECK(strides[0] == 12 && strides[1] == 4 && strides[2] == 1, "dense strides: expected 12 4 1, got %lld %lld %lld",
          (long long)strides[0], (long long)strides[1], (long long)strides[2]);
}

/* ------------------------------------------------------------------------- refusals -- */

static void test_refusals(void) {
    const int64_t negative[] = {3, -1}, huge[] = {INT64_C(1) << 40, INT64_C(1) << 40}, row[] = {4}, many[17] = {0};
    onepass_shape common = ONEPASS_SHAPE_INIT, wide = {.ndim = 17}, three = {.ndim = 1, .extent = {3}, .count = 3};
    int64_t strides[ONEPASS_MAX_DIMENSIONS];
    onepass_tensor tensor = tensor_of(1, row, NULL);
    expect_refusal(onepass_broadcast(NULL, &tensor), ONEPASS_INVALID_ARGUMENT, "common|null", "no shape");
    expect_refusal(onepass_broadcast(&common, NULL), ONEPASS_INVALID_ARGUMENT, "tensor|null", "no tensor");
    expect_refusal(onepass_broadcast(&wide, &tensor), ONEPASS_INVALID_SHAPE, "17|16", "17 common dimensions");
    expect_refusal(onepass_broadcast(&three, &tensor), ONEPASS_INVALID_SHAPE, "(3,)|(4,)", "3 and 4");
    expect_refusal(onepass_broadcast_strides(&tensor, &three, strides), ONEPASS_INVALID_SHAPE, "(3,)|(4,)", "4 to 3");
    expect_refusal(onepass_broadcast_strides(&tensor, &wide, strides), ONEPASS_INVALID_SHAPE, "17|16", "to 17");
    expect_refusal(onepass_broadcast_strides(NULL, &three, strides), ONEPASS_INVALID_ARGUMENT, "tensor", "no tensor");
    expect_refusal(onepass_broadcast_strides(&tensor, NULL, strides), ONEPASS_INVALID_ARGUMENT, "common", "no shape");
    expect_refusal(onepass_broadcast_strides(&tensor, &three, NULL), ONEPASS_INVALID_ARGUMENT, "strides", "no place");
    onepass_shape below_zero = {.ndim = 1, .extent = {-2}, .count = 2};
    expect_refusal(onepass_broadcast_strides(&tensor, &below_zero, strides), ONEPASS_INVALID_SHAPE, "negative|(-2,)",
                   "to a negative extent");
    expect_refusal(onepass_merge_dimensions(NULL, strides), ONEPASS_INVALID_ARGUMENT, "shape|null", "no shape");
    expect_refusal(onepass_merge_dimensions(&wide, NULL), ONEPASS_INVALID_ARGUMENT, "strides|null", "no strides");
    expect_refusal(onepass_merge_dimensions(&wide, strides), ONEPASS_INVALID_SHAPE, "17|16", "17 dimensions to merge");
    expect_refusal(onepass_merge_dimensions(&below_zero, strides), ONEPASS_INVALID_SHAPE, "negative", "merging -2");
    tensor = tensor_of(2, negative, NULL);
    expect_refusal(onepass_broadcast(&common, &tensor), ONEPASS_INVALID_SHAPE, "negative|(3, -1)", "a negative extent");
    tensor = tensor_of(2, huge, NULL);
    expect_refusal(onepass_broadcast(&common, &tensor), ONEPASS_INVALID_SHAPE, "63 bits", "2^80 elements");
    tensor = tensor_of(17, many, NULL);
    expect_refusal(onepass_broadcast(&common, &tensor), ONEPASS_INVALID_SHAPE, "17|16", "17 dimensions");
    tensor = tensor_of(2, NULL, NULL);
    expect_refusal(onepass_broadcast(&common, &tensor), ONEPASS_INVALID_ARGUMENT, "shape|null", "no extents");
    CHECK(common.ndim == 0 && common.count == 1, "refused: expected the shape of before, got another");
}

static void test_sizes(void) {
    static const struct {
        int32_t dtype;
        size_t size;
    } known[] = {{ONEPASS_F16, 2}, {ONEPASS_BF16, 2}, {ONEPASS_F32, 4}, {ONEPASS_F64, 8}, {ONEPASS_BOOL, 1},
                 {ONEPASS_I64, 8}, {ONEPASS_I32, 4},  {ONEPASS_U8, 1},  {0, 0},           {9, 0},
                 {-1, 0}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        CHECK(onepass_dtype_size(known[i].dtype) == known[i].size, "type %d: expected %zu bytes, got %zu",
              known[i].dtype, known[i].size, onepass_dtype_size(known[i].dtype));
}

/* By the words of PyTorch's table, either way around. */
static void test_promotion(void) {
    static const int32_t known[][3] = {{ONEPASS_F16, ONEPASS_F16, ONEPASS_F16},
                                       {ONEPASS_BF16, ONEPASS_BF16, ONEPASS_BF16},
                                       {ONEPASS_F16, ONEPASS_BF16, ONEPASS_F32},
                                       {ONEPASS_F16, ONEPASS_F32, ONEPASS_F32},
                                       {ONEPASS_BF16, ONEPASS_F32, ONEPASS_F32},
                                       {ONEPASS_BF16, ONEPASS_F64, ONEPASS_F64},
                                       {ONEPASS_F32, ONEPASS_F64, ONEPASS_F64},
                                       {ONEPASS_F32, ONEPASS_F32, ONEPASS_F32},
                                       {ONEPASS_F64, ONEPASS_F64, ONEPASS_F64},
                                       {ONEPASS_F32, ONEPASS_BOOL, 0},
                                       {ONEPASS_F64, ONEPASS_I64, 0},
                                       {0, ONEPASS_F32, 0}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        for (int turn = 0; turn < 2; turn++) {
            const int32_t got = onepass_promote(known[i][turn], known[i][!turn]);
            CHECK(got == known[i][2], "types %d and %d: expected %d, got %d", known[i][turn], known[i][!turn],
                  known[i][2], got);
        }
}

int main(void) {
    const onepass_shape none = ONEPASS_SHAPE_INIT;
    for (int i = 0; i < CASES; i++) {
        const onepass_shape a = random_shape(&none), b = random_shape(&a);
        check_broadcast(&a, &b);
        onepass_shape common = a;
        const onepass_tensor tensor = tensor_of(b.ndim, b.extent, NULL);
        if (onepass_broadcast(&common, &tensor) == ONEPASS_OK) {
            check_strides(&a, &common);
            check_strides(&b, &common);
        }
    }
    test_dense_strides();
    test_refusals();
    test_sizes();
    test_promotion();
    return check_finish();
}
