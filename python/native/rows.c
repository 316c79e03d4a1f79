/* Losses over rows and of vectors: from Python's arguments to onepass_call and back. A vector is to all this a row
 * whose elements are what classes are, and comes last. */
#include "native.h"

#include <string.h>

/* The tensors that go in, which come after the question and the axis: operands first. */
enum {
    INPUT,
    TARGET,
    THIRD, /* a vector, a number for each row, or the weights of the classes */
    WEIGHT,
    MASK,
    DIVISOR, /* or a number of Python's */
    GIVEN,
    IN_SINGLE = -1 /* for a value's type: at least f32, as autocast wants it */
};

/* What may come beside a value, as python/onepass/_row_request.py has it: bits of what is asked for, places in what
 * comes back. The first are the operands' gradients. */
enum {
    OPERANDS = WEIGHT,
    ROW_STATE = OPERANDS,
    LOG_SUM_EXP,
    PREDICTED,
    DIVIDED_BY,
    EXTRAS
};

typedef struct rows {
    PyObject *object[GIVEN];
    borrowed at[GIVEN];
    bool has[GIVEN];
    int32_t target; /* onepass_target */
    int wide;       /* operands, from the first on, that have a number for each class or element, and a gradient */
    int64_t extent[ONEPASS_MAX_DIMENSIONS]; /* of the rows */
    int32_t ndim;
    int64_t count, width; /* rows, and classes of a row or elements of a vector */
} rows;

/* ------------------------------------------------------------------- the inputs -- */

static bool is_of_vectors(const rows *all) {
    return all->target >= ONEPASS_VECTOR;
}

static int count_wide(const onepass_loss_info *info) {
    switch (info ? info->over_rows : ONEPASS_CLASS_PROBABILITIES) {
    case ONEPASS_CLASS_PROBABILITIES:
        return 2;
    case ONEPASS_VECTOR:
        return info->operand_count;
    case ONEPASS_NUMBER_A_VECTOR:
        return info->operand_count - 1;
    default:
        return 1;
    }
}

/* Floats or whole numbers. */
static outcome borrow_numbers(PyObject *object, const char *name, borrowed *into) {
    const outcome result = torch_borrow_labels(object, name, into);
    return result == OTHERWISE ? torch_borrow(object, name, into) : result;
}

static torch_borrower *borrower_of(const rows *all, int i) {
    if (i == MASK)
        return torch_borrow_mask;
    if (i != all->wide || i >= OPERANDS || all->target == ONEPASS_CLASS_PROBABILITIES)
        return torch_borrow;
    return all->target == ONEPASS_CLASS_INDEX ? torch_borrow_labels : borrow_numbers;
}

/* What messages call it. */
static const char *name_of(const onepass_loss_info *info, int i) {
    static const char *const names[GIVEN] = {"input", "target", "weight", "row_weight", "mask", "divisor"};
    if (!info || info->over_rows < ONEPASS_VECTOR || i > WEIGHT)
        return names[i];
    return i == WEIGHT ? "weight" : i < info->operand_count ? info->operand[i] : "an operand";
}

static bool has_shape(const borrowed *one, int32_t ndim, const int64_t *extent) {
    return one->tensor.ndim == ndim && memcmp(one->shape, extent, (size_t)ndim * sizeof *extent) == 0;
}

/* Whether an operand has numbers as the input has, one for each row, or one for each class. */
static bool has_own_shape(const rows *all, int k) {
    const onepass_tensor *input = &all->at[INPUT].tensor;
    if (k < all->wide || (k == TARGET && all->target == ONEPASS_CLASSES_A_VECTOR))
        return has_shape(&all->at[k], input->ndim, input->shape);
    if (k > all->wide || all->target == ONEPASS_CLASS_PROBABILITIES)
        return has_shape(&all->at[k], 1, &all->width);
    return has_shape(&all->at[k], all->ndim, all->extent);
}

/* The rows' shape; OTHERWISE if there is no such axis, or nothing in a row, or an operand of another shape. */
static outcome find_rows(int32_t axis, rows *all) {
    const onepass_tensor *input = &all->at[INPUT].tensor;
    const int32_t usual = is_of_vectors(all) ? input->ndim - 1 : input->ndim > 1;
    const int32_t place = axis > 0 ? axis - 1 : axis < 0 ? input->ndim + axis : usual;
    if (place < 0 || place >= input->ndim)
        return OTHERWISE;
    all->ndim = 0;
    all->count = all->width = 1;
    for (int32_t d = 0; d < input->ndim; d++) {
        if (d == place || (d > place && is_of_vectors(all))) {
            all->width *= input->shape[d];
            continue;
        }
        all->extent[all->ndim++] = input->shape[d];
        all->count *= input->shape[d];
    }
    for (int k = TARGET; k < OPERANDS; k++)
        if (all->has[k] && !has_own_shape(all, k))
            return OTHERWISE;
    return all->width > 0 ? DONE : OTHERWISE;
}

