/* The tensors that go into a call over rows or of vectors, in the order in which Python gives them. */
#include "inputs.h"

/* A divisor is a number of Python's or a tensor. */
static outcome borrow_input(int i, PyObject *object, torch_borrower *const *operands, const char *name, inputs *all,
                            onepass_call *call) {
    all->object[i] = object;
    all->has[i] = object != Py_None && !(i == DIVISOR && PyFloat_Check(object));
    if (all->has[i])
        return (i < WEIGHT ? operands[i] : i == MASK ? torch_borrow_mask : torch_borrow)(object, name, &all->at[i]);
    if (object != Py_None)
        call->divisor = PyFloat_AsDouble(object);
    return DONE;
}

outcome native_borrow_inputs(PyObject *const *arguments, torch_borrower *const *operands, const char *const *names,
                             inputs *all, onepass_call *call) {
    call->axis = (int32_t)PyLong_AsLong(arguments[0]);
    for (int i = 0; i < GIVEN; i++) {
        const outcome result = borrow_input(i, arguments[1 + i], operands, names[i], all, call);
        if (result != DONE)
            return result;
        if (all->has[i] && native_are_apart(&all->at[i], &all->at[0])) /* which is PyTorch's to judge */
            return OTHERWISE;
    }
    return PyErr_Occurred() ? FAILED : DONE;
}

outcome native_place_inputs(const inputs *all, onepass_call *call) {
    for (int k = 0; k < WEIGHT; k++)
        call->operand[k] = all->has[k] ? &all->at[k].tensor : NULL;
    call->weight = all->has[WEIGHT] ? &all->at[WEIGHT].tensor : NULL;
    call->mask = all->has[MASK] ? &all->at[MASK].tensor : NULL;
    call->divisor_tensor = all->has[DIVISOR] ? &all->at[DIVISOR].tensor : NULL;
    return native_place_device(&all->at[0], call);
}

int32_t native_value_type(const inputs *all, int deciding, long asked) {
    if (asked > 0)
        return (int32_t)asked;
    int32_t dtype = all->at[0].tensor.dtype;
    for (int k = 1; k < deciding; k++)
        if (all->has[k])
            dtype = onepass_promote(dtype, all->at[k].tensor.dtype);
    if (all->has[WEIGHT] && all->at[WEIGHT].tensor.ndim > 0)
        dtype = onepass_promote(dtype, all->at[WEIGHT].tensor.dtype);
    return asked == IN_SINGLE && dtype < ONEPASS_F32 ? ONEPASS_F32 : dtype;
}

PyObject *native_make_gradient(const inputs *all, int k, borrowed *into) {
    return torch_make_like(&all->at[k], all->object[k], all->at[k].tensor.dtype, into);
}

bool native_find_gradients(const inputs *all, PyObject *tuple, int count, borrowed *gradient, PyObject **made,
                           onepass_call *call) {
    for (int k = 0; k < count; k++) {
        PyObject *argument = PyTuple_GetItem(tuple, k);
        if (argument == Py_None)
            continue;
        if (argument == Py_True) {
            made[k] = native_make_gradient(all, k, &gradient[k]);
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

bool native_has_few(int64_t rows, int64_t elements) {
    return rows <= 4096 && elements <= 4096 && rows * elements <= 4096;
}
