/* PyTorch's tensors: borrowed and made through DLPack's exchange API, or through Python where there is none. */
#include "native.h"

#include <string.h>

enum {
    MOST_DEVICES = 64 /* with a number of their own to be made like */
};

/* What has been learnt of PyTorch. References are kept for good, as the module is. */
static struct {
    PyObject *tensor, *parameter; /* the two types whose objects are plain tensors */
    PyObject *dtype[ONEPASS_U8 + 1];
    PyObject *empty, *empty_like, *from_dlpack, *strided;
    PyObject *raw_stream; /* null: no CUDA in this build */
    PyObject *get_num_threads;
    PyObject *is_neg; /* the method, unbound */
    const dlpack_exchange *exchange;
    bool use_exchange;
} torch;

/* ------------------------------------------------------------------- learn -- */

static const dlpack_exchange *find_exchange(PyObject *tensor_type) {
    static const char *const names[] = {"__dlpack_c_exchange_api__", "__c_dlpack_exchange_api__"};
    const dlpack_exchange *found = NULL;
    for (int i = 0; i < 2 && !found; i++) {
        PyObject *capsule = PyObject_GetAttrString(tensor_type, names[i]);
        if (capsule && PyCapsule_IsValid(capsule, DLPACK_EXCHANGE_CAPSULE))
            found = PyCapsule_GetPointer(capsule, DLPACK_EXCHANGE_CAPSULE);
        Py_XDECREF(capsule);
        PyErr_Clear();
    }
    while (found && found->version.major != DLPACK_MAJOR)
        found = found->previous;
    return found && found->borrow ? found : NULL;
}

/* The attribute of a module's attribute, or null without an exception. */
static PyObject *find(PyObject *module, const char *first, const char *second) {
    PyObject *outer = PyObject_GetAttrString(module, first);
    PyObject *found = outer ? PyObject_GetAttrString(outer, second) : NULL;
    Py_XDECREF(outer);
    PyErr_Clear();
    return found;
}

outcome torch_learn(PyObject *module) {
    static const char *const dtypes[] = {NULL,   "float16", "bfloat16", "float32", "float64",
                                         "bool", "int64",   "int32",    "uint8"};
    if (torch.tensor)
        return DONE;
    for (int i = ONEPASS_F16; i <= ONEPASS_U8; i++)
        if (!(torch.dtype[i] = PyObject_GetAttrString(module, dtypes[i])))
            return FAILED;
    PyObject *nn = PyObject_GetAttrString(module, "nn");
    torch.parameter = nn ? PyObject_GetAttrString(nn, "Parameter") : NULL;
    Py_XDECREF(nn);
    torch.empty = PyObject_GetAttrString(module, "empty");
    torch.empty_like = PyObject_GetAttrString(module, "empty_like");
    torch.from_dlpack = PyObject_GetAttrString(module, "from_dlpack");
    torch.strided = PyObject_GetAttrString(module, "strided");
    PyObject *tensor = PyObject_GetAttrString(module, "Tensor");
    torch.get_num_threads = PyObject_GetAttrString(module, "get_num_threads");
    torch.is_neg = tensor ? PyObject_GetAttrString(tensor, "is_neg") : NULL;
    if (!torch.get_num_threads || !torch.is_neg || !torch.parameter || !torch.empty || !torch.empty_like ||
        !torch.from_dlpack || !torch.strided || !tensor)
        return FAILED;
    torch.raw_stream = find(module, "_C", "_cuda_getCurrentRawStream");
    torch.exchange = find_exchange(tensor);
    torch.use_exchange = torch.exchange != NULL;
    torch.tensor = tensor;
    return DONE;
}

bool torch_use_exchange(bool use) {
    const bool before = torch.use_exchange;
    torch.use_exchange = use && torch.exchange;
    return before;
}

/* ------------------------------------------------------------------ borrow -- */

static void point_at_own(borrowed *into) {
    into->tensor.shape = into->shape;
    into->tensor.strides = into->strides;
}

