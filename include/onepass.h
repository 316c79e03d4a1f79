/*
 * onepass: loss functions and their gradients in one pass over memory.
 *
 * The policy, before the first prototype:
 *
 * - One pass. Each input is read once (the weights and the mask of a mean twice, since
 *   their sum comes first). Nothing of the size of the inputs is allocated or written but the
 *   outputs that were asked for.
 * - Same bits. A result depends on the inputs alone: not on the number of
 *   threads, the instruction set, the strides, or whether value and gradient
 *   are computed together or apart. docs/numerics.md says how, and where it ends.
 * - Ownership. The caller owns every pointer of a call. The library reads and
 *   writes them during the call only and keeps none. The one object that it
 *   allocates is the accumulator; onepass_accumulator_destroy frees it.
 * - Threads. Every function may be called from any number of threads at once.
 *   Two calls that run at once must not write what the other reads or writes,
 *   and one accumulator is used by one thread at a time. A call asks for no more
 *   threads than there are cores, and does with fewer, or with its own alone, where
 *   a limit on memory or processes leaves no more (docs/api.md says what others that
 *   take the same memory can do to that).
 * - Stack. A call on the CPU takes at most ONEPASS_STACK_SIZE bytes of it, and each
 *   thread that it has work for it.
 * - Errors. A function that can fail returns a status. If that is not
 *   ONEPASS_OK, nothing was written to any output, and onepass_message() is a
 *   sentence, for the calling thread, that names what was wrong and what was
 *   expected. The library never prints, exits or raises a signal.
 * - Floating-point state. Results do not depend on the caller's rounding mode,
 *   flush-to-zero mode or trap mask, and a call leaves all of them, and the
 *   exception flags, as they were.
 * - After fork() the child computes with one thread; the bits are the same.
 * - GPUs. A call with device = ONEPASS_CUDA has all its tensors in memory of that
 *   GPU. Its work goes to the call's stream, and the function returns without
 *   waiting; a stream under capture gets it as part of its graph. The context is
 *   the caller's current one if that belongs to the GPU, else the GPU's primary
 *   context; it is current again, whatever it was, when the function returns.
 *   Partial sums need a workspace. The library keeps one for each stream and one
 *   for each captured call; a caller's own is zeroed once by the caller and serves
 *   one call at a time, each of which leaves it ready for the next.
 */
#ifndef ONEPASS_H
#define ONEPASS_H

#include <stddef.h>
#include <stdint.h>

#define ONEPASS_VERSION_MAJOR 0
#define ONEPASS_VERSION_MINOR 1
#define ONEPASS_VERSION_PATCH 0
#define ONEPASS_VERSION       (ONEPASS_VERSION_MAJOR * 10000 + ONEPASS_VERSION_MINOR * 100 + ONEPASS_VERSION_PATCH)

#define ONEPASS_MAX_DIMENSIONS 16
#define ONEPASS_MAX_OPERANDS   4
#define ONEPASS_MAX_PARAMETERS 8

/* Elements of a tile, the unit of the order of summation. Slices that begin and end
 * at multiples of it are the smallest for an accumulator to keep. */
#define ONEPASS_TILE 1024

/* Bytes of stack that a call takes at most, on the caller's thread as on others. */
#define ONEPASS_STACK_SIZE 102400

/* Bytes of a caller's own workspace on a GPU that serve every call. */
#define ONEPASS_WORKSPACE_SIZE 262400

#if defined(ONEPASS_STATIC)
#define ONEPASS_API
#elif defined(__GNUC__)
#define ONEPASS_API __attribute__((visibility("default")))
#else
#define ONEPASS_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------- types -- */

typedef enum onepass_status {
    ONEPASS_OK = 0,
    ONEPASS_INVALID_ARGUMENT = 1, /* a null pointer, an unknown name or code, a bad parameter */
    ONEPASS_INVALID_SHAPE = 2,    /* shapes that overflow, do not broadcast or do not match */
    ONEPASS_INVALID_MEMORY = 3,   /* misaligned pointers, outputs that overlap something */
    ONEPASS_NOT_SUPPORTED = 4,    /* a field whose feature this version does not have yet */
    ONEPASS_NO_DEVICE = 5,        /* the device that the call names is not there */
    ONEPASS_OUT_OF_MEMORY = 6,
    ONEPASS_INCOMPLETE = 7,    /* an accumulator that was finished before all slices were added */
    ONEPASS_DEVICE_FAILED = 8, /* the GPU's driver refused something or reports an earlier failure */
    ONEPASS_OUT_OF_BOUNDS = 9  /* a class index that is no class */
} onepass_status;

