/* Accumulators: a capsule for each, and slices of tensors and arrays alike from Python's arguments to onepass_call. */
#include "native.h"

#include <stdlib.h>

#define CAPSULE "onepass.accumulator"

/* With what every slice's call says again. The name of the loss is the library's, so that it stays. */
typedef struct held {
    onepass_accumulator *accumulator;
    onepass_call call;
} held;

/* --------------------------------------------------------------- capsules -- */

static void destroy(PyObject *capsule) {
    held *own = PyCapsule_GetPointer(capsule, CAPSULE);
    onepass_accumulator_destroy(own->accumulator);
    free(own);
}

static PyObject *hold(onepass_accumulator *accumulator) {
    held *own = calloc(1, sizeof *own);
    PyObject *capsule = own ? PyCapsule_New(own, CAPSULE, destroy) : PyErr_NoMemory();
    if (!capsule) {
        onepass_accumulator_destroy(accumulator);
        free(own);
        return NULL;
    }
    onepass_accumulator_info info = {.size = sizeof info};
    onepass_accumulator_describe(accumulator, &info);
    own->accumulator = accumulator;
    own->call = (onepass_call){.size = sizeof own->call,
                               .loss = info.loss,
                               .reduction = info.reduction,
                               .parameter_count = info.parameter_count,
                               .divisor = info.divisor};
    for (int i = 0; i < ONEPASS_MAX_PARAMETERS; i++)
        own->call.parameter[i] = info.parameter[i];
    return capsule;
}

static held *held_by(PyObject *capsule) {
    return PyCapsule_GetPointer(capsule, CAPSULE);
}

/* accumulator_begin(loss, reduction, parameters, divisor, total): the capsule; a divisor of 0 is none. */
PyObject *native_accumulator_begin(PyObject *module, PyObject *const *arguments, Py_ssize_t count) {
    (void)module;
    onepass_call call;
    onepass_accumulator *begun = NULL;
    if (!native_has_count(count, 5, "accumulator_begin") || !native_read_question(arguments, &call))
        return NULL;
    call.divisor = PyFloat_AsDouble(arguments[3]);
    const long long total = PyLong_AsLongLong(arguments[4]);
    if (PyErr_Occurred())
        return NULL;
    const onepass_status status = onepass_accumulator_begin(&begun, &call, total);
    if (status == ONEPASS_OK)
        return hold(begun);
    native_raise(status, &call);
    return NULL;
}

/* accumulator_describe(capsule): loss, reduction, parameters, divisor, total, and how many elements were added. */
PyObject *native_accumulator_describe(PyObject *module, PyObject *capsule) {
    (void)module;
    const held *own = held_by(capsule);
    onepass_accumulator_info info = {.size = sizeof info};
    if (!own)
        return NULL;
    onepass_accumulator_describe(own->accumulator, &info);
    PyObject *parameters = PyTuple_New(info.parameter_count);
    for (int32_t i = 0; parameters && i < info.parameter_count; i++) {
        PyObject *one = PyFloat_FromDouble(info.parameter[i]);
        if (!one || PyTuple_SetItem(parameters, i, one) != 0)
            Py_CLEAR(parameters);
    }
    return parameters ? Py_BuildValue("siNdLL", info.loss, (int)info.reduction, parameters, info.divisor,
                                      (long long)info.total, (long long)info.added)
                      : NULL;
}

/* ----------------------------------------------------------------- slices -- */

/* What an argument of a slice may be. */
typedef enum kind {
    FLOATS,
    MASK,
    LABELS,
    NUMBERS, /* floats or whole numbers */
    MADE     /* an output */
} kind;

typedef outcome numpy_borrower(PyObject *object, const char *name, borrowed *into);

/* What can be wrong with a tensor, or that it is none. */
static void refuse(PyObject *object, const char *name) {
    static const char *const asked[] = {"dtype", "layout", "device", "ndim"};
    PyObject *is[4] = {NULL};
    for (int i = 0; i < 4; i++)
        if (!(is[i] = PyObject_GetAttrString(object, asked[i])))
            PyErr_Clear();
    if (is[0] && is[1] && is[2] && is[3])
        PyErr_Format(
            PyExc_TypeError,
            "%s is a tensor of %S, %S, on %S, of %S dimensions; expected a dense one on the CPU or a GPU, of up "
            "to %d dimensions, whose elements have a type that the loss takes there",
            name, is[0], is[1], is[2], is[3], ONEPASS_MAX_DIMENSIONS);
    else
        PyErr_Format(PyExc_TypeError, "%s is of type %R; expected a tensor of PyTorch's or an array of NumPy's", name,
                     (PyObject *)Py_TYPE(object));
    for (int i = 0; i < 4; i++)
        Py_XDECREF(is[i]);
}