static outcome from_dlpack(const dlpack_tensor *from, borrowed *into) {
    const bool is_float = from->type.code == DLPACK_FLOAT, is_bfloat = from->type.code == DLPACK_BFLOAT;
    const bool is_int = from->type.code == DLPACK_INT;
    into->tensor.dtype = is_float && from->type.bits == 64    ? ONEPASS_F64
                         : is_float && from->type.bits == 32  ? ONEPASS_F32
                         : is_float && from->type.bits == 16  ? ONEPASS_F16
                         : is_bfloat && from->type.bits == 16 ? ONEPASS_BF16
                         : is_int && from->type.bits == 64    ? ONEPASS_I64
                         : is_int && from->type.bits == 32    ? ONEPASS_I32
                         : from->type.bits != 8               ? 0
                         : from->type.code == DLPACK_BOOL     ? ONEPASS_BOOL
                         : from->type.code == DLPACK_UINT     ? ONEPASS_U8
                                                              : 0;
    const bool on_cpu = from->device.type == DLPACK_CPU || from->device.type == DLPACK_CUDA_HOST;
    if (!into->tensor.dtype || from->type.lanes != 1 || from->ndim > ONEPASS_MAX_DIMENSIONS ||
        !(on_cpu || from->device.type == DLPACK_CUDA))
        return OTHERWISE;
    into->tensor.data = (char *)from->data + from->byte_offset;
    into->tensor.ndim = from->ndim;
    into->device = on_cpu ? ONEPASS_CPU : ONEPASS_CUDA;
    into->device_index = on_cpu ? 0 : from->device.index;
    memcpy(into->shape, from->shape, (size_t)from->ndim * sizeof *into->shape);
    if (from->strides)
        memcpy(into->strides, from->strides, (size_t)from->ndim * sizeof *into->strides);
    point_at_own(into);
    if (!from->strides)
        into->tensor.strides = NULL;
    return DONE;
}

/* PyTorch says no by an exception, which is not for the user: somebody else will deal with that tensor. */
static outcome borrow_by_exchange(PyObject *object, borrowed *into) {
    dlpack_tensor tensor;
    if (torch.exchange->borrow(object, &tensor) != 0) {
        PyErr_Clear();
        return OTHERWISE;
    }
    return from_dlpack(&tensor, into);
}

static outcome read_numbers(PyObject *sequence, int64_t *numbers, int32_t *count) {
    const Py_ssize_t size = sequence ? PySequence_Size(sequence) : -1;
    outcome result = size < 0 ? FAILED : size > ONEPASS_MAX_DIMENSIONS ? OTHERWISE : DONE;
    for (Py_ssize_t i = 0; i < size && result == DONE; i++) {
        PyObject *item = PySequence_GetItem(sequence, i);
        numbers[i] = item ? PyLong_AsLongLong(item) : -1;
        Py_XDECREF(item);
        if (PyErr_Occurred())
            result = FAILED;
    }
    *count = (int32_t)size;
    Py_XDECREF(sequence);
    return result;
}

static outcome read_type(PyObject *object, borrowed *into) {
    PyObject *dtype = PyObject_GetAttrString(object, "dtype"), *layout = PyObject_GetAttrString(object, "layout");
    const bool strided = layout == torch.strided;
    into->tensor.dtype = 0;
    for (int i = ONEPASS_F16; i <= ONEPASS_U8; i++)
        if (dtype == torch.dtype[i])
            into->tensor.dtype = i;
    Py_XDECREF(dtype);
    Py_XDECREF(layout);
    if (!dtype || !layout)
        return FAILED;
    return into->tensor.dtype && strided ? DONE : OTHERWISE;
}

static outcome read_device(PyObject *object, borrowed *into) {
    PyObject *cpu = PyObject_GetAttrString(object, "is_cpu"), *cuda = PyObject_GetAttrString(object, "is_cuda");
    PyObject *number = cuda == Py_True ? PyObject_CallMethod(object, "get_device", NULL) : NULL;
    into->device = cuda == Py_True ? ONEPASS_CUDA : ONEPASS_CPU;
    into->device_index = number ? (int32_t)PyLong_AsLong(number) : 0;
    const bool known = cpu == Py_True || cuda == Py_True;
    Py_XDECREF(cpu);
    Py_XDECREF(cuda);
    Py_XDECREF(number);
    return PyErr_Occurred() ? FAILED : known ? DONE : OTHERWISE;
}

