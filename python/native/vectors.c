/* Vector losses: from Python's arguments to onepass_call and back. */
#include "native.h"

#include <string.h>

enum {
    MOST_OPERANDS = 3,
    WEIGHT = MOST_OPERANDS, /* of the rows, as the mask is */
    MASK,
    DIVISOR,
    GIVEN,         /* so many inputs may be given, after the question and the axis */
    IN_SINGLE = -1 /* for a result's type: at least f32, as autocast wants it */
};

/* The inputs of a call, as PyTorch sees them together. */
typedef struct inputs {
    PyObject *object[GIVEN];
    borrowed at[GIVEN];
    bool has[GIVEN];
    int vectors;      /* operands that are vectors: one, two or three; with one alone class weights may come third */
    int32_t row_ndim; /* of the rows' shape, with which that of a vector begins */
    int64_t row_count, row_length;
} inputs;

/* How many operands are vectors; one behind them, if there is one, is a number for each row. */
static int count_vectors(const onepass_call *call) {
    const onepass_loss_info *info = onepass_loss_named(call->loss);
    if (!info)
        return 2;
    return info->over_rows == ONEPASS_CLASS_A_VECTOR ? 1 : info->operand_count - (info->over_rows != ONEPASS_VECTOR);
}

/* A tensor of floats or of whole numbers. */
static outcome borrow_numbers(PyObject *object, borrowed *into) {
    const outcome result = torch_borrow_labels(object, into);
    return result == OTHERWISE ? torch_borrow(object, into) : result;
}

/* The same of an array. */
static outcome borrow_array(PyObject *object, const char *name, borrowed *into) {
    const outcome result = numpy_borrow(object, name, into);
    if (result != FAILED || !PyErr_ExceptionMatches(PyExc_TypeError))
        return result;
    PyErr_Clear();
    return numpy_borrow_labels(object, name, into);
}

/* ----------------------------------------------------------------- PyTorch -- */

static outcome borrow_input(int i, PyObject *object, inputs *all, onepass_call *call) {
    all->object[i] = object;
    all->has[i] = object != Py_None;
    if (!all->has[i])
        return DONE;
    if (i == DIVISOR && PyFloat_Check(object)) {
        all->has[i] = false;
        call->divisor = PyFloat_AsDouble(object);
        return DONE;
    }
    if (i == MASK)
        return torch_borrow_mask(object, &all->at[i]);
    const bool is_number = i == all->vectors && all->vectors < MOST_OPERANDS;
    return is_number ? borrow_numbers(object, &all->at[i]) : torch_borrow(object, &all->at[i]);
}

static bool has_shape(const borrowed *one, int32_t ndim, const int64_t *extent) {
    return one->tensor.ndim == ndim && memcmp(one->shape, extent, (size_t)ndim * sizeof *extent) == 0;
}

/* Whether an operand is a vector for each row like the first, a number for each, or a number for each element. */
static bool has_own_shape(const inputs *all, int k) {
    const onepass_tensor *first = &all->at[0].tensor;
    if (k > all->vectors)
        return has_shape(&all->at[k], 1, &all->row_length);
    return has_shape(&all->at[k], k < all->vectors ? first->ndim : all->row_ndim, first->shape);
}

/* OTHERWISE if operands do not have the shapes that belong together, or no elements, or there is no such axis. */
static outcome find_rows(int32_t axis, inputs *all) {
    const onepass_tensor *first = &all->at[0].tensor;
    all->row_ndim = axis > 0 ? axis - 1 : first->ndim + (axis ? axis : -1);
    if (all->row_ndim < 0 || all->row_ndim >= first->ndim)
        return OTHERWISE;
    all->row_count = all->row_length = 1;
    for (int32_t d = 0; d < first->ndim; d++)
        *(d < all->row_ndim ? &all->row_count : &all->row_length) *= first->shape[d];
    for (int k = 1; k < MOST_OPERANDS; k++)
        if (all->has[k] && !has_own_shape(all, k))
            return OTHERWISE;
    return all->row_length > 0 ? DONE : OTHERWISE;
}