/* A tensor of PyTorch's, which is tried first since it costs little to see that it is none, or an array. */
static bool borrow_as(PyObject *object, const char *name, torch_borrower *torch, numpy_borrower *numpy, borrowed *into,
                      bool *is_tensor) {
    const outcome result = torch(object, name, into);
    *is_tensor = *is_tensor || result == DONE;
    if (result != OTHERWISE)
        return result == DONE;
    if (PyObject_HasAttrString(object, "__array_interface__"))
        return numpy(object, name, into) == DONE;
    refuse(object, name);
    return false;
}

static bool borrow(PyObject *object, const char *name, kind kind, borrowed *into, bool *is_tensor) {
    switch (kind) {
    case MASK:
        return borrow_as(object, name, torch_borrow_mask, numpy_borrow_mask, into, is_tensor);
    case LABELS:
        return borrow_as(object, name, torch_borrow_labels, numpy_borrow_labels, into, is_tensor);
    case NUMBERS:
        if (borrow_as(object, name, torch_borrow_labels, numpy_borrow_labels, into, is_tensor))
            return true;
        PyErr_Clear();
        return borrow_as(object, name, torch_borrow, numpy_borrow, into, is_tensor);
    case MADE:
        return borrow_as(object, name, torch_borrow_made, numpy_borrow, into, is_tensor);
    case FLOATS:
        break;
    }
    return borrow_as(object, name, torch_borrow, numpy_borrow, into, is_tensor);
}

enum {
    FIRST,
    SECOND,
    THIRD,
    WEIGHT,
    SLICE_MASK,
    GRADIENT,
    STATE = GRADIENT + 3,
    TENSORS
};

/* By the catalogue: what the target of a loss is, and what its third operand. */
static kind kind_of(const onepass_call *call, int i) {
    const onepass_loss_info *info = onepass_loss_named(call->loss);
    if (i == SECOND && (info->over_rows == ONEPASS_CLASS_INDEX || info->over_rows == ONEPASS_CLASS_A_VECTOR ||
                        info->over_rows == ONEPASS_CLASSES_A_VECTOR))
        return LABELS;
    if (i == THIRD && info->over_rows == ONEPASS_NUMBER_A_VECTOR)
        return NUMBERS;
    return i == SLICE_MASK ? MASK : i >= GRADIENT ? MADE : FLOATS;
}

/* accumulator_add(capsule, axis, first, input, target, third, weight, mask, gradient, gradient, gradient, row_state):
 * tensors of PyTorch's or arrays of NumPy's, or None for what is not there; the outputs are those that the caller has
 * made. */
PyObject *native_accumulator_add(PyObject *module, PyObject *const *arguments, Py_ssize_t count) {
    (void)module;
    static const char *const names[TENSORS] = {"input",        "target",       "the third operand",
                                               "weight",       "mask",         "the gradient",
                                               "the gradient", "the gradient", "the rows' state"};
    borrowed tensor[TENSORS];
    const onepass_tensor *given[TENSORS] = {NULL};
    bool is_tensor = false;
    if (!native_has_count(count, 3 + TENSORS, "accumulator_add"))
        return NULL;
    held *own = held_by(arguments[0]);
    if (!own)
        return NULL;
    onepass_call call = own->call;
    call.axis = (int32_t)PyLong_AsLong(arguments[1]);
    const long long first = PyLong_AsLongLong(arguments[2]);
    if (PyErr_Occurred())
        return NULL;
    if (arguments[3 + FIRST] == Py_None)
        return PyErr_Format(PyExc_TypeError, "input is None; expected a tensor or an array");
    for (int i = 0; i < TENSORS; i++) {
        PyObject *object = arguments[3 + i];
        if (object == Py_None)
            continue;
        if (!borrow(object, names[i], kind_of(&call, i), &tensor[i], &is_tensor))
            return NULL;
        given[i] = &tensor[i].tensor;
        if (tensor[i].device != tensor[FIRST].device || tensor[i].device_index != tensor[FIRST].device_index)
            return PyErr_Format(PyExc_ValueError, "%s is on another device than input; expected one for all of a slice",
                                names[i]);
    }
    for (int k = 0; k <= THIRD; k++) {
        call.operand[k] = given[k];
        call.gradient[k] = given[GRADIENT + k];
    }
    call.weight = given[WEIGHT];
    call.mask = given[SLICE_MASK];
    call.row_state = given[STATE];
    if (is_tensor && native_place_device(&tensor[FIRST], &call) != DONE)
        return NULL;
    PyThreadState *state = PyEval_SaveThread();
    const onepass_status status = onepass_accumulator_add(own->accumulator, &call, first);
    PyEval_RestoreThread(state);
    if (status != ONEPASS_OK) {
        native_raise(status, &call);
        return NULL;
    }
    Py_RETURN_NONE;
}