static outcome read_address(PyObject *object, borrowed *into) {
    PyObject *address = PyObject_CallMethod(object, "data_ptr", NULL);
    into->tensor.data = address ? PyLong_AsVoidPtr(address) : NULL;
    Py_XDECREF(address);
    return PyErr_Occurred() ? FAILED : DONE;
}

/* For PyTorch before 2.10. */
static outcome borrow_by_attributes(PyObject *object, borrowed *into) {
    int32_t strides = 0;
    outcome result = read_type(object, into);
    if (result == DONE)
        result = read_device(object, into);
    if (result == DONE)
        result = read_numbers(PyObject_GetAttrString(object, "shape"), into->shape, &into->tensor.ndim);
    if (result == DONE)
        result = read_numbers(PyObject_CallMethod(object, "stride", NULL), into->strides, &strides);
    if (result == DONE)
        result = read_address(object, into);
    point_at_own(into);
    if (result == FAILED) {
        PyErr_Clear();
        return OTHERWISE;
    }
    return result;
}

static bool has_elements(const borrowed *tensor) {
    for (int32_t d = 0; d < tensor->tensor.ndim; d++)
        if (tensor->shape[d] == 0)
            return false;
    return true;
}

/* What a method of an object's says, a number; FAILED without an exception if there is no such method. */
static outcome ask_number(PyObject *object, const char *method, long long *number) {
    PyObject *answer = object ? PyObject_CallMethod(object, method, NULL) : NULL;
    *number = answer ? PyLong_AsLongLong(answer) : 0;
    Py_XDECREF(answer);
    const outcome result = PyErr_Occurred() ? FAILED : DONE;
    PyErr_Clear();
    return result;
}

/* Bytes from the beginning of its storage to the end of a tensor with elements. */
static long long needed_bytes(const borrowed *tensor, long long offset) {
    long long last = offset, gap = 1;
    for (int32_t d = tensor->tensor.ndim - 1; d >= 0; d--) {
        last += (tensor->shape[d] - 1) * (tensor->tensor.strides ? tensor->strides[d] : gap);
        gap *= tensor->shape[d];
    }
    return (last + 1) * (long long)onepass_dtype_size(tensor->tensor.dtype);
}

/* Of a tensor with elements, at an address that says that something is odd. */
static outcome check_storage(PyObject *object, const char *name, const borrowed *tensor) {
    long long offset, bytes;
    PyObject *storage = PyObject_CallMethod(object, "untyped_storage", NULL);
    PyErr_Clear();
    const bool is_known = ask_number(object, "storage_offset", &offset) == DONE && //
                          ask_number(storage, "nbytes", &bytes) == DONE;
    Py_XDECREF(storage);
    if (!is_known)
        return OTHERWISE;
    const long long needed = needed_bytes(tensor, offset);
    if (bytes >= needed)
        return tensor->tensor.data ? DONE : OTHERWISE; /* zeros that nobody has stored */
    PyErr_Format(PyExc_RuntimeError, "%s has no memory: its storage has %lld bytes, and it needs %lld", name, bytes,
                 needed);
    return FAILED;
}

/* A view into a storage that was given back lies as far from null as it lay from the storage's beginning. No allocation
 * of a 64-bit process lies below this, as a rule; one that does costs half a microsecond more. */
#define LEAST_ADDRESS ((uintptr_t)((uint64_t)1 << (sizeof(void *) > 4 ? 40 : 12)))

outcome torch_borrow_made(PyObject *object, const char *name, borrowed *into) {
    PyObject *type = (PyObject *)Py_TYPE(object);
    if (type != torch.tensor && type != torch.parameter)
        return OTHERWISE;
    const outcome result = torch.use_exchange ? borrow_by_exchange(object, into) : borrow_by_attributes(object, into);
    if (result != DONE)
        return result;
    if ((uintptr_t)into->tensor.data < LEAST_ADDRESS && has_elements(into)) {
        const outcome stored = check_storage(object, name, into);
        if (stored != DONE)
            return stored;
    }
    /* Not of numbers across the boundaries of their size. */
    return (uintptr_t)into->tensor.data % onepass_dtype_size(into->tensor.dtype) == 0 ? DONE : OTHERWISE;
}

