/* Losses of elements: from Python's arguments to onepass_call and back. */
#include "native.h"

#include <string.h>

enum {
    MOST_OPERANDS = 3, /* input, target, and a third where the loss has one */
    EXTRAS = 3         /* the arguments that may be left out together: third, weight, mask */
};

/* The flags of a result's type and strides, as python/onepass/_result.py has them. */
enum {
    IN_SINGLE = 1,       /* at least f32, as autocast wants it */
    TWO_DECIDE = 2,      /* its type is that of input and target alone */
    NUMBERS_ABSTAIN = 4, /* operands without dimensions have no say in it beside those that have some */
    LAYOUT_SHIFT = 3,    /* with reduction none: the number of the operand whose strides it has */
    LAYOUT_MASK = 3
};

/* What is asked for beside gradients, of which each has a bit. */
enum {
    DIVIDED_BY = 8
};

/* ----------------------------------------------------------- PyTorch's rules -- */

/* The operands of a call, and weight and mask if there are, as PyTorch sees them together. */
typedef struct operands {
    int count;
    PyObject *object[MOST_OPERANDS];
    borrowed at[MOST_OPERANDS], weight, mask;
    bool has_weight, has_mask;
    int32_t dtype; /* of the result */
    onepass_shape common;
} operands;

/* Tensors on different devices are PyTorch's to judge. */
static outcome borrow_operand(PyObject *object, const char *name, operands *all) {
    borrowed *into = &all->at[all->count];
    const outcome result = torch_borrow(object, name, into);
    if (result != DONE)
        return result;
    if (native_are_apart(into, &all->at[0]) || onepass_broadcast(&all->common, &into->tensor) != ONEPASS_OK)
        return OTHERWISE;
    all->object[all->count++] = object;
    return DONE;
}

/* A weight or a mask. */
static outcome borrow_further(PyObject *object, const char *name, torch_borrower *borrow, const operands *all,
                              borrowed *into, bool *has) {
    *has = object != Py_None;
    const outcome result = *has ? borrow(object, name, into) : DONE;
    return result == DONE && *has && native_are_apart(into, &all->at[0]) ? OTHERWISE : result;
}

/* Of the result. A weight without dimensions has no say in it beside operands that have some. */
static int32_t type_of(const operands *all, long flags) {
    const int deciding = flags & TWO_DECIDE ? 2 : all->count;
    const bool numbers_decide = all->common.ndim == 0 || !(flags & NUMBERS_ABSTAIN);
    int32_t dtype = 0;
    for (int k = 0; k < deciding; k++) {
        const onepass_tensor *one = &all->at[k].tensor;
        if (numbers_decide || one->ndim > 0)
            dtype = dtype ? onepass_promote(dtype, one->dtype) : one->dtype;
    }
    const bool weight_decides = all->has_weight && !(flags & TWO_DECIDE);
    if (weight_decides && (all->weight.tensor.ndim > 0 || all->common.ndim == 0))
        dtype = onepass_promote(dtype, all->weight.tensor.dtype);
    return dtype;
}

/* `extras` are third, weight and mask, each of which may be None, or null. */
static outcome borrow_operands(PyObject *const *two, PyObject *const *extras, long flags, operands *all) {
    all->common = (onepass_shape)ONEPASS_SHAPE_INIT;
    all->count = 0;
    all->has_weight = all->has_mask = false;
    outcome result = borrow_operand(two[0], "input", all);
    if (result == DONE)
        result = borrow_operand(two[1], "target", all);
    if (result == DONE && extras && extras[0] != Py_None)
        result = borrow_operand(extras[0], "the third operand", all);
    if (result == DONE && extras)
        result = borrow_further(extras[1], "weight", torch_borrow, all, &all->weight, &all->has_weight);
    if (result == DONE && extras)
        result = borrow_further(extras[2], "mask", torch_borrow_mask, all, &all->mask, &all->has_mask);
    if (result == DONE)
        all->dtype = type_of(all, flags);
    return result;
}

static bool has_common_shape(const operands *all, const borrowed *one) {
    return one->tensor.ndim == all->common.ndim &&
           memcmp(one->shape, all->common.extent, (size_t)all->common.ndim * sizeof *all->common.extent) == 0;
}

