/* NumPy's arrays, by what they say of themselves in __array_interface__, and calls of them. */
#include "native.h"

#include <string.h>

/* The type of "<f4" and its like; 0 with an exception for any other. */
static int32_t float_type(const char *text, const char *name) {
    static const struct {
        const char *text;
        int32_t dtype;
    } known[] = {{"f2", ONEPASS_F16}, {"f4", ONEPASS_F32}, {"f8", ONEPASS_F64}};
    const char own = PY_LITTLE_ENDIAN ? '<' : '>', other = PY_LITTLE_ENDIAN ? '>' : '<';
    for (size_t i = 0; text && i < sizeof known / sizeof *known; i++) {
        if (strcmp(text + 1, known[i].text) != 0)
            continue;
        if (text[0] == own)
            return known[i].dtype;
        if (text[0] == other)
            PyErr_Format(PyExc_TypeError,
                         "%s has the byte order of another machine (%s); expected this machine's: "
                         "x.astype(x.dtype.newbyteorder('='))",
                         name, text);
        return 0;
    }
    PyErr_Format(PyExc_TypeError, "%s has numbers of type %s; expected float16, float32 or float64", name,
                 text ? text : "unknown");
    return 0;
}

/* Bytes have no order. */
static int32_t mask_type(const char *text, const char *name) {
    if (text && (strcmp(text + 1, "b1") == 0 || strcmp(text + 1, "u1") == 0))
        return ONEPASS_BOOL;
    PyErr_Format(PyExc_TypeError, "%s has elements of type %s; expected bool or uint8", name, text ? text : "unknown");
    return 0;
}

/* Whole numbers of this machine. */
static int32_t label_type(const char *text, const char *name) {
    const char own = PY_LITTLE_ENDIAN ? '<' : '>';
    const int32_t dtype = !text                         ? 0
                          : strcmp(text + 1, "u1") == 0 ? ONEPASS_U8
                          : text[0] != own              ? 0
                          : strcmp(text + 1, "i8") == 0 ? ONEPASS_I64
                          : strcmp(text + 1, "i4") == 0 ? ONEPASS_I32
                                                        : 0;
    if (!dtype)
        PyErr_Format(PyExc_TypeError, "%s has elements of type %s; expected int64, int32 or uint8%s", name,
                     text ? text : "unknown",
                     text && strchr("<>", text[0]) && text[0] != own ? " of this machine" : "");
    return dtype;
}

/* Floats or whole numbers: which of them a target is depends on the loss. */
static int32_t number_type(const char *text, const char *name) {
    return text && strchr("iu", text[1]) ? label_type(text, name) : float_type(text, name);
}

static bool read_numbers(PyObject *tuple, int64_t *numbers, Py_ssize_t count, int64_t unit, const char *name) {
    for (Py_ssize_t i = 0; i < count; i++) {
        const long long number = PyLong_AsLongLong(PyTuple_GetItem(tuple, i));
        if (number == -1 && PyErr_Occurred())
            return false;
        if (number % unit != 0) {
            PyErr_Format(PyExc_ValueError, "%s has a stride of %lld bytes; expected a multiple of its element's %lld",
                         name, number, (long long)unit);
            return false;
        }
        numbers[i] = number / unit;
    }
    return true;
}

typedef int32_t type_reader(const char *text, const char *name);

