/* Losses over rows: from Python's arguments to onepass_call and back. */
#include "native.h"

#include <string.h>

enum {
    INPUT,
    TARGET,
    CLASS_WEIGHT,
    WEIGHT, /* of the rows, as the mask is */
    MASK,
    DIVISOR,
    GIVEN /* so many inputs may be given, after the question and the axis */
};

/* What may come beside a value, as python/onepass/_rows.py has it: bits of what is asked for, places in what comes
 * back.
 */
enum {
    GRADIENT_INPUT,
    GRADIENT_TARGET,
    ROW_STATE,
    LOG_SUM_EXP,
    PREDICTED,
    DIVIDED_BY,
    EXTRAS,
    IN_SINGLE = -1 /* for a result's type: at least f32, as autocast wants it */
};

/* The inputs of a call, as PyTorch sees them together. */
typedef struct inputs {
    PyObject *object[GIVEN];
    borrowed at[GIVEN];
    bool has[GIVEN];
    bool has_labels;
    int64_t extent[ONEPASS_MAX_DIMENSIONS]; /* of the rows */
    int32_t ndim;
    int64_t rows, classes;
} inputs;

static bool has_labels(const onepass_call *call) {
    const onepass_loss_info *info = onepass_loss_named(call->loss);
    return info && info->over_rows == ONEPASS_CLASS_INDEX;
}

/* ----------------------------------------------------------------- PyTorch -- */

/* A divisor is a number of Python's or a tensor. */
static outcome borrow_divisor(PyObject *object, inputs *all, onepass_call *call) {
    if (!PyFloat_Check(object)) {
        all->has[DIVISOR] = true;
        return torch_borrow(object, &all->at[DIVISOR]);
    }
    call->divisor = PyFloat_AsDouble(object);
    return DONE;
}

static outcome borrow_input(int i, PyObject *object, inputs *all, onepass_call *call) {
    all->object[i] = object;
    all->has[i] = false;
    if (object == Py_None)
        return DONE;
    if (i == DIVISOR)
        return borrow_divisor(object, all, call);
    all->has[i] = true;
    if (i == TARGET && all->has_labels)
        return torch_borrow_labels(object, &all->at[i]);
    return i == MASK ? torch_borrow_mask(object, &all->at[i]) : torch_borrow(object, &all->at[i]);
}

/* Whether labels have the rows' shape, and probabilities that of the input. */
static bool has_target_shape(const inputs *all) {
    const onepass_tensor *input = &all->at[INPUT].tensor, *target = &all->at[TARGET].tensor;
    const int64_t *extent = all->has_labels ? all->extent : input->shape;
    const int32_t ndim = all->has_labels ? all->ndim : input->ndim;
    return target->ndim == ndim && memcmp(target->shape, extent, (size_t)ndim * sizeof *extent) == 0;
}

/* The rows' shape; OTHERWISE if there is no such axis, or no class, or a target of another shape. */
static outcome find_rows(int32_t axis, inputs *all) {
    const onepass_tensor *input = &all->at[INPUT].tensor;
    const int32_t place = axis > 0 ? axis - 1 : axis < 0 ? input->ndim + axis : input->ndim > 1;
    if (place < 0 || place >= input->ndim)
        return OTHERWISE;
    all->ndim = 0;
    all->rows = 1;
    all->classes = input->shape[place];
    for (int32_t d = 0; d < input->ndim; d++) {
        if (d == place)
            continue;
        all->extent[all->ndim++] = input->shape[d];
        all->rows *= input->shape[d];
    }
    return all->classes > 0 && has_target_shape(all) ? DONE : OTHERWISE;
}

/* `arguments` begin with the axis. */
static outcome borrow_inputs(PyObject *const *arguments, inputs *all, onepass_call *call) {
    outcome result = DONE;
    all->has_labels = has_labels(call);
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
    for (int k = 0; k <= CLASS_WEIGHT; k++)
        call->operand[k] = all->has[k] ? &all->at[k].tensor : NULL;
    call->weight = all->has[WEIGHT] ? &all->at[WEIGHT].tensor : NULL;
    call->mask = all->has[MASK] ? &all->at[MASK].tensor : NULL;
    call->divisor_tensor = all->has[DIVISOR] ? &all->at[DIVISOR].tensor : NULL;
    return native_place_device(&all->at[0], call);
}

/* Elements that take a microsecond or two. */
static bool has_few(const inputs *all) {
    return all->rows <= 4096 && all->classes <= 4096 && all->rows * all->classes <= 4096;
}

