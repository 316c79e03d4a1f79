/* Losses over rows: from Python's arguments to onepass_call and back. */
#include "inputs.h"

#include <string.h>

enum {
    INPUT,
    TARGET
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
    EXTRAS
};

/* The rows of a call, as PyTorch sees the inputs together. */
typedef struct rows {
    inputs given;
    bool has_labels;
    int64_t extent[ONEPASS_MAX_DIMENSIONS]; /* of the rows */
    int32_t ndim;
    int64_t count, classes;
} rows;

/* Whether labels have the rows' shape, and probabilities that of the input. */
static bool has_target_shape(const rows *all) {
    const onepass_tensor *input = &all->given.at[INPUT].tensor, *target = &all->given.at[TARGET].tensor;
    const int64_t *extent = all->has_labels ? all->extent : input->shape;
    const int32_t ndim = all->has_labels ? all->ndim : input->ndim;
    return target->ndim == ndim && memcmp(target->shape, extent, (size_t)ndim * sizeof *extent) == 0;
}

/* The rows' shape; OTHERWISE if there is no such axis, or no class, or a target of another shape. */
static outcome find_rows(int32_t axis, rows *all) {
    const onepass_tensor *input = &all->given.at[INPUT].tensor;
    const int32_t place = axis > 0 ? axis - 1 : axis < 0 ? input->ndim + axis : input->ndim > 1;
    if (place < 0 || place >= input->ndim)
        return OTHERWISE;
    all->ndim = 0;
    all->count = 1;
    all->classes = input->shape[place];
    for (int32_t d = 0; d < input->ndim; d++) {
        if (d == place)
            continue;
        all->extent[all->ndim++] = input->shape[d];
        all->count *= input->shape[d];
    }
    return all->classes > 0 && has_target_shape(all) ? DONE : OTHERWISE;
}

static outcome borrow_rows(PyObject *const *arguments, rows *all, onepass_call *call) {
    const onepass_loss_info *info = onepass_loss_named(call->loss);
    all->has_labels = info && info->over_rows == ONEPASS_CLASS_INDEX;
    torch_borrower *const operands[] = {torch_borrow, all->has_labels ? torch_borrow_labels : torch_borrow,
                                        torch_borrow};
    static const char *const names[GIVEN] = {"input", "target", "weight", "row_weight", "mask", "divisor"};
    const outcome result = native_borrow_inputs(arguments, operands, names, &all->given, call);
    return result == DONE ? find_rows(call->axis, all) : result;
}

/* The compute type. */
static int32_t wide_type(const inputs *given) {
    for (int i = 0; i <= WEIGHT; i++)
        if (given->has[i] && given->at[i].tensor.dtype == ONEPASS_F64)
            return ONEPASS_F64;
    return ONEPASS_F32;
}

static PyObject *make_extra(const rows *all, int extra, borrowed *into) {
    const int64_t states[] = {all->count, ONEPASS_ROW_STATE};
    const borrowed *like = &all->given.at[INPUT];
    if (extra <= GRADIENT_TARGET)
        return native_make_gradient(&all->given, extra, into);
    if (extra == ROW_STATE)
        return torch_make(like, ONEPASS_F64, 2, states, into);
    if (extra == DIVIDED_BY)
        return torch_make_scalar(like, ONEPASS_F64, into);
    return torch_make(like, extra == PREDICTED ? ONEPASS_I64 : wide_type(&all->given), all->ndim, all->extent, into);
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
    rows all;
    borrowed value, extra[EXTRAS];
    PyObject *made[1 + EXTRAS] = {NULL};
    if (!native_has_count(count, 4 + GIVEN + 2, "torch_rows") || !native_read_question(arguments, &call))
        return NULL;
    const long dtype = PyLong_AsLong(arguments[4 + GIVEN]), outputs = PyLong_AsLong(arguments[5 + GIVEN]);
    const outcome result = borrow_rows(arguments + 3, &all, &call);
    if (result == OTHERWISE)
        Py_RETURN_NONE;
    if (result == FAILED || PyErr_Occurred() || native_place_inputs(&all.given, &call) != DONE)
        return NULL;
    const borrowed *input = &all.given.at[INPUT];
    const int32_t type = native_value_type(&all.given, all.has_labels ? 1 : WEIGHT, dtype);
    made[0] = call.reduction == ONEPASS_NONE ? torch_make(input, type, all.ndim, all.extent, &value)
                                             : torch_make_scalar(input, type, &value);
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
    return native_answer(&call, native_has_few(all.count, all.classes), made, outputs ? 1 + EXTRAS : 1);
}

/* torch_rows_gradient(loss, reduction, parameters, axis, input, target, class_weight, weight, mask, divisor, upstream,
 * row_state, gradients): a tuple of gradients for input and target. In the tuple that is given each is to be made
 * (True), not asked for (None), written over its operand (the operand itself), or there: then it was computed for an
 * upstream gradient of 1, and is computed anew unless that is what it is. The row state may be None. None: not for us.
 */
PyObject *native_torch_rows_gradient(PyObject *module, PyObject *const *arguments, Py_ssize_t count) {
    (void)module;
    onepass_call call;
    rows all;
    borrowed upstream, state, gradient[2];
    PyObject *made[1 + EXTRAS] = {NULL};
    if (!native_has_count(count, 4 + GIVEN + 3, "torch_rows_gradient") || !native_read_question(arguments, &call))
        return NULL;
    PyObject *row_state = arguments[5 + GIVEN];
    outcome result = borrow_rows(arguments + 3, &all, &call);
    if (result == DONE)
        result = torch_borrow(arguments[4 + GIVEN], "the upstream gradient", &upstream);
    if (result == DONE && row_state != Py_None)
        result = torch_borrow(row_state, "the rows' state", &state);
    if (result == OTHERWISE)
        Py_RETURN_NONE;
    if (result == FAILED || native_place_inputs(&all.given, &call) != DONE)
        return NULL;
    call.upstream = &upstream.tensor;
    call.row_state = row_state == Py_None ? NULL : &state.tensor;
    if (!native_find_gradients(&all.given, arguments[6 + GIVEN], 2, gradient, made, &call))
        return drop(made);
    const bool is_done = call.flags & ONEPASS_SKIP_IF_UPSTREAM_IS_ONE && native_is_one_here(&upstream);
    return is_done ? native_tuple_of(made, 2) : native_answer(&call, native_has_few(all.count, all.classes), made, 2);
}