static bool have_one_shape(const operands *all) {
    for (int k = 0; k < all->count; k++)
        if (!has_common_shape(all, &all->at[k]))
            return false;
    return true;
}

/* Elements that take a microsecond or two. */
static bool has_few(const operands *all) {
    return all->common.count <= 4096;
}

static outcome place(const operands *all, onepass_call *call) {
    for (int k = 0; k < all->count; k++)
        call->operand[k] = &all->at[k].tensor;
    call->weight = all->has_weight ? &all->weight.tensor : NULL;
    call->mask = all->has_mask ? &all->mask.tensor : NULL;
    return native_place_device(&all->at[0], call);
}

/* A tensor of the common shape; with an operand's strides if that has this shape too. */
static PyObject *make_common(const operands *all, int k, int32_t dtype, borrowed *into) {
    return has_common_shape(all, &all->at[k])
               ? torch_make_like(&all->at[k], all->object[k], dtype, into)
               : torch_make(&all->at[k], dtype, all->common.ndim, all->common.extent, into);
}

static PyObject *make_value(const operands *all, const onepass_call *call, long flags, borrowed *into) {
    const int32_t dtype = flags & IN_SINGLE && all->dtype < ONEPASS_F32 ? ONEPASS_F32 : all->dtype;
    const int layout = (int)(flags >> LAYOUT_SHIFT & LAYOUT_MASK);
    return call->reduction == ONEPASS_NONE ? make_common(all, layout < all->count ? layout : 0, dtype, into)
                                           : torch_make_scalar(&all->at[0], dtype, into);
}

/* What torch_loss makes: the value, gradients, and what a mean was divided by. */
enum {
    MOST_MADE = 1 + MOST_OPERANDS + 1
};

static PyObject *drop(PyObject **made) {
    return native_drop(made, MOST_MADE);
}

/* ------------------------------------------------------------------- PyTorch -- */

/* torch_loss(loss, reduction, parameters, input, target, result_flags, gradients, broadcast[, third, weight, mask]):
 * the value, or with gradients asked for (1: for input, 2: for target, 4: for the third) a tuple of it and one for each
 * operand; 8 asks for what a mean was divided by, an f64 that comes last. The flags are those above. None: not for us,
 * or operands of different shapes while broadcast is False. */
PyObject *native_torch_loss(PyObject *module, PyObject *const *arguments, Py_ssize_t count) {
    (void)module;
    onepass_call call;
    operands all;
    borrowed value, gradient[MOST_OPERANDS], divided_by;
    PyObject *made[MOST_MADE] = {NULL};
    if ((count != 8 + EXTRAS && !native_has_count(count, 8, "torch_loss")) || !native_read_question(arguments, &call))
        return NULL;
    const long flags = PyLong_AsLong(arguments[5]), outputs = PyLong_AsLong(arguments[6]);
    const outcome result = borrow_operands(arguments + 3, count > 8 ? arguments + 8 : NULL, flags, &all);
    if (result == OTHERWISE || (result == DONE && arguments[7] == Py_False && !have_one_shape(&all)))
        Py_RETURN_NONE;
    if (result == FAILED || PyErr_Occurred() || place(&all, &call) != DONE)
        return NULL;
    if (!(made[0] = make_value(&all, &call, flags, &value)))
        return NULL;
    call.value = &value.tensor;
    for (int k = 0; k < all.count; k++) {
        if (!(outputs & (1 << k)))
            continue;
        if (!(made[1 + k] = make_common(&all, k, all.at[k].tensor.dtype, &gradient[k])))
            return drop(made);
        call.gradient[k] = &gradient[k].tensor;
    }
    if (!(outputs & DIVIDED_BY))
        return native_answer(&call, has_few(&all), made, outputs ? 1 + all.count : 1);
    if (!(made[1 + all.count] = torch_make_scalar(&all.at[0], ONEPASS_F64, &divided_by)))
        return drop(made);
    call.divided_by = &divided_by.tensor;
    return native_answer(&call, has_few(&all), made, 2 + all.count);
}