typedef enum onepass_dtype {
    ONEPASS_F16 = 1,  /* IEEE half */
    ONEPASS_BF16 = 2, /* bfloat16 */
    ONEPASS_F32 = 3,
    ONEPASS_F64 = 4,
    ONEPASS_BOOL = 5, /* a byte, for masks alone: 0 is no, all else is yes */
    ONEPASS_I64 = 6,  /* whole numbers, for class indices alone */
    ONEPASS_I32 = 7,
    ONEPASS_U8 = 8
} onepass_dtype;

typedef enum onepass_reduction {
    ONEPASS_MEAN = 0, /* the sum divided by the number of elements, the sum of the weights or the call's divisor */
    ONEPASS_SUM = 1,
    ONEPASS_NONE = 2,     /* one value an element */
    ONEPASS_BATCHMEAN = 3 /* the sum divided by the first extent of the common shape */
} onepass_reduction;

typedef enum onepass_device {
    ONEPASS_CPU = 0,
    ONEPASS_CUDA = 1
} onepass_device;

/* For `flags` of a call. */
enum onepass_flags {
    /* The gradients are there, computed without an upstream gradient: where that is 1 (`expected_upstream` may say
     * otherwise), in the compute type, they stay as they are, and else they are computed anew. For gradients that were
     * rounded, which onepass_scale cannot multiply. The call has `upstream` (one element) and no `value`, and no
     * gradient lies over its operand. */
    ONEPASS_SKIP_IF_UPSTREAM_IS_ONE = 1,
    /* A mean with weights is divided by the number of elements that take part, and not by the sum of their weights. Of
     * a mean alone, and without a divisor. */
    ONEPASS_OVER_ELEMENTS = 2
};

/* Which operand is which, for the arrays `operand` and `gradient` of a call. Some losses have a third one;
 * onepass_loss_info has the operands' names. */
enum {
    ONEPASS_PREDICTION = 0,
    ONEPASS_TARGET = 1,
    ONEPASS_THIRD = 2,
    ONEPASS_CLASS_WEIGHT = 2 /* of a loss over rows, or of vectors with a class index each; its weights have as many
                                elements as there are classes */
};

/* Doubles of a row's state: see row_state of a call. */
#define ONEPASS_ROW_STATE 5

/* Doubles of a tile: see tile_sums of a call. */
#define ONEPASS_TILE_SUMS        2
#define ONEPASS_SMOOTH_TILE_SUMS 4

/*
 * A tensor. Strides count elements and may be zero or negative; null strides
 * mean dense, row-major. A tensor without dimensions (ndim 0, shape null) is a
 * scalar. `data` must be aligned to the size of an element and may be null only
 * if there are no elements.
 */
typedef struct onepass_tensor {
    void *data;
    int32_t dtype; /* onepass_dtype */
    int32_t ndim;
    const int64_t *shape;
    const int64_t *strides;
} onepass_tensor;