/* Of a value: asked for, or the common one of what PyTorch promotes. */
static int32_t type_of(const inputs *all, long asked) {
    if (asked > 0)
        return (int32_t)asked;
    int32_t dtype = all->at[INPUT].tensor.dtype;
    for (int i = TARGET; i <= CLASS_WEIGHT && !all->has_labels; i++)
        if (all->has[i])
            dtype = onepass_promote(dtype, all->at[i].tensor.dtype);
    if (all->has[WEIGHT] && all->at[WEIGHT].tensor.ndim > 0)
        dtype = onepass_promote(dtype, all->at[WEIGHT].tensor.dtype);
    return asked == IN_SINGLE && dtype < ONEPASS_F32 ? ONEPASS_F32 : dtype;
}

/* The compute type. */
static int32_t wide_type(const inputs *all) {
    for (int i = 0; i <= WEIGHT; i++)
        if (all->has[i] && all->at[i].tensor.dtype == ONEPASS_F64)
            return ONEPASS_F64;
    return ONEPASS_F32;
}

static PyObject *make_extra(const inputs *all, int extra, borrowed *into) {
    const int64_t states[] = {all->rows, ONEPASS_ROW_STATE};
    const borrowed *like = &all->at[INPUT];
    if (extra <= GRADIENT_TARGET)
        return torch_make_like(&all->at[extra], all->object[extra], all->at[extra].tensor.dtype, into);
    if (extra == ROW_STATE)
        return torch_make(like, ONEPASS_F64, 2, states, into);
    if (extra == DIVIDED_BY)
        return torch_make_scalar(like, ONEPASS_F64, into);
    return torch_make(like, extra == PREDICTED ? ONEPASS_I64 : wide_type(all), all->ndim, all->extent, into);
}

static void place_extra(int extra, const onepass_tensor *tensor, onepass_call *call) {
    if (extra <= GRADIENT_TARGET)
        call->gradient[extra] = tensor;
    else
        *(extra == ROW_STATE     ? &call->row_state
          : extra == LOG_SUM_EXP ? &call->log_sum_exp
          : extra == PREDICTED   ? &call->predicted
                                 : &call->divided_by) = tensor;
}

static PyObject *drop(PyObject **made) {
    return native_drop(made, 1 + EXTRAS);
}

/* torch_rows(loss, reduction, parameters, axis, input, target, class_weight, weight, mask, divisor, dtype, outputs):
 * the value, or with further outputs asked for a tuple of it and all of them, None for those that are not. The divisor
 * is a float, a tensor or None. dtype is the library's number of the value's type, 0 for PyTorch's choice, or
 * IN_SINGLE. None: not for us. */
PyObject *native_torch_rows(PyObject *module, PyObject *const *arguments, Py_ssize_t count) {
    (void)module;
    onepass_call call;
    inputs all;
    borrowed value, extra[EXTRAS];
    PyObject *made[1 + EXTRAS] = {NULL};
    if (!native_has_count(count, 4 + GIVEN + 2, "torch_rows") || !native_read_question(arguments, &call))
        return NULL;
    const long dtype = PyLong_AsLong(arguments[4 + GIVEN]), outputs = PyLong_AsLong(arguments[5 + GIVEN]);
    const outcome result = borrow_inputs(arguments + 3, &all, &call);
    if (result == OTHERWISE)
        Py_RETURN_NONE;
    if (result == FAILED || PyErr_Occurred() || place(&all, &call) != DONE)
        return NULL;
    const int32_t type = type_of(&all, dtype);
    made[0] = call.reduction == ONEPASS_NONE ? torch_make(&all.at[INPUT], type, all.ndim, all.extent, &value)
                                             : torch_make_scalar(&all.at[INPUT], type, &value);
    if (!made[0])
        return NULL;
    call.value = &value.tensor;
    for (int i = 0; i < EXTRAS; i++) {
        if (!(outputs >> i & 1))
            continue;
        if (!(made[1 + i] = make_extra(&all, i, &extra[i])))
            return drop(made);
        place_extra(i, &extra[i].tensor, &call);
    }
    return native_answer(&call, has_few(&all), made, outputs ? 1 + EXTRAS : 1);
}

/* A gradient that is there, or is to be made (True), or lies over its operand (the same object). */
static bool find_gradient(const inputs *all, int k, PyObject *argument, borrowed *into, PyObject **made) {
    if (argument == Py_True) {
        *made = torch_make_like(&all->at[k], all->object[k], all->at[k].tensor.dtype, into);
        return *made;
    }
    *made = Py_NewRef(argument);
    return torch_borrow_made(argument, into) == DONE;
}