/* `arguments` begin with the axis. OTHERWISE if one is not for us. */
static outcome borrow_rows(PyObject *const *arguments, rows *all, onepass_call *call) {
    const onepass_loss_info *info = onepass_loss_named(call->loss);
    all->target = info ? info->over_rows : ONEPASS_CLASS_PROBABILITIES;
    all->wide = count_wide(info);
    call->axis = (int32_t)PyLong_AsLong(arguments[0]);
    for (int i = 0; i < GIVEN; i++) {
        PyObject *object = arguments[1 + i];
        const bool is_number = i == DIVISOR && PyFloat_Check(object);
        all->object[i] = object;
        all->has[i] = object != Py_None && !is_number;
        if (is_number)
            call->divisor = PyFloat_AsDouble(object);
        if (!all->has[i])
            continue;
        const outcome result = borrower_of(all, i)(object, name_of(info, i), &all->at[i]);
        if (result != DONE)
            return result;
        if (native_are_apart(&all->at[i], &all->at[INPUT])) /* which is PyTorch's to judge */
            return OTHERWISE;
    }
    return PyErr_Occurred() ? FAILED : find_rows(call->axis, all);
}

static outcome place_inputs(const rows *all, onepass_call *call) {
    for (int k = 0; k < OPERANDS; k++)
        call->operand[k] = all->has[k] ? &all->at[k].tensor : NULL;
    call->weight = all->has[WEIGHT] ? &all->at[WEIGHT].tensor : NULL;
    call->mask = all->has[MASK] ? &all->at[MASK].tensor : NULL;
    call->divisor_tensor = all->has[DIVISOR] ? &all->at[DIVISOR].tensor : NULL;
    return native_place_device(&all->at[INPUT], call);
}

/* Elements that take a microsecond or two. */
static bool has_few(const rows *all) {
    return all->count <= 4096 && all->width <= 4096 && all->count * all->width <= 4096;
}

/* ------------------------------------------------------------------ the outputs -- */

/* Of the value: asked for, or the common one of the operands that have a say, and the rows' weights. */
static int32_t value_type(const rows *all, long asked) {
    const int deciding = all->target == ONEPASS_CLASS_PROBABILITIES ? OPERANDS : all->wide;
    if (asked > 0)
        return (int32_t)asked;
    int32_t dtype = all->at[INPUT].tensor.dtype;
    for (int k = TARGET; k < deciding; k++)
        if (all->has[k])
            dtype = onepass_promote(dtype, all->at[k].tensor.dtype);
    if (all->has[WEIGHT] && all->at[WEIGHT].tensor.ndim > 0)
        dtype = onepass_promote(dtype, all->at[WEIGHT].tensor.dtype);
    return asked == IN_SINGLE && dtype < ONEPASS_F32 ? ONEPASS_F32 : dtype;
}

/* The compute type. */
static int32_t wide_type(const rows *all) {
    for (int i = 0; i <= WEIGHT; i++)
        if (all->has[i] && all->at[i].tensor.dtype == ONEPASS_F64)
            return ONEPASS_F64;
    return ONEPASS_F32;
}

static PyObject *make_extra(const rows *all, int extra, borrowed *into) {
    const int64_t states[] = {all->count, ONEPASS_ROW_STATE};
    const borrowed *like = &all->at[INPUT];
    if (extra < OPERANDS)
        return torch_make_like(&all->at[extra], all->object[extra], all->at[extra].tensor.dtype, into);
    if (extra == ROW_STATE)
        return torch_make(like, ONEPASS_F64, 2, states, into);
    if (extra == DIVIDED_BY)
        return torch_make_scalar(like, ONEPASS_F64, into);
    return torch_make(like, extra == PREDICTED ? ONEPASS_I64 : wide_type(all), all->ndim, all->extent, into);
}

static void place_extra(int extra, const onepass_tensor *tensor, onepass_call *call) {
    if (extra < OPERANDS)
        call->gradient[extra] = tensor;
    else
        *(extra == ROW_STATE     ? &call->row_state
          : extra == LOG_SUM_EXP ? &call->log_sum_exp
          : extra == PREDICTED   ? &call->predicted
                                 : &call->divided_by) = tensor;
}

/* The gradients of a tuple: to be made (True), not asked for (None), the operand itself, which they lie over, or there:
 * then the call has ONEPASS_SKIP_IF_UPSTREAM_IS_ONE. False with an exception. */
static bool find_gradients(const rows *all, PyObject *tuple, borrowed *gradient, PyObject **made, onepass_call *call) {
    for (int k = 0; k < all->wide; k++) {
        PyObject *argument = PyTuple_GetItem(tuple, k);
        if (argument == Py_None)
            continue;
        if (argument == Py_True) {
            made[k] = make_extra(all, k, &gradient[k]);
        } else if (argument) {
            made[k] = Py_NewRef(argument);
            if (torch_borrow_made(argument, "the gradient", &gradient[k]) == OTHERWISE)
                PyErr_SetString(PyExc_RuntimeError, "a gradient that was kept is no plain tensor any more");
            if (argument != all->object[k])
                call->flags |= ONEPASS_SKIP_IF_UPSTREAM_IS_ONE;
        }
        if (!made[k] || PyErr_Occurred())
            return false;
        call->gradient[k] = &gradient[k].tensor;
    }
    return true;
}

