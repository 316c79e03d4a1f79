/*
 * The part of DLPack's ABI that the extension speaks: a tensor as frameworks describe it
 * to each other, and the table of functions by which a framework lends and makes its own.
 * Facts of the ABI's major version 1, in our own words; nothing is included from it.
 */
#ifndef ONEPASS_PYTHON_DLPACK_H
#define ONEPASS_PYTHON_DLPACK_H

#include <stdint.h>

enum {
    DLPACK_CPU = 1,
    DLPACK_CUDA = 2,
    DLPACK_CUDA_HOST = 3, /* pinned host memory */
    DLPACK_INT = 0,
    DLPACK_UINT = 1,
    DLPACK_FLOAT = 2,
    DLPACK_BFLOAT = 4,
    DLPACK_BOOL = 6,
    DLPACK_MAJOR = 1
};

#define DLPACK_EXCHANGE_CAPSULE "dlpack_exchange_api"

typedef struct dlpack_device {
    int32_t type;
    int32_t index;
} dlpack_device;

typedef struct dlpack_type {
    uint8_t code;
    uint8_t bits;
    uint16_t lanes;
} dlpack_type;

typedef struct dlpack_tensor {
    void *data;
    dlpack_device device;
    int32_t ndim;
    dlpack_type type;
    int64_t *shape;
    int64_t *strides; /* in elements; null: dense */
    uint64_t byte_offset;
} dlpack_tensor;

typedef struct dlpack_version {
    uint32_t major;
    uint32_t minor;
} dlpack_version;

/* A tensor with whoever is to be told that it is not needed any more: as a capsule holds it, without a version. */
typedef struct dlpack_managed {
    dlpack_tensor tensor;
    void *context;
    void (*deleter)(struct dlpack_managed *self);
} dlpack_managed;

typedef struct dlpack_exchange {
    dlpack_version version;
    struct dlpack_exchange *previous;
    void (*allocate)(void), (*from_object)(void), (*to_object)(void); /* not called here */
    int (*borrow)(void *object, dlpack_tensor *tensor);               /* may be null */
    int (*current_stream)(int32_t device_type, int32_t device_index, void **stream);
} dlpack_exchange;

#endif