/* torch_rows_gradient(loss, reduction, parameters, axis, input, target, class_weight, weight, mask, divisor, upstream,
 * row_state, gradients): a tuple of gradients for input and target. In the tuple that is given each is to be made
 * (True), not asked for (None), written over its operand (the operand itself), or there: then it was computed for an
 * upstream gradient of 1, and is computed anew unless that is what it is. The row state may be None. None: not for us.
 */
PyObject *native_torch_rows_gradient(PyObject *module, PyObject *const *arguments, Py_ssize_t count) {
    (void)module;
    onepass_call call;
    inputs all;
    borrowed upstream, state, gradient[2];
    PyObject *made[1 + EXTRAS] = {NULL};
    if (!native_has_count(count, 4 + GIVEN + 3, "torch_rows_gradient") || !native_read_question(arguments, &call))
        return NULL;
    PyObject *row_state = arguments[5 + GIVEN];
    outcome result = borrow_inputs(arguments + 3, &all, &call);
    if (result == DONE)
        result = torch_borrow(arguments[4 + GIVEN], &upstream);
    if (result == DONE && row_state != Py_None)
        result = torch_borrow(row_state, &state);
    if (result == OTHERWISE)
        Py_RETURN_NONE;
    if (result == FAILED || place(&all, &call) != DONE)
        return NULL;
    call.upstream = &upstream.tensor;
    call.row_state = row_state == Py_None ? NULL : &state.tensor;
    for (int k = 0; k < 2; k++) {
        PyObject *argument = PyTuple_GetItem(arguments[6 + GIVEN], k);
        if (argument == Py_None)
            continue;
        if (!argument || !find_gradient(&all, k, argument, &gradient[k], &made[k])) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_RuntimeError, "a gradient that was kept is no plain tensor any more");
            return drop(made);
        }
        call.gradient[k] = &gradient[k].tensor;
        if (argument != Py_True && argument != all.object[k])
            call.flags |= ONEPASS_SKIP_IF_UPSTREAM_IS_ONE;
    }
    const bool is_done = call.flags & ONEPASS_SKIP_IF_UPSTREAM_IS_ONE && native_is_one_here(&upstream);
    return is_done ? native_tuple_of(made, 2) : native_answer(&call, has_few(&all), made, 2);
}

/* ------------------------------------------------------------------- NumPy -- */

/* numpy_rows(loss, reduction, parameters, axis, input, target, class_weight, weight, mask, value, gradient,
 * gradient_target, log_sum_exp, predicted, divisor): arrays, or None for what is not there; the outputs are arrays that
 * the caller has made. */
PyObject *native_numpy_rows(PyObject *module, PyObject *const *arguments, Py_ssize_t count) {
    (void)module;
    enum {
        VALUE = MASK + 1,
        FOR_INPUT,
        FOR_TARGET,
        LSE,
        CLASSES,
        ARRAYS
    };
    array_argument arrays[ARRAYS] = {{"input", numpy_borrow},        {"target", numpy_borrow},
                                     {"weight", numpy_borrow},       {"row_weight", numpy_borrow},
                                     {"mask", numpy_borrow_mask},    {"value", numpy_borrow},
                                     {"the gradient", numpy_borrow}, {"the gradient for target", numpy_borrow},
                                     {"log_sum_exp", numpy_borrow},  {"predicted", numpy_borrow_labels}};
    onepass_call call;
    borrowed tensor[ARRAYS] = {0};
    const onepass_tensor *given[ARRAYS];
    if (!native_has_count(count, 4 + ARRAYS + 1, "numpy_rows") || !native_read_question(arguments, &call))
        return NULL;
    call.axis = (int32_t)PyLong_AsLong(arguments[3]);
    if (has_labels(&call))
        arrays[TARGET].borrow = numpy_borrow_labels;
    if (!native_borrow_arrays(arguments + 4, ARRAYS, arrays, tensor, given))
        return NULL;
    for (int k = 0; k <= CLASS_WEIGHT; k++)
        call.operand[k] = given[k];
    call.weight = given[WEIGHT];
    call.mask = given[MASK];
    call.value = given[VALUE];
    call.gradient[0] = given[FOR_INPUT];
    call.gradient[1] = given[FOR_TARGET];
    call.log_sum_exp = given[LSE];
    call.predicted = given[CLASSES];
    call.divisor = PyFloat_AsDouble(arguments[4 + ARRAYS]);
    if (PyErr_Occurred() || !native_run(onepass_run, &call, false))
        return NULL;
    Py_RETURN_NONE;
}