/*
 * One computation. Zero it, set `size` (ONEPASS_CALL_INIT does both), then set
 * what you need: all other zeros mean the default. Later versions append fields:
 * those that a caller's shorter struct does not have are 0, and those that a longer
 * one has and the library does not know must be. Sizes below that of version 0.1.0,
 * or above 4096, are refused. What is wanted decides what
 * is done: a value alone is forward, gradients alone are backward, and both
 * come from the same single read of the operands.
 *
 * The operands are broadcast to their common shape by NumPy's rule, aligned at
 * the last dimension. Element types may differ; the computation is in double if
 * an operand or the weight is f64, else in float. Outputs may have any element type,
 * and strides that nest: each steps over all that the smaller ones reach, so that no
 * two elements share memory. A gradient may be written over its own operand if
 * pointer, type, shape and strides are the same; any other overlap of address
 * ranges with an output is an error.
 *
 * A loss over rows takes rows of numbers, logits over classes, along one dimension of its first operand, the axis. All
 * other dimensions, in row-major order, number the rows, and a row is to it what an element is to the other losses:
 * value, upstream gradient, weight and mask have the shape of the rows, which is that of the first operand without the
 * axis, and reductions are over rows. The target is a class index a row (i64, i32 or u8), of that shape, or a
 * probability for each class, of the first operand's shape; nothing is broadcast but weight and mask. The class weights
 * may be left out. A row whose index is the parameter ignore_index takes no part, as if the mask hid it. A mean over
 * class indices is divided by the sum of their class weights over the rows that take part. An index that is
 * no class is an error on the CPU, before anything is written; on a GPU the row's value and gradient are NaN.
 *
 * A vector loss takes one to three tensors of vectors, which are broadcast to their common shape. A vector is
 * everything from the axis on, all dimensions before it number the rows, and a row's vectors together have one value:
 * value, upstream gradient, weight and mask have the shape of the rows, gradients the common shape. A last operand may
 * be one number a row, of the rows' shape and of any type, which has no gradient and no say in what is computed in.
 * If it is a class index, of one of the vector's elements, class weights may follow, one for each element: that of a
 * row's class multiplies the row's value, and a mean is divided as if there were none. Or it has the first operand's
 * shape, and begins with the indices of as many of the vector's elements as it likes, up to the first -1; the gradient
 * of such a loss has memory of its own.
 * Whatever is summed over a vector is summed in double.
 */
typedef struct onepass_call {
    size_t size; /* sizeof(onepass_call) */

    /* What to compute. The parameters are in the order of onepass_loss_info;
     * those beyond parameter_count have their defaults. -0 counts as 0. */
    const char *loss;
    int32_t reduction; /* onepass_reduction */
    int32_t parameter_count;
    double parameter[ONEPASS_MAX_PARAMETERS];

    /* Inputs. `weight` multiplies each element's loss. `mask`, of ONEPASS_BOOL, says which elements take part: where it
     * is 0 the value and the gradients are 0, whatever stands there, NaN included. Both are broadcast to the common
     * shape of the operands, in which they have no say; null means 1. `upstream` is the gradient of whatever was
     * computed from the value: one element for mean and sum, the common shape for none; null means 1. */
    const onepass_tensor *operand[ONEPASS_MAX_OPERANDS]; /* prediction, target, and a third where the loss has one */
    const onepass_tensor *weight;
    const onepass_tensor *mask;
    const onepass_tensor *upstream;

    /* Outputs; null means not wanted. The value has one element for mean and sum
     * and the common shape for none; gradients always have the common shape. */
    const onepass_tensor *value;
    const onepass_tensor *gradient[ONEPASS_MAX_OPERANDS];

    /* For mean: divide by this positive number; 0 means by the number of elements that take part or, if there are
     * weights, by the sum of theirs, whatever that is (ONEPASS_OVER_ELEMENTS: by their number all the same). */
    double divisor;

    /* Where and how. */
    int32_t device;        /* onepass_device */
    int32_t device_index;  /* which GPU */
    void *stream;          /* for a GPU: a CUstream or cudaStream_t; null is the default stream */
    int32_t threads;       /* for the CPU: at most this many, and at most one a core; 0: the library decides */
    int32_t flags;         /* of onepass_flags, or 0 */
    void *workspace;       /* for a GPU: memory of that GPU for partial sums; null: the library's own */
    size_t workspace_size; /* its size; ONEPASS_WORKSPACE_SIZE is enough for every call, with 48 bytes a row more for a
                              loss over rows; of vectors 56 a row, and 24 for every 32768 elements of it, of logits
                              that are compared 160 a row, and 64 for every 1024 */

    /* What a mean is divided by. */
    const onepass_tensor
        *divisor_tensor;              /* in place of `divisor`, which is then 0: one element, on the call's device */
    const onepass_tensor *divided_by; /* an output, one element: what the mean was divided by */

    /* Of losses over rows; `axis` of vector losses as well. */
    int32_t axis;     /* the dimension of the classes, counted from 1; negative: from the end, -1 being the last; 0: the
                         second, or the only one; of vector losses the first dimension of a vector, and 0: the last */
    int32_t reserved; /* 0 */
    const onepass_tensor *log_sum_exp; /* an output, of the rows' shape; 0 of rows that take no part */
    const onepass_tensor *predicted;   /* an output, i64, of the rows' shape: the class of the largest number, the first
                                          of equals, a NaN before all others; -1 of rows that take no part */
    const onepass_tensor *row_state;   /* f64, dense, of shape (rows, ONEPASS_ROW_STATE): an output of a call that has a
                                          value, and an input of one that has gradients alone, which then reads each
                                          logit once and is bit-identical to gradients that come with the value */

    /* Of a loss over class indices whose classes are shared out: the input has some of them, and three kinds of calls
     * give together what one over all classes gives, to the last bit. Class weights are those of all classes.
     * - Without value and gradients the sums of the input's tiles and the labels' logits are written. Tiles are cut
     *   from class 0 on, and the input has whole ones, or ends with the last class.
     * - With a value the input has no class (an extent of 0), and these numbers of all tiles are read.
     * - With a gradient row_state and label_logit are read. The input's classes are whole tiles, or within one; if a
     *   tile is not there as a whole, the sums of the input's tiles are given as well. */
    int64_t first_class;             /* the input's classes are those from here on ... */
    int64_t all_classes;             /* ... of so many; 0: it has all of them */
    const onepass_tensor *tile_sums; /* f64, of shape (rows, ONEPASS_TILE_SUMS, tiles), tiles side by side: of each the
                                        largest logit, NaN or -inf included, and the sum of the exponentials but for
                                        the label's; with label_smoothing ONEPASS_SMOOTH_TILE_SUMS, of the class
                                        weights and of these times (z - largest) as well */
    const onepass_tensor *label_logit; /* f64, dense, one a row; -inf where the input does not have the label's class,
                                          so that the largest of all is the label's */

    /* Of losses over rows: the upstream gradient that is likely to come, such as the scale of a loss. Where `upstream`
     * is null gradients are computed for it, and ONEPASS_SKIP_IF_UPSTREAM_IS_ONE asks about it in the place of 1. 0
     * means 1. */
    double expected_upstream;
} onepass_call;