/* `arguments` begin with the axis. */
static outcome borrow_inputs(PyObject *const *arguments, inputs *all, onepass_call *call) {
    outcome result = DONE;
    all->vectors = count_vectors(call);
    call->axis = (int32_t)PyLong_AsLong(arguments[0]);
    for (int i = 0; i < GIVEN && result == DONE; i++) {
        result = borrow_input(i, arguments[1 + i], all, call);
        const bool is_elsewhere = all->has[i] && (all->at[i].device != all->at[0].device ||
                                                  all->at[i].device_index != all->at[0].device_index);
        if (result == DONE && is_elsewhere) /* which is PyTorch's to judge */
            result = OTHERWISE;
    }
    if (PyErr_Occurred())
        return FAILED;
    return result == DONE ? find_rows(call->axis, all) : result;
}

static outcome place(const inputs *all, onepass_call *call) {
    for (int k = 0; k < MOST_OPERANDS; k++)
        call->operand[k] = all->has[k] ? &all->at[k].tensor : NULL;
    call->weight = all->has[WEIGHT] ? &all->at[WEIGHT].tensor : NULL;
    call->mask = all->has[MASK] ? &all->at[MASK].tensor : NULL;
    call->divisor_tensor = all->has[DIVISOR] ? &all->at[DIVISOR].tensor : NULL;
    return native_place_device(&all->at[0], call);
}

/* Elements that take a microsecond or two. */
static bool has_few(const inputs *all) {
    return all->row_count <= 4096 && all->row_length <= 4096 && all->row_count * all->row_length <= 4096;
}

/* Of a value: asked for, or the common one of vectors and weight. */
static int32_t type_of(const inputs *all, long asked) {
    if (asked > 0)
        return (int32_t)asked;
    int32_t dtype = all->at[0].tensor.dtype;
    for (int k = 1; k < all->vectors; k++)
        dtype = onepass_promote(dtype, all->at[k].tensor.dtype);
    if (all->has[WEIGHT] && all->at[WEIGHT].tensor.ndim > 0)
        dtype = onepass_promote(dtype, all->at[WEIGHT].tensor.dtype);
    return asked == IN_SINGLE && dtype < ONEPASS_F32 ? ONEPASS_F32 : dtype;
}

static PyObject *make_gradient(const inputs *all, int k, borrowed *into) {
    return torch_make_like(&all->at[k], all->object[k], all->at[k].tensor.dtype, into);
}

/* torch_vectors(loss, reduction, parameters, axis, first, second, third, weight, mask, divisor, dtype, gradients): the
 * value, or with gradients asked for (1: for the first, 2: for the second, 4: for the third) a tuple of it and three,
 * None for those that are not. The divisor is a float, a tensor or None. dtype is the library's number of the value's
 * type, 0 for PyTorch's choice, or IN_SINGLE. None: not for us, or vectors of several shapes. */
PyObject *native_torch_vectors(PyObject *module, PyObject *const *arguments, Py_ssize_t count) {
    (void)module;
    onepass_call call;
    inputs all;
    borrowed value, gradient[MOST_OPERANDS];
    PyObject *made[1 + MOST_OPERANDS] = {NULL};
    if (!native_has_count(count, 4 + GIVEN + 2, "torch_vectors") || !native_read_question(arguments, &call))
        return NULL;
    const long dtype = PyLong_AsLong(arguments[4 + GIVEN]), outputs = PyLong_AsLong(arguments[5 + GIVEN]);
    const outcome result = borrow_inputs(arguments + 3, &all, &call);
    if (result == OTHERWISE)
        Py_RETURN_NONE;
    if (result == FAILED || PyErr_Occurred() || place(&all, &call) != DONE)
        return NULL;
    const int32_t type = type_of(&all, dtype);
    made[0] = call.reduction == ONEPASS_NONE ? torch_make(&all.at[0], type, all.row_ndim, all.at[0].shape, &value)
                                             : torch_make_scalar(&all.at[0], type, &value);
    if (!made[0])
        return NULL;
    call.value = &value.tensor;
    for (int k = 0; k < all.vectors; k++) {
        if (!(outputs >> k & 1))
            continue;
        if (!(made[1 + k] = make_gradient(&all, k, &gradient[k])))
            return native_drop(made, 1 + MOST_OPERANDS);
        call.gradient[k] = &gradient[k].tensor;
    }
    return native_answer(&call, has_few(&all), made, outputs ? 1 + MOST_OPERANDS : 1);
}