outcome torch_borrow(PyObject *object, const char *name, borrowed *into) {
    const outcome result = torch_borrow_made(object, name, into);
    if (result != DONE)
        return result;
    if (into->tensor.dtype > ONEPASS_F64)
        return OTHERWISE;
    PyObject *answer = PyObject_CallFunctionObjArgs(torch.is_neg, object, NULL);
    Py_XDECREF(answer);
    return !answer ? FAILED : answer == Py_True ? OTHERWISE : DONE;
}

outcome torch_borrow_mask(PyObject *object, const char *name, borrowed *into) {
    const outcome result = torch_borrow_made(object, name, into);
    if (result != DONE)
        return result;
    const bool is_byte = into->tensor.dtype == ONEPASS_BOOL || into->tensor.dtype == ONEPASS_U8;
    into->tensor.dtype = ONEPASS_BOOL;
    return is_byte ? DONE : OTHERWISE;
}

outcome torch_borrow_labels(PyObject *object, const char *name, borrowed *into) {
    const outcome result = torch_borrow_made(object, name, into);
    return result == DONE && into->tensor.dtype < ONEPASS_I64 ? OTHERWISE : result;
}

/* -------------------------------------------------------------------- make -- */

static PyObject *shape_tuple(int32_t ndim, const int64_t *shape) {
    PyObject *tuple = PyTuple_New(ndim);
    for (int32_t d = 0; tuple && d < ndim; d++) {
        PyObject *extent = PyLong_FromLongLong(shape[d]);
        if (!extent || PyTuple_SetItem(tuple, d, extent) != 0)
            Py_CLEAR(tuple);
    }
    return tuple;
}

static PyObject *device_text(const borrowed *like) {
    return like->device == ONEPASS_CUDA ? PyUnicode_FromFormat("cuda:%d", like->device_index)
                                        : PyUnicode_FromString("cpu");
}

/* Gives the reference back if that is not possible. */
static bool borrow_made(PyObject *made, borrowed *into) {
    const outcome result = torch_borrow_made(made, "a new tensor", into);
    if (result == DONE)
        return true;
    if (result == OTHERWISE)
        PyErr_SetString(PyExc_RuntimeError, "PyTorch made a tensor that is not a plain one");
    Py_DECREF(made);
    return false;
}

/* Calls a function of PyTorch and borrows what comes back. Takes both references. */
static PyObject *made_by(PyObject *function, PyObject *arguments, PyObject *options, borrowed *into) {
    PyObject *made = arguments && options ? PyObject_Call(function, arguments, options) : NULL;
    Py_XDECREF(arguments);
    Py_XDECREF(options);
    return made && borrow_made(made, into) ? made : NULL;
}

static dlpack_type type_of(int32_t dtype) {
    const uint8_t code = dtype == ONEPASS_BF16 ? DLPACK_BFLOAT : dtype <= ONEPASS_F64 ? DLPACK_FLOAT : DLPACK_INT;
    return (dlpack_type){code, (uint8_t)(8 * onepass_dtype_size(dtype)), 1};
}

/* As torch.empty_like lays one out; without `like`, dense. */
static outcome find_strides(PyObject *like, const dlpack_tensor *tensor) {
    int64_t gap = 1;
    for (int32_t d = tensor->ndim - 1; d >= 0; gap *= tensor->shape[d--])
        tensor->strides[d] = gap;
    if (!like)
        return DONE;
    PyObject *arguments = Py_BuildValue("(O)", like), *options = Py_BuildValue("{s:s}", "device", "meta");
    PyObject *made = arguments && options ? PyObject_Call(torch.empty_like, arguments, options) : NULL;
    Py_XDECREF(arguments);
    Py_XDECREF(options);
    int32_t count;
    const outcome result =
        made ? read_numbers(PyObject_CallMethod(made, "stride", NULL), tensor->strides, &count) : FAILED;
    Py_XDECREF(made);
    return result;
}