/* onepass_call call = ONEPASS_CALL_INIT; */
#ifdef __cplusplus
static inline onepass_call onepass_call_init() {
    onepass_call call = onepass_call();
    call.size = sizeof call;
    return call;
}
#define ONEPASS_CALL_INIT onepass_call_init()
#else
#define ONEPASS_CALL_INIT                                                                                              \
    { .size = sizeof(onepass_call) }
#endif

/* ------------------------------------------------------------ computing -- */

/* Does what the call describes. The call is read, never written. */
ONEPASS_API onepass_status onepass_run(const onepass_call *call);

/* The common cases. Parameters have their defaults; tensors may be of any type
 * and strides. In onepass_backward `upstream` may be null (1), and so may one of
 * the two gradients (not wanted). */
ONEPASS_API onepass_status onepass_forward(const char *loss, onepass_reduction reduction,
                                           const onepass_tensor *prediction, const onepass_tensor *target,
                                           const onepass_tensor *value);
ONEPASS_API onepass_status onepass_backward(const char *loss, onepass_reduction reduction,
                                            const onepass_tensor *prediction, const onepass_tensor *target,
                                            const onepass_tensor *upstream, const onepass_tensor *gradient_prediction,
                                            const onepass_tensor *gradient_target);
ONEPASS_API onepass_status onepass_forward_backward(const char *loss, onepass_reduction reduction,
                                                    const onepass_tensor *prediction, const onepass_tensor *target,
                                                    const onepass_tensor *value,
                                                    const onepass_tensor *gradient_prediction);

/* The commonest: the mean loss of two dense float arrays and its gradient for
 * the prediction, in one pass. `value` or `gradient` may be null (not wanted). */
ONEPASS_API onepass_status onepass_mean_f32(const char *loss, int64_t count, const float *prediction,
                                            const float *target, float *value, float *gradient);

/* Multiplies gradients that were computed without an upstream gradient by one, in
 * place: afterwards they are bit-identical to what they would have been if it had
 * been known before. For f32 gradients that were computed in float, and for f64 gradients
 * that were computed in double. Nobody knows here which elements a mask hid or whose row
 * took no part: their 0 is multiplied like any number, and a negative upstream gradient
 * makes it -0, a NaN or an infinite one NaN. The call needs `upstream` (one element), at least one
 * `gradient`, and where: device, device_index, stream, threads. Where the upstream
 * gradient is 1 nothing is read or written. */
