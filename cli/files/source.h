/* An operand as the library is to see it, a piece at a time: from the file itself where the library can take it from
 * there, else from a copy in row-major order. */
#ifndef ONEPASS_CLI_SOURCE_H
#define ONEPASS_CLI_SOURCE_H

#include "gather.h"

/* How the common shape is cut into pieces: of so many elements in a row; or, since a view with strides has to be a
 * rectangle, of so many rows of its first dimension. Pieces begin on tiles. */
typedef struct pieces {
    int64_t elements; /* of a piece; the last one may have fewer */
    int64_t row;      /* elements of a row; 0: a piece is not made of rows */
    int32_t first;    /* the dimension that rows are counted in; those before it have one index */
} pieces;

typedef struct source {
    view view;                                     /* at the common shape */
    int64_t common_stride[ONEPASS_MAX_DIMENSIONS]; /* its strides for the dimensions of the common shape */
    bool is_direct;                                /* the library takes it from the file */
    unsigned char *buffer;                         /* for a copy of a piece; null if it is direct */
} source;

/* The input at the common shape, which it must be part of. */
void source_open(source *source, input *input, const onepass_shape *common);

/* The input at its own shape, one dimension of which, unless it is -1, comes last. */
void source_open_moved(source *source, input *input, int32_t last);

/* Says whether the library takes pieces of so many elements from the file, and makes room for a copy if not. False: it
 * has complained. */
bool source_prepare(source *source, int64_t elements);

/* Chooses pieces of at most so many elements (a power of two) that suit all sources, and says which of them need a
 * copy. Rows are for those who begin with the first. False: there is no memory for that, and it has complained. */
bool choose_pieces(source *const *sources, int count, const onepass_shape *common, int64_t most, bool may_be_rows,
                   pieces *pieces);

/* The shape of a piece of `count` elements: one dimension, or rows. */
void shape_piece(const pieces *pieces, const onepass_shape *common, int64_t count, onepass_shape *piece);

/* Elements from `first` on, a piece of them. They are there until the next call. False: it has complained. */
bool source_take(source *source, int64_t first, const onepass_shape *piece, const pieces *pieces, int threads,
                 onepass_tensor *tensor);
void source_close(source *source);

#endif
