/* From Python's arguments to onepass_call and back: what calls of elements and of rows have in common. */
#include "native.h"

#include <stdio.h>
#include <string.h>

enum {
    MEAN_OF_ALL = 4 /* beside onepass_reduction: a mean over the elements that take part, whatever their weights */
};

/* ------------------------------------------------------------------ errors -- */

/* PyTorch's words, with the number that the library's have; PyTorch has no log_prob, whose targets are labels. */
static void raise_out_of_bounds(const onepass_call *call) {
    const char *name = strcmp(call->loss, "log_prob") == 0 ? "Label" : "Target";
    long long target = 0;
    if (sscanf(onepass_message(), "target %lld", &target) == 1)
        PyErr_Format(PyExc_IndexError, "%s %lld is out of bounds.", name, target);
    else
        PyErr_SetString(PyExc_IndexError, onepass_message());
}

void native_raise(onepass_status status, const onepass_call *call) {
    if (status == ONEPASS_OUT_OF_BOUNDS) {
        raise_out_of_bounds(call);
        return;
    }
    PyObject *exception = status == ONEPASS_OUT_OF_MEMORY   ? PyExc_MemoryError
                          : status == ONEPASS_NOT_SUPPORTED ? PyExc_NotImplementedError
                          : status == ONEPASS_INVALID_ARGUMENT || status == ONEPASS_INVALID_SHAPE ? PyExc_ValueError
                                                                                                  : PyExc_RuntimeError;
    PyErr_SetString(exception, onepass_message());
}

bool native_has_count(Py_ssize_t count, Py_ssize_t expected, const char *function) {
    if (count == expected)
        return true;
    PyErr_Format(PyExc_TypeError, "%s takes %zd arguments, not %zd", function, expected, count);
    return false;
}

/* On the CPU others may run meanwhile; a short call, as one on a GPU is, is over before it would pay. */
bool native_run(onepass_status (*function)(const onepass_call *), const onepass_call *call, bool is_short) {
    onepass_status status;
    if (call->device == ONEPASS_CPU && !is_short) {
        PyThreadState *state = PyEval_SaveThread();
        status = function(call);
        PyEval_RestoreThread(state);
    } else {
        status = function(call);
    }
    if (status != ONEPASS_OK)
        native_raise(status, call);
    return status == ONEPASS_OK;
}

/* --------------------------------------------------------------- arguments -- */

/* What every computation is told first: the loss's name, the reduction's number, the tuple of parameters. */
bool native_read_question(PyObject *const *arguments, onepass_call *call) {
    const char *name = PyUnicode_AsUTF8AndSize(arguments[0], NULL); /* which the caller's reference keeps */
    *call = (onepass_call){.size = sizeof *call, .loss = name};
    if (!name)
        return false;
    call->reduction = (int32_t)PyLong_AsLong(arguments[1]);
    if (call->reduction == MEAN_OF_ALL) {
        call->reduction = ONEPASS_MEAN;
        call->flags = ONEPASS_OVER_ELEMENTS;
    }
    const Py_ssize_t count = PyTuple_Size(arguments[2]);
    if (count > ONEPASS_MAX_PARAMETERS)
        PyErr_Format(PyExc_ValueError, "%zd parameters; expected at most %d", count, ONEPASS_MAX_PARAMETERS);
    for (Py_ssize_t i = 0; i < count && !PyErr_Occurred(); i++)
        call->parameter[i] = PyFloat_AsDouble(PyTuple_GetItem(arguments[2], i));
    call->parameter_count = (int32_t)count;
    return !PyErr_Occurred();
}

bool native_are_apart(const borrowed *one, const borrowed *other) {
    return one->device != other->device || one->device_index != other->device_index;
}

outcome native_place_device(const borrowed *first, onepass_call *call) {
    call->device = first->device;
    call->device_index = first->device_index;
    call->threads = first->device == ONEPASS_CPU ? torch_threads() : 0;
    return torch_stream(first, &call->stream);
}

/* Whether the upstream gradient is seen to be 1 at once, as it mostly is. */
bool native_is_one_here(const borrowed *upstream) {
    const onepass_tensor *tensor = &upstream->tensor;
    if (upstream->device != ONEPASS_CPU || tensor->ndim > 0)
        return false;
    return tensor->dtype == ONEPASS_F32 ? *(const float *)tensor->data == 1
                                        : tensor->dtype == ONEPASS_F64 && *(const double *)tensor->data == 1;
}

/* ------------------------------------------------------------------ results -- */

PyObject *native_tuple_of(PyObject **made, int count) {
    PyObject *tuple = PyTuple_New(count);
    for (int i = 0; i < count; i++) {
        PyObject *item = made[i] ? made[i] : Py_NewRef(Py_None);
        if (tuple)
            PyTuple_SetItem(tuple, i, item);
        else
            Py_DECREF(item);
    }
    return tuple;
}

PyObject *native_drop(PyObject **made, int count) {
    for (int i = 0; i < count; i++)
        Py_CLEAR(made[i]);
    return NULL;
}

PyObject *native_answer(const onepass_call *call, bool is_short, PyObject **made, int count) {
    if (!native_run(onepass_run, call, is_short))
        return native_drop(made, count);
    return count == 1 ? made[0] : native_tuple_of(made, count);
}