ONEPASS_API onepass_status onepass_scale(const onepass_call *call);

/* Makes a device ready, so that the first call on it need not: on a GPU it loads what serves
 * every loss, but none of the losses' kernels, and takes no memory for partial sums. That is
 * left to the calls, so that what is not used takes no memory: the first of a loss, in f32 and
 * in f64, loads the loss's module; the first that needs a kernel (for its types, layouts and
 * outputs) looks it up; the first on a further stream that needs partial sums allocates memory
 * for them, and so does the first that is captured, for many. Such a call may take longer
 * and may wait for the GPU; it may be captured. For the CPU there is nothing to do. */
ONEPASS_API onepass_status onepass_prepare(int32_t device, int32_t device_index);

/* --------------------------------------------------------------- shapes -- */

/* What a call does with shapes, asked for by itself: for programs that allocate
 * outputs, or that bring tensors piece by piece. */
typedef struct onepass_shape {
    int32_t ndim;
    int64_t extent[ONEPASS_MAX_DIMENSIONS];
    int64_t count; /* of elements */
} onepass_shape;

/* The shape of one element, without dimensions, to begin with. */
#define ONEPASS_SHAPE_INIT                                                                                             \
    { 0, {0}, 1 }

/* Bytes of an element; 0 if there is no such type. */
ONEPASS_API size_t onepass_dtype_size(int32_t dtype);

/* The floating-point type that holds the numbers of two, as PyTorch promotes them: the larger one, f32 for f16 with
 * bf16; 0 if one of them is no such type. */
ONEPASS_API int32_t onepass_promote(int32_t a, int32_t b);

/* Broadcasts a shape and a tensor's to their common one, aligned at the last dimension.
 * Of the tensor nothing but ndim and shape is looked at. On failure `common` stays as it was. */
ONEPASS_API onepass_status onepass_broadcast(onepass_shape *common, const onepass_tensor *tensor);

/* A tensor's strides at a shape that it broadcasts to, 0 where it is repeated: `common.ndim`
 * of them. The data are not looked at. */
ONEPASS_API onepass_status onepass_broadcast_strides(const onepass_tensor *tensor, const onepass_shape *common,
                                                     int64_t *strides);

/* The same elements in the same order with as few dimensions as possible, but at least one:
 * those of one element go, and those that one step walks through become one. */
ONEPASS_API onepass_status onepass_merge_dimensions(onepass_shape *shape, int64_t *strides);

/* ---------------------------------------------------------- accumulator -- */

/*
 * For inputs that arrive in pieces: files, shards, machines. The result is
 * bit-identical to that of one call over the whole.
 *
 * Begin with a call that has the loss, its parameters and a reduction (mean or
 * sum), and with the number of elements of the whole. Add slices in any order:
 * the call then also has the slice's operands and, if wanted, its upstream
 * gradient and gradients (a mean is scaled by the whole's count); `value` is
 * null. The slice's elements are the whole's from `first` on, in row-major
 * order. It may begin and end anywhere: of a tile that it begins or ends within, the terms
 * are kept until the others have come (at most ONEPASS_TILE numbers, twice as many of
 * a weighted mean), and the gradients are written at once. All slices
 * are computed in one type, float or double, as one call would be: the first one that
 * is added settles it, and others are refused. Merge adds to `into` what `from` has seen
 * and leaves `from` as it is; both began with the same call (loss, parameters, reduction,
 * divisor) and the same total. Parts may be merged in any order and in any groups; an
 * element that was added twice is an error. Finish needs every element to have been
 * added, writes one element, and may be called again.
 *
 * The weights of a mean, or the elements that its mask leaves, are summed beside the
 * terms, so all its slices have weights or none has, and the same holds for masks.
 * Their sum is known at the end only: gradients need it beforehand, as the `divisor`
 * of every call. The batch of a batchmean is not known here: give its size as the
 * divisor of a mean. `divisor_tensor` and `divided_by` are null.
 *
 * Of a loss over rows, rows are the elements: the total counts them, and a slice has
 * whole rows, from any on. All slices have the same number of classes. A
 * slice may have log_sum_exp, predicted and row_state, of its own rows, as outputs. A
 * mean over class indices is divided by the sum of what all rows count for, so its
 * gradients too need that as the divisor; docs/rows.md says how to have it beforehand.
 * Class weights are the same in all slices, or none has any: a fingerprint of the numbers
 * tells other ones, which are refused. Of those in a GPU's memory nobody has one.
 *
 * A slice may be in the memory of a GPU (device = ONEPASS_CUDA), whatever the slices before: add then puts its work on
 * the call's stream and returns without waiting, as onepass_run does. What it comes to stays in memory of the GPU that
 * belongs to the accumulator, 256 KiB for dozens of slices in flight, until merge, of `from`, export or finish ask for
 * it: these wait for the slices, whatever their streams, and describe does not. Destroy waits too, and frees that
 * memory. If the context of such a slice is destroyed before, its sum is lost, and they say so. A stream under capture
 * is refused, since a graph would add the same elements each time that it is replayed. A class index that is not one is
 * no error there, as in a call: its row comes out as NaN. The value of finish is in memory of the CPU.
 */