/* --------------------------------------------------------------- the functions -- */

/* There may be one more argument: the upstream gradient that is expected, if that is not 1. */
static bool read_question(PyObject *const *arguments, Py_ssize_t count, Py_ssize_t usual, const char *name,
                          onepass_call *call) {
    const bool expects = count == usual + 1;
    if (!native_has_count(expects ? usual : count, usual, name) || !native_read_question(arguments, call))
        return false;
    if (expects)
        call->expected_upstream = PyFloat_AsDouble(arguments[usual]);
    return !PyErr_Occurred();
}

/* torch_rows(loss, reduction, parameters, axis, input, target, third, weight, mask, divisor, dtype, outputs,
 * expected_upstream): the value, or with further outputs asked for a tuple of it and all of them, None for those that
 * are not. The divisor is a float, a tensor or None. dtype is the library's number of the value's type, 0 for PyTorch's
 * choice, or IN_SINGLE. None: not for us, or vectors of several shapes. */
PyObject *native_torch_rows(PyObject *module, PyObject *const *arguments, Py_ssize_t count) {
    (void)module;
    onepass_call call;
    rows all;
    borrowed value, extra[EXTRAS];
    PyObject *made[1 + EXTRAS] = {NULL};
    if (!read_question(arguments, count, 4 + GIVEN + 2, "torch_rows", &call))
        return NULL;
    const long dtype = PyLong_AsLong(arguments[4 + GIVEN]), outputs = PyLong_AsLong(arguments[5 + GIVEN]);
    const outcome result = borrow_rows(arguments + 3, &all, &call);
    if (result == OTHERWISE)
        Py_RETURN_NONE;
    if (result == FAILED || PyErr_Occurred() || place_inputs(&all, &call) != DONE)
        return NULL;
    const int32_t type = value_type(&all, dtype);
    made[0] = call.reduction == ONEPASS_NONE ? torch_make(&all.at[INPUT], type, all.ndim, all.extent, &value)
                                             : torch_make_scalar(&all.at[INPUT], type, &value);
    if (!made[0])
        return NULL;
    call.value = &value.tensor;
    for (int i = 0; i < EXTRAS; i++) {
        if (!(outputs >> i & 1))
            continue;
        if (!(made[1 + i] = make_extra(&all, i, &extra[i])))
            return native_drop(made, 1 + EXTRAS);
        place_extra(i, &extra[i].tensor, &call);
    }
    return native_answer(&call, has_few(&all), made, outputs ? 1 + EXTRAS : 1);
}

/* torch_rows_gradient(loss, reduction, parameters, axis, input, target, third, weight, mask, divisor, upstream,
 * row_state, gradients, expected_upstream): a tuple of the operands' three gradients. In the tuple that is given each
 * is to be made (True), not asked for (None), written over its operand (the operand itself), or there: then it was
 * computed for the upstream gradient that was expected, and is computed anew unless that is what it is. The row state
 * may be None. None: not for us. */
PyObject *native_torch_rows_gradient(PyObject *module, PyObject *const *arguments, Py_ssize_t count) {
    (void)module;
    onepass_call call;
    rows all;
    borrowed upstream, state, gradient[OPERANDS];
    PyObject *made[OPERANDS] = {NULL};
    if (!read_question(arguments, count, 4 + GIVEN + 3, "torch_rows_gradient", &call))
        return NULL;
    PyObject *row_state = arguments[5 + GIVEN];
    outcome result = borrow_rows(arguments + 3, &all, &call);
    if (result == DONE)
        result = torch_borrow(arguments[4 + GIVEN], "the upstream gradient", &upstream);
    if (result == DONE && row_state != Py_None)
        result = torch_borrow(row_state, "the rows' state", &state);
    if (result == OTHERWISE)
        Py_RETURN_NONE;
    if (result == FAILED || place_inputs(&all, &call) != DONE)
        return NULL;
    call.upstream = &upstream.tensor;
    call.row_state = row_state == Py_None ? NULL : &state.tensor;
    if (!find_gradients(&all, arguments[6 + GIVEN], gradient, made, &call))
        return native_drop(made, OPERANDS);
    return native_answer(&call, has_few(&all), made, OPERANDS);
}

/* torch_is_one(upstream): whether an upstream gradient is 1, as far as that can be seen without waiting. */
PyObject *native_torch_is_one(PyObject *module, PyObject *object) {
    (void)module;
    borrowed upstream;
    const outcome result = torch_borrow(object, "the upstream gradient", &upstream);
    return result == FAILED ? NULL : PyBool_FromLong(result == DONE && native_is_one_here(&upstream));
}
