/* Where the numbers of an array lie in a file, as a parser of its header found out. */
#ifndef ONEPASS_CLI_LAYOUT_H
#define ONEPASS_CLI_LAYOUT_H

#include <onepass.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct layout {
    int32_t dtype; /* onepass_dtype */
    bool swapped;  /* an element's bytes are in the other order than this machine's */
    int32_t ndim;
    int64_t shape[ONEPASS_MAX_DIMENSIONS];
    int64_t stride[ONEPASS_MAX_DIMENSIONS]; /* in elements; 0 for an array without elements */
    int64_t count;                          /* of elements */
    uint64_t offset;                        /* of the first one, in bytes from the beginning of the file */
} layout;

/* What an array is wanted for, which says of what types it may be. */
typedef enum purpose {
    FOR_NUMBERS,         /* floating-point numbers */
    FOR_NUMBERS_OR_BITS, /* and, in a .npy file, 16-bit unsigned integers: the bits of bfloat16 numbers */
    FOR_MASK,            /* booleans, or 8-bit unsigned integers */
    FOR_LABELS,          /* whole numbers: of 64 or 32 bits, or 8-bit unsigned ones */
    FOR_ANY_NUMBERS      /* floating-point numbers, or such whole ones */
} purpose;

/* Whether an array of the type may be had for the purpose. */
bool suits(int32_t dtype, purpose purpose);

/* What is wrong with a file, to follow its name and a colon: "its header is cut short: ...". */
typedef struct problem {
    char text[512];
} problem;

/* "f32"; "?" for none of the types. */
const char *dtype_name(int32_t dtype);

bool machine_is_big_endian(void);

/* "(3, 4)", as Python writes it. Cut short where it does not fit. */
void write_shape(char *text, size_t size, int32_t ndim, const int64_t *shape);

/* Keeps the text as printf does and returns false, so that a parser can return it. The arguments must not point into
 * the problem itself. */
bool fail(problem *problem, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* For a byte that no grammar allows there: "expected ':' at byte 17, not 'x'". The text has `size` bytes, of which the
 * first is called byte `origin`. */
bool fail_expected(problem *problem, const char *expected, const unsigned char *text, size_t size, size_t at,
                   size_t origin);

/* Multiplies the extents, which must not be negative, and checks that the array's bytes are counted by an int64_t. */
bool count_elements(layout *layout, problem *problem);

/* The array as the library sees one, without its numbers. */
onepass_tensor layout_tensor(const layout *layout);

/* Sets the strides of C or Fortran order. */
void fill_strides(layout *layout, bool fortran);

#endif