typedef struct onepass_accumulator onepass_accumulator;

ONEPASS_API onepass_status onepass_accumulator_begin(onepass_accumulator **accumulator, const onepass_call *call,
                                                     int64_t total);
ONEPASS_API onepass_status onepass_accumulator_add(onepass_accumulator *accumulator, const onepass_call *call,
                                                   int64_t first);
ONEPASS_API onepass_status onepass_accumulator_merge(onepass_accumulator *into, const onepass_accumulator *from);
ONEPASS_API onepass_status onepass_accumulator_finish(const onepass_accumulator *accumulator,
                                                      const onepass_tensor *value);
ONEPASS_API void onepass_accumulator_destroy(onepass_accumulator *accumulator); /* null is fine */

/*
 * An accumulator as bytes, for another process or another machine, which imports and merges them: they are the same on
 * every architecture and hold no pointers. There are 232 bytes for what it began with; 24 (of a mean over weights, a
 * mask or class indices 32) for each node of the order of summation, which is one for a slice of an aligned power of
 * two of tiles, and at most two for each power of two in another; and for each torn tile 136 and its terms, 4 bytes
 * each in float and 8 in double, with as many for weights.
 *
 * Export writes `*size` bytes to `bytes`, which has room for `room`; if `bytes` is null it only says the size. Import
 * makes a new accumulator of them, which is destroyed as one that has begun. Bytes that are truncated, altered, not an
 * accumulator's, or of a version that this library does not know are refused, wherever they come from.
 */
ONEPASS_API onepass_status onepass_accumulator_export(const onepass_accumulator *accumulator, void *bytes, size_t room,
                                                      size_t *size);
ONEPASS_API onepass_status onepass_accumulator_import(onepass_accumulator **accumulator, const void *bytes,
                                                      size_t size);

/* What an accumulator began with, and how far it is. */
typedef struct onepass_accumulator_info {
    size_t size;       /* sizeof(onepass_accumulator_info), set by the caller: no more is written, as in a call */
    const char *loss;  /* of the library's, so that it stays */
    int32_t reduction; /* onepass_reduction */
    int32_t parameter_count;
    double parameter[ONEPASS_MAX_PARAMETERS]; /* those that were not given have their defaults */
    double divisor;                           /* 0 if none was given */
    int64_t total;
    int64_t added;       /* elements, or rows, of the total; */
    int64_t missing;     /* the first that was not, or the total; */
    int64_t missing_end; /* the first behind it that was, or the total */
    int32_t compute;     /* ONEPASS_F32 or ONEPASS_F64; 0 before the first slice */
    int32_t reserved;    /* 0 */
} onepass_accumulator_info;

ONEPASS_API onepass_status onepass_accumulator_describe(const onepass_accumulator *accumulator,
                                                        onepass_accumulator_info *info);

/* --------------------------------------------------------------- asking -- */

/* The sentence for the last error of the calling thread; "" if its last call
 * was in order. Valid until the thread's next call. Never null. */
ONEPASS_API const char *onepass_message(void);