static outcome read_interface(PyObject *interface, const char *name, type_reader *type_of, borrowed *into) {
    PyObject *typestr = PyDict_GetItemString(interface, "typestr"), *shape = PyDict_GetItemString(interface, "shape");
    PyObject *data = PyDict_GetItemString(interface, "data"), *strides = PyDict_GetItemString(interface, "strides");
    if (!typestr || !shape || !data || !PyTuple_Check(shape) || !PyTuple_Check(data) ||
        (strides && strides != Py_None && !PyTuple_Check(strides))) {
        PyErr_Format(PyExc_TypeError, "%s has an __array_interface__ that is not complete", name);
        return FAILED;
    }
    const Py_ssize_t ndim = PyTuple_Size(shape);
    if (ndim > ONEPASS_MAX_DIMENSIONS) {
        PyErr_Format(PyExc_ValueError, "%s has %zd dimensions; expected at most %d", name, ndim,
                     ONEPASS_MAX_DIMENSIONS);
        return FAILED;
    }
    PyObject *text = PyUnicode_AsASCIIString(typestr);
    into->tensor.dtype = text ? type_of(PyBytes_AsString(text), name) : 0;
    Py_XDECREF(text);
    into->tensor.data = PyLong_AsVoidPtr(PyTuple_GetItem(data, 0));
    into->tensor.ndim = (int32_t)ndim;
    into->tensor.shape = into->shape;
    into->tensor.strides = NULL;
    if (!into->tensor.dtype || PyErr_Occurred() || !read_numbers(shape, into->shape, ndim, 1, name))
        return FAILED;
    if (strides && strides != Py_None) {
        into->tensor.strides = into->strides;
        if (PyTuple_Size(strides) != ndim ||
            !read_numbers(strides, into->strides, ndim, (int64_t)onepass_dtype_size(into->tensor.dtype), name))
            return FAILED;
    }
    into->device = ONEPASS_CPU;
    into->device_index = 0;
    return DONE;
}

static outcome borrow(PyObject *object, const char *name, type_reader *type_of, borrowed *into) {
    PyObject *interface = PyObject_GetAttrString(object, "__array_interface__");
    if (!interface || !PyDict_Check(interface)) {
        PyErr_Format(PyExc_TypeError, "%s is of type %R; expected a NumPy array", name, (PyObject *)Py_TYPE(object));
        Py_XDECREF(interface);
        return FAILED;
    }
    const outcome result = read_interface(interface, name, type_of, into);
    Py_DECREF(interface);
    return result;
}

outcome numpy_borrow(PyObject *object, const char *name, borrowed *into) {
    return borrow(object, name, float_type, into);
}

outcome numpy_borrow_mask(PyObject *object, const char *name, borrowed *into) {
    return borrow(object, name, mask_type, into);
}

outcome numpy_borrow_labels(PyObject *object, const char *name, borrowed *into) {
    return borrow(object, name, label_type, into);
}

/* --------------------------------------------------------------------- a call -- */

/* numpy_run(loss, reduction, parameters, axis, input, target, third, weight, mask, value, gradient, log_sum_exp,
 * predicted, divisor): arrays, or None for what is not there; the outputs are arrays that the caller has made. */
PyObject *native_numpy_run(PyObject *module, PyObject *const *arguments, Py_ssize_t count) {
    (void)module;
    enum {
        INPUT,
        TARGET,
        THIRD,
        WEIGHT,
        MASK,
        VALUE,
        GRADIENT,
        LOG_SUM_EXP,
        PREDICTED,
        ARRAYS
    };
    static const struct {
        const char *name;
        type_reader *type_of;
    } known[ARRAYS] = {{"input", float_type},        {"target", number_type},     {"the third operand", number_type},
                       {"weight", float_type},       {"mask", mask_type},         {"value", float_type},
                       {"the gradient", float_type}, {"log_sum_exp", float_type}, {"predicted", label_type}};
    onepass_call call;
    borrowed tensor[ARRAYS] = {0};
    const onepass_tensor *given[ARRAYS] = {NULL};
    if (!native_has_count(count, 4 + ARRAYS + 1, "numpy_run") || !native_read_question(arguments, &call))
        return NULL;
    call.axis = (int32_t)PyLong_AsLong(arguments[3]);
    for (int i = 0; i < ARRAYS; i++) {
        PyObject *array = arguments[4 + i];
        if (array == Py_None)
            continue;
        if (borrow(array, known[i].name, known[i].type_of, &tensor[i]) != DONE)
            return NULL;
        given[i] = &tensor[i].tensor;
    }
    for (int k = INPUT; k <= THIRD; k++)
        call.operand[k] = given[k];
    call.weight = given[WEIGHT];
    call.mask = given[MASK];
    call.value = given[VALUE];
    call.gradient[0] = given[GRADIENT];
    call.log_sum_exp = given[LOG_SUM_EXP];
    call.predicted = given[PREDICTED];
    call.divisor = PyFloat_AsDouble(arguments[4 + ARRAYS]);
    if (PyErr_Occurred() || !native_run(onepass_run, &call, false))
        return NULL;
    Py_RETURN_NONE;
}
