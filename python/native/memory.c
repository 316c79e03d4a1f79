/*
 * The memory of large tensors on the CPU. An allocator gives such memory back to the system and asks for it anew, and
 * the system clears it page by page, which took nearly as long as a loss and its gradient. Here the memory of a tensor
 * that is no longer used is kept for the next one. The system may take what is kept whenever it needs memory
 * (MADV_FREE).
 */
#include "native.h"

#if defined(__linux__)

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#define CAPSULE "dltensor" /* by this name PyTorch knows one that nobody has taken yet */

enum {
    MOST_KEPT = 4,   /* as many as a loss has gradients, and one more */
    PAGE = 64 << 10, /* a multiple of the size of pages anywhere */
    HUGE_PAGE = 2 << 20,
    LEAST = 32 << 20, /* of less glibc's allocator keeps what it had */
    BEGINNING = 2048  /* other large tensors begin with a page; to read and write half a page apart is quicker */
};

#define MOST (SIZE_MAX / 4) /* with what is added to it, this is still a size */

typedef struct block {
    dlpack_managed lent;
    int64_t shape[ONEPASS_MAX_DIMENSIONS], strides[ONEPASS_MAX_DIMENSIONS];
    char *first; /* of a huge page */
    size_t bytes;
} block;

/* The newest first. Threads take and leave whole blocks, so that there is no lock that a fork could leave closed. */
static _Atomic(block *) kept[MOST_KEPT];

static void unmap(block *it) {
    (void)munmap(it->first, it->bytes);
    free(it);
}

/* What is kept counts, although it is free to be taken. */
static bool is_limited(int resource) {
    struct rlimit limit;
    return getrlimit(resource, &limit) != 0 || limit.rlim_cur != RLIM_INFINITY;
}

static bool may_keep(void) {
    return !is_limited(RLIMIT_AS) && !is_limited(RLIMIT_DATA);
}

/* On whatever thread lets go of a tensor, with the GIL or without. To write anew to small pages that are free to be
 * taken costs more than to huge ones, so that those behind the last huge one are not. */
static void keep(dlpack_managed *lent) {
    block *it = lent->context;
    if (!may_keep() || madvise(it->first, it->bytes / HUGE_PAGE * HUGE_PAGE, MADV_FREE) != 0) {
        unmap(it);
        return;
    }
    for (int i = 0; i < MOST_KEPT && it; i++)
        it = atomic_exchange(&kept[i], it);
    if (it)
        unmap(it);
}

static block *take(size_t bytes) {
    for (int i = 0; i < MOST_KEPT; i++) {
        block *it = atomic_exchange(&kept[i], NULL), *none = NULL;
        if (it && it->bytes >= bytes && it->bytes / 2 <= bytes)
            return it;
        if (it && !atomic_compare_exchange_strong(&kept[i], &none, it))
            unmap(it); /* another has filled the place meanwhile */
    }
    return NULL;
}

static void drop_all(void) {
    for (int i = 0; i < MOST_KEPT; i++) {
        block *it = atomic_exchange(&kept[i], NULL);
        if (it)
            unmap(it);
    }
}

static char *map(size_t bytes) {
    char *const at = mmap(NULL, bytes + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return NULL;
    const size_t before = -(uintptr_t)at % HUGE_PAGE;
    if (before)
        (void)munmap(at, before);
    (void)munmap(at + before + bytes, HUGE_PAGE - before);
    (void)madvise(at + before, bytes, MADV_HUGEPAGE); /* only a wish */
    return at + before;
}

static block *make(size_t bytes) {
    block *it = calloc(1, sizeof *it);
    if (it && !(it->first = map(bytes))) {
        free(it);
        it = NULL;
    }
    if (it)
        it->bytes = bytes;
    return it;
}

/* Of an expanded operand the gradient may have more than can be counted. */
static size_t bytes_of(const dlpack_tensor *tensor) {
    size_t bytes = tensor->type.bits / 8;
    for (int32_t d = 0; d < tensor->ndim; d++)
        if (__builtin_mul_overflow(bytes, (size_t)tensor->shape[d], &bytes))
            return SIZE_MAX;
    return bytes;
}

bool memory_is_large(const dlpack_tensor *tensor) {
    const size_t bytes = bytes_of(tensor);
    if (bytes < LEAST || bytes > MOST)
        return false;
    const char *wish = getenv("ONEPASS_KEEP_MEMORY");
    const bool keeps = may_keep() && !(wish && strcmp(wish, "0") == 0);
    if (!keeps) /* any more */
        drop_all();
    return keeps;
}

static void drop_capsule(PyObject *capsule) {
    if (PyCapsule_IsValid(capsule, CAPSULE))
        keep(PyCapsule_GetPointer(capsule, CAPSULE));
}

outcome memory_lend(const dlpack_tensor *wanted, PyObject **capsule) {
    const size_t bytes = (BEGINNING + bytes_of(wanted) + PAGE - 1) / PAGE * PAGE;
    block *it = take(bytes);
    if (!it && !(it = make(bytes))) {
        drop_all(); /* so that there is more for others */
        return OTHERWISE;
    }
    it->lent = (dlpack_managed){*wanted, it, keep};
    it->lent.tensor.data = it->first + BEGINNING;
    it->lent.tensor.shape = memcpy(it->shape, wanted->shape, (size_t)wanted->ndim * sizeof *it->shape);
    it->lent.tensor.strides = memcpy(it->strides, wanted->strides, (size_t)wanted->ndim * sizeof *it->strides);
    *capsule = PyCapsule_New(&it->lent, CAPSULE, drop_capsule);
    if (*capsule)
        return DONE;
    keep(&it->lent);
    return FAILED;
}

#else

bool memory_is_large(const dlpack_tensor *tensor) {
    (void)tensor;
    return false;
}

outcome memory_lend(const dlpack_tensor *wanted, PyObject **capsule) {
    (void)wanted, (void)capsule;
    return OTHERWISE;
}

#endif