/* ---------------------------------------------------------- merge, finish -- */

/* All of these may wait for slices on GPUs, and others may run meanwhile. */

/* accumulator_merge(into, from) */
PyObject *native_accumulator_merge(PyObject *module, PyObject *const *arguments, Py_ssize_t count) {
    (void)module;
    if (!native_has_count(count, 2, "accumulator_merge"))
        return NULL;
    held *into = held_by(arguments[0]), *from = into ? held_by(arguments[1]) : NULL;
    if (!from)
        return NULL;
    PyThreadState *state = PyEval_SaveThread();
    const onepass_status status = onepass_accumulator_merge(into->accumulator, from->accumulator);
    PyEval_RestoreThread(state);
    if (status != ONEPASS_OK) {
        native_raise(status, &into->call);
        return NULL;
    }
    Py_RETURN_NONE;
}

/* accumulator_finish(capsule, out): into a tensor or an array of one element; with None a float of Python's. */
PyObject *native_accumulator_finish(PyObject *module, PyObject *const *arguments, Py_ssize_t count) {
    (void)module;
    double number = 0;
    borrowed out = {.tensor = {.data = &number, .dtype = ONEPASS_F64}};
    bool is_tensor = false;
    if (!native_has_count(count, 2, "accumulator_finish"))
        return NULL;
    held *own = held_by(arguments[0]);
    if (!own || (arguments[1] != Py_None && !borrow(arguments[1], "the value", MADE, &out, &is_tensor)))
        return NULL;
    PyThreadState *state = PyEval_SaveThread();
    const onepass_status status = onepass_accumulator_finish(own->accumulator, &out.tensor);
    PyEval_RestoreThread(state);
    if (status != ONEPASS_OK) {
        native_raise(status, &own->call);
        return NULL;
    }
    return arguments[1] == Py_None ? PyFloat_FromDouble(number) : Py_NewRef(arguments[1]);
}

/* ------------------------------------------------------------------ bytes -- */

/* accumulator_export(capsule): bytes that accumulator_import takes, here and on any other machine. */
PyObject *native_accumulator_export(PyObject *module, PyObject *capsule) {
    (void)module;
    const held *own = held_by(capsule);
    size_t size = 0;
    if (!own)
        return NULL;
    PyThreadState *state = PyEval_SaveThread();
    onepass_status status = onepass_accumulator_export(own->accumulator, NULL, 0, &size);
    PyEval_RestoreThread(state);
    PyObject *bytes = status == ONEPASS_OK ? PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size) : NULL;
    if (bytes)
        status = onepass_accumulator_export(own->accumulator, PyBytes_AsString(bytes), size, &size);
    if (status == ONEPASS_OK)
        return bytes;
    Py_XDECREF(bytes);
    native_raise(status, &own->call);
    return NULL;
}

PyObject *native_accumulator_import(PyObject *module, PyObject *bytes) {
    (void)module;
    static const onepass_call none = ONEPASS_CALL_INIT;
    onepass_accumulator *made = NULL;
    char *data;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(bytes, &data, &size) != 0)
        return NULL;
    const onepass_status status = onepass_accumulator_import(&made, data, (size_t)size);
    if (status == ONEPASS_OK)
        return hold(made);
    native_raise(status, &none);
    return NULL;
}