/* A tensor so large that its memory is ours; OTHERWISE for any other. Without `object` it is dense. */
static outcome make_large(const borrowed *like, PyObject *object, int32_t dtype, int32_t ndim, const int64_t *shape,
                          borrowed *into, PyObject **made) {
    *made = NULL;
    memcpy(into->shape, shape, (size_t)ndim * sizeof *shape);
    dlpack_tensor wanted = {NULL, {DLPACK_CPU, 0}, ndim, type_of(dtype), into->shape, into->strides, 0};
    if (like->device != ONEPASS_CPU || !memory_is_large(&wanted))
        return OTHERWISE;
    PyObject *capsule = NULL;
    outcome result = find_strides(object, &wanted);
    if (result == DONE)
        result = memory_lend(&wanted, &capsule);
    if (result != DONE)
        return result;
    *made = PyObject_CallFunctionObjArgs(torch.from_dlpack, capsule, NULL);
    Py_DECREF(capsule);
    if (*made && !borrow_made(*made, into))
        *made = NULL;
    return *made ? DONE : FAILED;
}

/* Not by the exchange API: what that makes does not belong to PyTorch's allocator, which would not know of a use on
 * another stream. */
PyObject *torch_make(const borrowed *like, int32_t dtype, int32_t ndim, const int64_t *shape, borrowed *into) {
    PyObject *made;
    if (make_large(like, NULL, dtype, ndim, shape, into, &made) != OTHERWISE)
        return made;
    PyObject *extents = shape_tuple(ndim, shape);
    PyObject *device = device_text(like);
    PyObject *arguments = extents ? Py_BuildValue("(N)", extents) : NULL;
    PyObject *options = device ? Py_BuildValue("{s:O,s:N}", "dtype", torch.dtype[dtype], "device", device) : NULL;
    return made_by(torch.empty, arguments, options, into);
}

static PyObject *empty_like(PyObject *object, borrowed *into) {
    PyObject *made = PyObject_CallFunctionObjArgs(torch.empty_like, object, NULL);
    return made && borrow_made(made, into) ? made : NULL;
}

/* A number, like one that is kept for each type and device: half of the time that torch.empty takes. */
PyObject *torch_make_scalar(const borrowed *like, int32_t dtype, borrowed *into) {
    static PyObject *kept[MOST_DEVICES][ONEPASS_F64 + 1];
    const int32_t place = like->device == ONEPASS_CUDA ? 1 + like->device_index : 0;
    if (place >= MOST_DEVICES)
        return torch_make(like, dtype, 0, NULL, into);
    if (!kept[place][dtype] && !(kept[place][dtype] = torch_make(like, dtype, 0, NULL, into)))
        return NULL;
    return empty_like(kept[place][dtype], into);
}

PyObject *torch_make_like(const borrowed *like, PyObject *object, int32_t dtype, borrowed *into) {
    PyObject *made;
    if (make_large(like, object, dtype, like->tensor.ndim, like->shape, into, &made) != OTHERWISE)
        return made;
    if (dtype == like->tensor.dtype)
        return empty_like(object, into);
    return made_by(torch.empty_like, Py_BuildValue("(O)", object), Py_BuildValue("{s:O}", "dtype", torch.dtype[dtype]),
                   into);
}

outcome torch_stream(const borrowed *tensor, void **stream) {
    *stream = NULL;
    if (tensor->device == ONEPASS_CPU)
        return DONE;
    if (torch.use_exchange)
        return torch.exchange->current_stream(DLPACK_CUDA, tensor->device_index, stream) == 0 ? DONE : FAILED;
    PyObject *handle =
        torch.raw_stream ? PyObject_CallFunction(torch.raw_stream, "i", (int)tensor->device_index) : NULL;
    *stream = handle ? PyLong_AsVoidPtr(handle) : NULL;
    Py_XDECREF(handle);
    if (!torch.raw_stream)
        PyErr_SetString(PyExc_RuntimeError, "this PyTorch has no CUDA");
    return PyErr_Occurred() ? FAILED : DONE;
}

int32_t torch_threads(void) {
    PyObject *number = PyObject_CallNoArgs(torch.get_num_threads);
    const long threads = number ? PyLong_AsLong(number) : 0;
    Py_XDECREF(number);
    PyErr_Clear();
    return threads > 0 && threads <= INT32_MAX ? (int32_t)threads : 0;
}
