/*
 * What the extension's files share. It is written for the stable ABI of Python 3.10 and
 * knows PyTorch and NumPy by their Python faces and by DLPack's ABI only, so that one
 * binary serves every version of all three.
 */
#ifndef ONEPASS_PYTHON_NATIVE_H
#define ONEPASS_PYTHON_NATIVE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "dlpack.h"
#include "onepass.h"

#include <stdbool.h>

/* Whether something could be done; OTHERWISE means that it is not for us, without a Python exception. */
typedef enum outcome {
    FAILED = -1, /* with a Python exception */
    OTHERWISE = 0,
    DONE = 1
} outcome;

/* A tensor of Python's world, borrowed for the length of a call. Its shape and strides are copies: while the GIL is
 * released, others may change the original's. */
typedef struct borrowed {
    onepass_tensor tensor;
    int64_t shape[ONEPASS_MAX_DIMENSIONS];
    int64_t strides[ONEPASS_MAX_DIMENSIONS];
    int32_t device; /* onepass_device */
    int32_t device_index;
} borrowed;

/* ---------------------------------------------------------------- torch.c -- */

/* PyTorch as far as it is needed here; learnt once, when the package first meets a tensor of it. */
outcome torch_learn(PyObject *torch);

/* Whether tensors are borrowed by DLPack's exchange API; tests turn it off. Returns what it was. */
bool torch_use_exchange(bool use);

/* A plain, dense or strided tensor of floats on the CPU or a GPU; OTHERWISE for any other, and FAILED for one whose
 * memory was given back, of which PyTorch's own operations would crash. `name` is what messages call it. */
outcome torch_borrow(PyObject *object, const char *name, borrowed *into);

/* The same of one that is no view whose numbers are to be negated, as those that are made here. */
outcome torch_borrow_made(PyObject *object, const char *name, borrowed *into);

/* The same of bool or uint8. */
outcome torch_borrow_mask(PyObject *object, const char *name, borrowed *into);

/* The same of int64, int32 or uint8. */
outcome torch_borrow_labels(PyObject *object, const char *name, borrowed *into);

/* Any of these. */
typedef outcome torch_borrower(PyObject *object, const char *name, borrowed *into);

/* A new dense tensor of the given shape and type, where `like` is. Fills in `into` and returns the object. */
PyObject *torch_make(const borrowed *like, int32_t dtype, int32_t ndim, const int64_t *shape, borrowed *into);

/* The same without dimensions. */
PyObject *torch_make_scalar(const borrowed *like, int32_t dtype, borrowed *into);

/* The same with the shape of `like`, and with its strides if it has no gaps: torch.empty_like. `object` is that tensor.
 */
PyObject *torch_make_like(const borrowed *like, PyObject *object, int32_t dtype, borrowed *into);

/* The stream that PyTorch is using on the tensor's device. */
outcome torch_stream(const borrowed *tensor, void **stream);

/* How many threads PyTorch would use. */
int32_t torch_threads(void);

/* --------------------------------------------------------------- memory.c -- */

/* Whether the memory of such a tensor on the CPU is made here. */
bool memory_is_large(const dlpack_tensor *tensor);

/* A capsule with a tensor of that shape, those strides and that type, for PyTorch to take; OTHERWISE where there is no
 * memory. */
outcome memory_lend(const dlpack_tensor *wanted, PyObject **capsule);

/* ---------------------------------------------------------------- numpy.c -- */

/* An ndarray of floats, or whatever has an __array_interface__. */
outcome numpy_borrow(PyObject *object, const char *name, borrowed *into);

/* The same of bool or uint8. */
outcome numpy_borrow_mask(PyObject *object, const char *name, borrowed *into);

/* The same of int64, int32 or uint8. */
outcome numpy_borrow_labels(PyObject *object, const char *name, borrowed *into);

PyObject *native_numpy_run(PyObject *module, PyObject *const *arguments, Py_ssize_t count);

/* ---------------------------------------------------------------- calls.c -- */

/* The exception for a status that is not ONEPASS_OK, of a call. */
void native_raise(onepass_status status, const onepass_call *call);

/* Whether a function got as many arguments as it takes; else an exception. */
bool native_has_count(Py_ssize_t count, Py_ssize_t expected, const char *function);

/* What every computation is told first: the loss's name, the reduction's number, the tuple of parameters. */
bool native_read_question(PyObject *const *arguments, onepass_call *call);

/* On the CPU others may run meanwhile; a short call, as one on a GPU is, is over before it would pay. */
bool native_run(onepass_status (*function)(const onepass_call *), const onepass_call *call, bool is_short);

/* Whether two tensors are on different devices. */
bool native_are_apart(const borrowed *one, const borrowed *other);

/* A call is made where its first tensor is, on the stream and with the threads that PyTorch would use. */
outcome native_place_device(const borrowed *first, onepass_call *call);

/* A tuple with None for what is not there; takes the references. */
PyObject *native_tuple_of(PyObject **made, int count);

/* Gives up what was made; returns null. */
PyObject *native_drop(PyObject **made, int count);

/* Runs a call whose outputs are `made`: the one that there is, or a tuple of them. */
PyObject *native_answer(const onepass_call *call, bool is_short, PyObject **made, int count);

/* Whether the upstream gradient is seen to be 1 at once, as it mostly is. */
bool native_is_one_here(const borrowed *upstream);

/* ------------------------------------------------------------- pairwise.c -- */

PyObject *native_torch_loss(PyObject *module, PyObject *const *arguments, Py_ssize_t count);
PyObject *native_torch_gradient(PyObject *module, PyObject *const *arguments, Py_ssize_t count);
PyObject *native_torch_scale(PyObject *module, PyObject *const *arguments, Py_ssize_t count);

/* ----------------------------------------------------------------- rows.c -- */

PyObject *native_torch_rows(PyObject *module, PyObject *const *arguments, Py_ssize_t count);
PyObject *native_torch_rows_gradient(PyObject *module, PyObject *const *arguments, Py_ssize_t count);
PyObject *native_torch_is_one(PyObject *module, PyObject *object);

/* --------------------------------------------------------------- shards.c -- */

PyObject *native_torch_shard(PyObject *module, PyObject *const *arguments, Py_ssize_t count);

/* ---------------------------------------------------------- accumulator.c -- */

PyObject *native_accumulator_begin(PyObject *module, PyObject *const *arguments, Py_ssize_t count);
PyObject *native_accumulator_describe(PyObject *module, PyObject *capsule);
PyObject *native_accumulator_add(PyObject *module, PyObject *const *arguments, Py_ssize_t count);
PyObject *native_accumulator_merge(PyObject *module, PyObject *const *arguments, Py_ssize_t count);
PyObject *native_accumulator_finish(PyObject *module, PyObject *const *arguments, Py_ssize_t count);
PyObject *native_accumulator_export(PyObject *module, PyObject *capsule);
PyObject *native_accumulator_import(PyObject *module, PyObject *bytes);

#endif