/* A gradient that is there, or is to be made (True). */
static bool find_gradient(const inputs *all, int k, PyObject *argument, borrowed *into, PyObject **made) {
    if (argument == Py_True)
        return (*made = make_gradient(all, k, into));
    *made = Py_NewRef(argument);
    const outcome result = torch_borrow_made(argument, into);
    if (result == OTHERWISE)
        PyErr_SetString(PyExc_RuntimeError, "a gradient that was kept is no plain tensor any more");
    return result == DONE;
}

/* torch_vectors_gradient(loss, reduction, parameters, axis, first, second, third, weight, mask, divisor, upstream,
 * gradients): a tuple of three gradients. In the tuple that is given each is to be made (True), not asked for (None),
 * or there: then it was computed for an upstream gradient of 1, and is computed anew unless that is what it is. None:
 * not for us. */
PyObject *native_torch_vectors_gradient(PyObject *module, PyObject *const *arguments, Py_ssize_t count) {
    (void)module;
    onepass_call call;
    inputs all;
    borrowed upstream, gradient[MOST_OPERANDS];
    PyObject *made[MOST_OPERANDS] = {NULL};
    if (!native_has_count(count, 4 + GIVEN + 2, "torch_vectors_gradient") || !native_read_question(arguments, &call))
        return NULL;
    outcome result = borrow_inputs(arguments + 3, &all, &call);
    if (result == DONE)
        result = torch_borrow(arguments[4 + GIVEN], &upstream);
    if (result == OTHERWISE)
        Py_RETURN_NONE;
    if (result == FAILED || place(&all, &call) != DONE)
        return NULL;
    call.upstream = &upstream.tensor;
    for (int k = 0; k < all.vectors; k++) {
        PyObject *argument = PyTuple_GetItem(arguments[5 + GIVEN], k);
        if (argument == Py_None)
            continue;
        if (!argument || !find_gradient(&all, k, argument, &gradient[k], &made[k]))
            return native_drop(made, MOST_OPERANDS);
        call.gradient[k] = &gradient[k].tensor;
        if (argument != Py_True)
            call.flags |= ONEPASS_SKIP_IF_UPSTREAM_IS_ONE;
    }
    const bool is_done = call.flags & ONEPASS_SKIP_IF_UPSTREAM_IS_ONE && native_is_one_here(&upstream);
    return is_done ? native_tuple_of(made, MOST_OPERANDS) : native_answer(&call, has_few(&all), made, MOST_OPERANDS);
}

/* ------------------------------------------------------------------- NumPy -- */

/* numpy_vectors(loss, reduction, parameters, axis, first, second, third, weight, mask, value, gradient, divisor):
 * arrays, or None for what is not there; the outputs are arrays that the caller has made. */
PyObject *native_numpy_vectors(PyObject *module, PyObject *const *arguments, Py_ssize_t count) {
    (void)module;
    enum {
        VALUE = MASK + 1,
        GRADIENT,
        ARRAYS
    };
    array_argument arrays[ARRAYS] = {{"the first operand", numpy_borrow}, {"the second operand", numpy_borrow},
                                     {"the third operand", numpy_borrow}, {"weight", numpy_borrow},
                                     {"mask", numpy_borrow_mask},         {"value", numpy_borrow},
                                     {"the gradient", numpy_borrow}};
    onepass_call call;
    borrowed tensor[ARRAYS] = {0};
    const onepass_tensor *given[ARRAYS];
    if (!native_has_count(count, 4 + ARRAYS + 1, "numpy_vectors") || !native_read_question(arguments, &call))
        return NULL;
    call.axis = (int32_t)PyLong_AsLong(arguments[3]);
    if (count_vectors(&call) < MOST_OPERANDS)
        arrays[count_vectors(&call)].borrow = borrow_array;
    if (!native_borrow_arrays(arguments + 4, ARRAYS, arrays, tensor, given))
        return NULL;
    for (int k = 0; k < MOST_OPERANDS; k++)
        call.operand[k] = given[k];
    call.weight = given[WEIGHT];
    call.mask = given[MASK];
    call.value = given[VALUE];
    call.gradient[0] = given[GRADIENT];
    call.divisor = PyFloat_AsDouble(arguments[4 + ARRAYS]);
    if (PyErr_Occurred() || !native_run(onepass_run, &call, false))
        return NULL;
    Py_RETURN_NONE;
}