/* A gradient that is there, or is to be made (True), or is not asked for (None). */
static outcome find_gradient(const operands *all, int k, PyObject *argument, borrowed *into, PyObject **made) {
    if (argument == Py_None)
        return OTHERWISE;
    if (argument != Py_True) {
        *made = Py_NewRef(argument);
        return torch_borrow_made(argument, "the gradient", into) == DONE ? DONE : FAILED;
    }
    *made = make_common(all, k, all->at[k].tensor.dtype, into);
    return *made ? DONE : FAILED;
}

/* What a mean is divided by: a number of Python's, a tensor, or nothing. */
static outcome find_divisor(PyObject *argument, borrowed *into, onepass_call *call) {
    if (argument == Py_None)
        return DONE;
    if (PyFloat_Check(argument)) {
        call->divisor = PyFloat_AsDouble(argument);
        return DONE;
    }
    call->divisor_tensor = &into->tensor;
    return torch_borrow(argument, "divisor", into);
}

/* torch_gradient(loss, reduction, parameters, input, target, upstream, gradients[, third, weight, mask[, divisor]]): a
 * tuple of gradients at the common shape, one for each operand. In the tuple that is given each is to be made (True),
 * not asked for (None), or there: then it was computed for an upstream gradient of 1, and is computed anew unless that
 * is what it is. None: not for us. */
PyObject *native_torch_gradient(PyObject *module, PyObject *const *arguments, Py_ssize_t count) {
    (void)module;
    onepass_call call;
    operands all;
    borrowed upstream, divisor, gradient[MOST_OPERANDS];
    PyObject *made[MOST_MADE] = {NULL};
    if ((count != 7 + EXTRAS && count != 7 + EXTRAS + 1 && !native_has_count(count, 7, "torch_gradient")) ||
        !native_read_question(arguments, &call))
        return NULL;
    outcome result = borrow_operands(arguments + 3, count > 7 ? arguments + 7 : NULL, 0, &all);
    if (result == DONE)
        result = torch_borrow(arguments[5], "the upstream gradient", &upstream);
    if (result == DONE && count > 7 + EXTRAS)
        result = find_divisor(arguments[7 + EXTRAS], &divisor, &call);
    if (result == OTHERWISE)
        Py_RETURN_NONE;
    if (result == FAILED || place(&all, &call) != DONE)
        return NULL;
    call.upstream = &upstream.tensor;
    for (int k = 0; k < all.count; k++) {
        PyObject *argument = PyTuple_GetItem(arguments[6], k);
        result = argument ? find_gradient(&all, k, argument, &gradient[k], &made[k]) : FAILED;
        if (result == FAILED)
            return drop(made);
        if (result == DONE)
            call.gradient[k] = &gradient[k].tensor;
        if (result == DONE && argument != Py_True)
            call.flags |= ONEPASS_SKIP_IF_UPSTREAM_IS_ONE;
    }
    return native_answer(&call, has_few(&all), made, all.count);
}

/* torch_scale(upstream, gradient or None, ...): multiplies in place; whether it could. */
PyObject *native_torch_scale(PyObject *module, PyObject *const *arguments, Py_ssize_t count) {
    (void)module;
    borrowed upstream, gradient[MOST_OPERANDS];
    onepass_call call = ONEPASS_CALL_INIT;
    if (count > 1 + MOST_OPERANDS || count < 2)
        return PyErr_Format(PyExc_TypeError, "torch_scale takes 2 to %d arguments, not %zd", 1 + MOST_OPERANDS, count);
    outcome result = torch_borrow(arguments[0], "the upstream gradient", &upstream);
    if (result == DONE && native_is_one_here(&upstream))
        Py_RETURN_TRUE;
    for (int k = 0; k < count - 1 && result == DONE; k++) {
        if (arguments[1 + k] == Py_None)
            continue;
        result = torch_borrow_made(arguments[1 + k], "the gradient", &gradient[k]);
        call.gradient[k] = &gradient[k].tensor;
    }
    if (result == OTHERWISE)
        Py_RETURN_FALSE;
    call.upstream = &upstream.tensor;
    if (result == FAILED || native_place_device(&upstream, &call) != DONE || !native_run(onepass_scale, &call, false))
        return NULL;
    Py_RETURN_TRUE;
}
