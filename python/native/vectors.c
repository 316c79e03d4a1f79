/* Vector losses: from Python's arguments to onepass_call and back. */
#include "inputs.h"

#include <string.h>

enum {
    MOST_OPERANDS = WEIGHT
};

/* The vectors of a call, as PyTorch sees the inputs together. */
typedef struct vectors {
    inputs given;
    int count;        /* operands that are vectors: one, two or three; with one alone class weights may come third */
    bool has_lists;   /* of labels: the operand behind the vectors has their shape */
    int32_t row_ndim; /* of the rows' shape, with which that of a vector begins */
    int64_t rows, length;
} vectors;

/* How many operands are vectors; one behind them, if there is one, is a number for each row. */
static int count_vectors(const onepass_loss_info *info) {
    if (!info)
        return 2;
    return info->over_rows == ONEPASS_CLASS_A_VECTOR ? 1 : info->operand_count - (info->over_rows != ONEPASS_VECTOR);
}

/* A tensor of floats or of whole numbers. */
static outcome borrow_numbers(PyObject *object, const char *name, borrowed *into) {
    const outcome result = torch_borrow_labels(object, name, into);
    return result == OTHERWISE ? torch_borrow(object, name, into) : result;
}

static bool has_shape(const borrowed *one, int32_t ndim, const int64_t *extent) {
    return one->tensor.ndim == ndim && memcmp(one->shape, extent, (size_t)ndim * sizeof *extent) == 0;
}

/* Whether an operand is a vector for each row like the first, a number for each, or a number for each element. */
static bool has_own_shape(const vectors *all, int k) {
    const borrowed *at = all->given.at;
    const onepass_tensor *first = &at[0].tensor;
    if (k > all->count)
        return has_shape(&at[k], 1, &all->length);
    return has_shape(&at[k], k < all->count || all->has_lists ? first->ndim : all->row_ndim, first->shape);
}

/* OTHERWISE if operands do not have the shapes that belong together, or no elements, or there is no such axis. */
static outcome find_rows(int32_t axis, vectors *all) {
    const onepass_tensor *first = &all->given.at[0].tensor;
    all->row_ndim = axis > 0 ? axis - 1 : first->ndim + (axis ? axis : -1);
    if (all->row_ndim < 0 || all->row_ndim >= first->ndim)
        return OTHERWISE;
    all->rows = all->length = 1;
    for (int32_t d = 0; d < first->ndim; d++)
        *(d < all->row_ndim ? &all->rows : &all->length) *= first->shape[d];
    for (int k = 1; k < MOST_OPERANDS; k++)
        if (all->given.has[k] && !has_own_shape(all, k))
            return OTHERWISE;
    return all->length > 0 ? DONE : OTHERWISE;
}

static outcome borrow_vectors(PyObject *const *arguments, vectors *all, onepass_call *call) {
    const onepass_loss_info *info = onepass_loss_named(call->loss);
    all->count = count_vectors(info);
    all->has_lists = info && info->over_rows == ONEPASS_CLASSES_A_VECTOR;
    torch_borrower *const operands[] = {torch_borrow, all->count == 1 ? borrow_numbers : torch_borrow,
                                        all->count == 2 ? borrow_numbers : torch_borrow};
    const char *names[GIVEN] = {NULL, NULL, NULL, "weight", "mask", "divisor"};
    for (int k = 0; k < MOST_OPERANDS; k++)
        names[k] = info && k < info->operand_count ? info->operand[k] : "an operand";
    const outcome result = native_borrow_inputs(arguments, operands, names, &all->given, call);
    return result == DONE ? find_rows(call->axis, all) : result;
}

/* torch_vectors(loss, reduction, parameters, axis, first, second, third, weight, mask, divisor, dtype, gradients): the
 * value, or with gradients asked for (1: for the first, 2: for the second, 4: for the third) a tuple of it and three,
 * None for those that are not. The divisor is a float, a tensor or None. dtype is the library's number of the value's
 * type, 0 for PyTorch's choice, or IN_SINGLE. None: not for us, or vectors of several shapes. */
PyObject *native_torch_vectors(PyObject *module, PyObject *const *arguments, Py_ssize_t count) {
    (void)module;
    onepass_call call;
    vectors all;
    borrowed value, gradient[MOST_OPERANDS];
    PyObject *made[1 + MOST_OPERANDS] = {NULL};
    if (!native_has_count(count, 4 + GIVEN + 2, "torch_vectors") || !native_read_question(arguments, &call))
        return NULL;
    const long dtype = PyLong_AsLong(arguments[4 + GIVEN]), outputs = PyLong_AsLong(arguments[5 + GIVEN]);
    const outcome result = borrow_vectors(arguments + 3, &all, &call);
    if (result == OTHERWISE)
        Py_RETURN_NONE;
    if (result == FAILED || PyErr_Occurred() || native_place_inputs(&all.given, &call) != DONE)
        return NULL;
    const borrowed *first = &all.given.at[0];
    const int32_t type = native_value_type(&all.given, all.count, dtype);
    made[0] = call.reduction == ONEPASS_NONE ? torch_make(first, type, all.row_ndim, first->shape, &value)
                                             : torch_make_scalar(first, type, &value);
    if (!made[0])
        return NULL;
    call.value = &value.tensor;
    for (int k = 0; k < all.count; k++) {
        if (!(outputs >> k & 1))
            continue;
        if (!(made[1 + k] = native_make_gradient(&all.given, k, &gradient[k])))
            return native_drop(made, 1 + MOST_OPERANDS);
        call.gradient[k] = &gradient[k].tensor;
    }
    return native_answer(&call, native_has_few(all.rows, all.length), made, outputs ? 1 + MOST_OPERANDS : 1);
}

/* torch_vectors_gradient(loss, reduction, parameters, axis, first, second, third, weight, mask, divisor, upstream,
 * gradients): a tuple of three gradients. In the tuple that is given each is to be made (True), not asked for (None),
 * or there: then it was computed for an upstream gradient of 1, and is computed anew unless that is what it is. None:
 * not for us. */
PyObject *native_torch_vectors_gradient(PyObject *module, PyObject *const *arguments, Py_ssize_t count) {
    (void)module;
    onepass_call call;
    vectors all;
    borrowed upstream, gradient[MOST_OPERANDS];
    PyObject *made[MOST_OPERANDS] = {NULL};
    if (!native_has_count(count, 4 + GIVEN + 2, "torch_vectors_gradient") || !native_read_question(arguments, &call))
        return NULL;
    outcome result = borrow_vectors(arguments + 3, &all, &call);
    if (result == DONE)
        result = torch_borrow(arguments[4 + GIVEN], "the upstream gradient", &upstream);
    if (result == OTHERWISE)
        Py_RETURN_NONE;
    if (result == FAILED || native_place_inputs(&all.given, &call) != DONE)
        return NULL;
    call.upstream = &upstream.tensor;
    if (!native_find_gradients(&all.given, arguments[5 + GIVEN], all.count, gradient, made, &call))
        return native_drop(made, MOST_OPERANDS);
    const bool is_done = call.flags & ONEPASS_SKIP_IF_UPSTREAM_IS_ONE && native_is_one_here(&upstream);
    return is_done ? native_tuple_of(made, MOST_OPERANDS)
                   : native_answer(&call, native_has_few(all.rows, all.length), made, MOST_OPERANDS);
}
