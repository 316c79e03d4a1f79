/*
 * The list of cases that several tests share: what to compute, on which types,
 * layout, size and data. A case is a small description; case_prepare turns it
 * into a call on real memory, always with the same bytes. cases.c makes the list,
 * case_memory.c the calls, case_data.c the numbers.
 */
#ifndef ONEPASS_TESTS_CASES_H
#define ONEPASS_TESTS_CASES_H

#include <stddef.h>
#include <stdint.h>

#include "onepass.h"
#include "oracle.h"

/* ----------------------------------------------------------------- axes -- */

enum {
    WANT_VALUE = 1,
    WANT_PREDICTION = 2, /* the gradient in the prediction */
    WANT_TARGET = 4,
    WANT_THIRD = 8,
    WANT_ALL = 15 /* that the loss has */
};

enum {
    UPSTREAM_ABSENT,
    UPSTREAM_ONE,
    UPSTREAM_OTHER, /* one number; for none a tensor of zero strides */
    UPSTREAM_TENSOR /* for none an element each; else one number in three dimensions */
};

enum {
    DATA_UNIFORM, /* -1 to 1 */
    DATA_NORMAL,  /* bell-shaped, mostly -3 to 3 */
    DATA_HUGE,    /* squares overflow */
    DATA_TINY,    /* denormals, and numbers whose squares are denormal */
    DATA_WIDE,    /* 80 binary orders of magnitude, both signs */
    DATA_SPECIAL, /* NaN of all faces and infinities sprinkled in */
    DATA_KINK,    /* hits x = 0, -0, +-beta and p*t = margin all the time */
    DATA_COUNT
};

/* How a weight lies, if there is one; the rows of the table are in case_memory.c. A mask lies in the same ways, and so
 * does a third operand, which lies as the target does if nothing is said. */
enum {
    WEIGHT_ABSENT,
    WEIGHT_DENSE,
    WEIGHT_UNALIGNED,
    WEIGHT_PER_ROW,
    WEIGHT_SHARED_ROW,
    WEIGHT_SCALAR,
    WEIGHT_PADDED,
    WEIGHT_TRANSPOSED,
    WEIGHT_REVERSED,
    WEIGHT_STEP_TWO,
    WEIGHT_ZERO_STRIDES,
    WEIGHT_COUNT
};

/* What a weight is made of. */
enum {
    WEIGHTS_POSITIVE, /* 0.5 to 1.5 */
    WEIGHTS_SIGNED,   /* -1 to 1 */
    WEIGHTS_SPARSE,   /* 0 or 1, mostly 0 */
    WEIGHTS_ZERO,     /* nothing else, of both signs */
    WEIGHTS_ONE,      /* nothing else */
    WEIGHTS_WIDE,     /* many orders of magnitude, both signs */
    WEIGHTS_SPECIAL,  /* NaN and infinities sprinkled in */
    WEIGHTS_COUNT
};

/* What a mask is made of. */
enum {
    MASKS_HALF,
    MASKS_SPARSE, /* mostly 0 */
    MASKS_ALL,
    MASKS_NONE,
    MASKS_OVER_NAN, /* half; where it is 0 stands NaN or infinity, if each element has its own prediction */
    MASKS_COUNT
};

/* How the tensors lie; the rows of the table are in case_memory.c. */
enum {
    LAYOUT_DENSE,
    LAYOUT_UNALIGNED
};
int case_layout_count(void);
int case_layout_rank(int layout);
const char *case_layout_name(int layout);
int case_layout_named(const char *name); /* ends the program if there is none */
const char *case_weight_name(int weight);

typedef struct test_case {
    const char *group; /* the axis that varies; the golden file has a line for each group and loss */
    const char *loss;
    int32_t parameter_count;
    double parameter[ONEPASS_MAX_PARAMETERS];
    int32_t prediction, target, gradient, value, upstream_dtype; /* onepass_dtype */
    int32_t reduction;
    int32_t wanted;
    int32_t upstream;
    int32_t layout;
    int64_t rows, columns; /* layouts of one dimension have rows * columns elements */
    int32_t data;
    int32_t weight, weight_dtype, weights; /* how it lies, its onepass_dtype, what it is made of */
    int32_t third, third_dtype;            /* how it lies, its onepass_dtype; 0: as the target */
    int32_t mask, masks;                   /* how it lies, what it is made of */
    double divisor;
    int32_t threads;
    uint64_t seed;
} test_case;

/* The mean of dense tensors of one type, its value alone: what most cases begin with. */
test_case case_dense(const char *group, const char *loss, int32_t dtype, int64_t count);

/* --------------------------------------------------------------- memory -- */

enum {
    TENSOR_PREDICTION,
    TENSOR_TARGET,
    TENSOR_THIRD,
    TENSOR_UPSTREAM,
    TENSOR_VALUE,
    TENSOR_GRADIENT_PREDICTION,
    TENSOR_GRADIENT_TARGET,
    TENSOR_GRADIENT_THIRD,
    TENSOR_WEIGHT,
    TENSOR_MASK,
    TENSOR_COUNT
};

/* A call and the one block of memory that holds all its tensors. What is between
 * and around elements is poison, so comparing whole blocks also shows writes
 * where nothing may be written. */
typedef struct prepared_case {
    onepass_call call;
    onepass_tensor tensor[TENSOR_COUNT];
    int64_t shape[TENSOR_COUNT][ONEPASS_MAX_DIMENSIONS];
    int64_t strides[TENSOR_COUNT][ONEPASS_MAX_DIMENSIONS];
    size_t begin[TENSOR_COUNT]; /* of the tensor's bytes in the block */
    size_t bytes[TENSOR_COUNT];
    unsigned char *block;
    size_t block_size;
} prepared_case;

prepared_case *case_prepare(const test_case *c);
void case_free(prepared_case *prepared);

/* Which tensor a byte of the block belongs to, in words. */
const char *case_owner(const prepared_case *prepared, size_t byte);

/* Whether two blocks are equal, poison included; if not, the first difference in words. */
int case_equal(const prepared_case *expected, const prepared_case *got, char *text, size_t size);

/* The whole list, built on first use, freed by nobody: it lives as long as the test. */
const test_case *case_list(size_t *count);

/* Whether the list has all cases of a loss, and not a sample of them. */
int case_loss_is_swept(const char *loss);

/* What is wanted of a case, of what its loss has: the value if nothing else is left. */
int32_t case_wanted(const test_case *c);

/* Whether it is computed in double. */
int case_in_double(const test_case *c);

/* A case in words, for messages. */
void case_describe(const test_case *c, char *text, size_t size);

/* ----------------------------------------------------------------- data -- */

/* splitmix64: the same numbers on every machine. */
uint64_t random_bits(uint64_t *state);

/* A whole number from 0 to below - 1. */
int64_t random_below(uint64_t *state, int64_t below);

/* One element's bits. */
uint64_t random_element(uint64_t *state, int32_t data, int32_t dtype, double parameter);

/* The same for an operand of a domain. The special values and the kinks go beyond it. */
uint64_t random_operand(uint64_t *state, int32_t data, oracle_domain domain, int32_t dtype, double parameter);

uint64_t random_weight(uint64_t *state, int32_t weights, int32_t dtype);
uint64_t random_mask(uint64_t *state, int32_t masks);

#endif