/* A status's name, "ONEPASS_OK" and so on. Never null. */
ONEPASS_API const char *onepass_status_name(onepass_status status);

/* The version of the library that runs, as ONEPASS_VERSION and as text. */
ONEPASS_API int onepass_version(void);
ONEPASS_API const char *onepass_version_text(void);

typedef struct onepass_parameter_info {
    const char *name;
    const char *meaning;
    double default_value;
    double minimum;           /* smaller ones are refused, as are ... */
    double maximum;           /* ... larger ones, and NaN always */
    int32_t minimum_excluded; /* 1: the minimum itself is refused too */
    int32_t maximum_excluded; /* 1: and the maximum */
} onepass_parameter_info;

typedef struct onepass_error {
    double ulp;     /* at most so many units in the last place ... */
    const char *of; /* ... of the result or, where it is larger, of this formula; null if of the result alone */
} onepass_error;

/* How far the value and the slope in each operand of one element, as the compute type, may be from the exact ones. What
 * one rounding of parts of the formulas makes of the result, "x" or "x; x*x", comes on top. Of a vector loss: in float;
 * in double errors grow with the length of a vector, as docs/numerics.md counts. */
typedef struct onepass_accuracy {
    const char *rounded;
    onepass_error error[1 + ONEPASS_MAX_OPERANDS];
} onepass_accuracy;

typedef struct onepass_loss_info {
    const char *name;
    const char *meaning;
    const char *value; /* the formula, in p, t, x = p - t, v (the third operand) and the parameters' names */
    const char *slope; /* its derivative in p */
    int32_t operand_count;
    int32_t parameter_count;
    const onepass_parameter_info *parameter;
    const char *const *operand; /* the operands' names */
    const onepass_accuracy *accuracy;
    int32_t over_rows;       /* onepass_target: 0 of a loss whose every element has a value */
    int32_t has_log_sum_exp; /* 1: a call may have log_sum_exp and row_state; else 0 */
} onepass_loss_info;

/* What the target of a loss over rows is. */
typedef enum onepass_target {
    ONEPASS_CLASS_INDEX = 1,
    ONEPASS_CLASS_PROBABILITIES = 2,
    ONEPASS_VECTOR = 3,          /* of a vector loss: all operands are vectors, ... */
    ONEPASS_NUMBER_A_VECTOR = 4, /* ... or the last one is a number for each, ... */
    ONEPASS_CLASS_A_VECTOR = 5,  /* ... or the second is the index of one of its elements; class weights may follow */
    ONEPASS_CLASSES_A_VECTOR = 6 /* ... or the second has the indices of some of them, and -1 behind the last */
} onepass_target;

/* The losses whose every element has a value, those over rows and those of vectors, by index from 0 (null beyond the
 * last), and all of them by name (null if unknown). */
ONEPASS_API const onepass_loss_info *onepass_loss_at(int32_t index);
ONEPASS_API const onepass_loss_info *onepass_row_loss_at(int32_t index);
ONEPASS_API const onepass_loss_info *onepass_vector_loss_at(int32_t index);
ONEPASS_API const onepass_loss_info *onepass_loss_named(const char *name);

typedef struct onepass_machine_info {
    size_t size;                 /* sizeof(onepass_machine_info), set by the caller: no more is written, as in a call */
    const char *instruction_set; /* in use: "neon", "avx2", ... */
    const char *instruction_sets; /* all that this build and this machine have, spaces between */
    int32_t threads;              /* that a large call uses by default */
    int32_t gpu_count;            /* 0: see gpu_reason */
    const char *gpu_reason;       /* why no GPU can be used, or "" */
    const char *gpu_names;        /* the GPUs' names, by index, ", " between; or "" */
    int32_t gpu_driver;           /* the CUDA version of the driver, 13000 for 13.0; 0: no driver */
    int32_t gpu_toolkit;          /* that of the toolkit that built the kernels; 0: built without */
} onepass_machine_info;

/* What this machine has. The environment variable ONEPASS_ISA forces an
 * instruction set by its name; one that is not there is an error, here and in
 * every computation. It is read once. */
ONEPASS_API onepass_status onepass_machine(onepass_machine_info *info);

#ifdef __cplusplus
}
#endif
#endif
