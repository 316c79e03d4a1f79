/* From Python's arguments to onepass_call and back. */
#include "native.h"

#include <string.h>

enum {
    OPERANDS = 2,
    FOR_INPUT = 1,
    FOR_TARGET = 2
};

/* ------------------------------------------------------------------ errors -- */

static void raise_status(onepass_status status) {
    PyObject *exception = status == ONEPASS_OUT_OF_MEMORY   ? PyExc_MemoryError
                          : status == ONEPASS_NOT_SUPPORTED ? PyExc_NotImplementedError
                          : status == ONEPASS_INVALID_ARGUMENT || status == ONEPASS_INVALID_SHAPE ? PyExc_ValueError
                                                                                                  : PyExc_RuntimeError;
    PyErr_SetString(exception, onepass_message());
}

static bool has_count(Py_ssize_t count, Py_ssize_t expected, const char *function) {
    if (count == expected)
        return true;
    PyErr_Format(PyExc_TypeError, "%s takes %zd arguments, not %zd", function, expected, count);
    return false;
}

/* On the CPU others may run meanwhile; on a GPU the call is over before it would pay. */
static bool run(onepass_status (*function)(const onepass_call *), const onepass_call *call) {
    onepass_status status;
    if (call->device == ONEPASS_CPU) {
        PyThreadState *state = PyEval_SaveThread();
        status = function(call);
        PyEval_RestoreThread(state);
    } else {
        status = function(call);
    }
    if (status != ONEPASS_OK)
        raise_status(status);
    return status == ONEPASS_OK;
}

/* --------------------------------------------------------------- arguments -- */

/* What every computation is told first: the loss's name, the reduction's number, the tuple of parameters. The name
 * is kept in `name`, since a call only points at it. */
typedef struct question {
    char name[64];
    onepass_call call;
} question;

static bool read_question(PyObject *const *arguments, question *question) {
    PyObject *name = PyUnicode_AsUTF8String(arguments[0]);
    question->call = (onepass_call){.size = sizeof question->call, .loss = question->name};
    if (!name)
        return false;
    strncpy(question->name, PyBytes_AsString(name), sizeof question->name - 1);
    question->name[sizeof question->name - 1] = '\0';
    Py_DECREF(name);
    question->call.reduction = (int32_t)PyLong_AsLong(arguments[1]);
    const Py_ssize_t count = PyTuple_Size(arguments[2]);
    if (count > ONEPASS_MAX_PARAMETERS)
        PyErr_Format(PyExc_ValueError, "%zd parameters; expected at most %d", count, ONEPASS_MAX_PARAMETERS);
    for (Py_ssize_t i = 0; i < count && !PyErr_Occurred(); i++)
        question->call.parameter[i] = PyFloat_AsDouble(PyTuple_GetItem(arguments[2], i));
    question->call.parameter_count = (int32_t)count;
    return !PyErr_Occurred();
}

/* ----------------------------------------------------------- PyTorch's rules -- */

/* The operands of a call, and the weight if there is one, as PyTorch sees them together. */
typedef struct operands {
    PyObject *object[OPERANDS];
    borrowed at[OPERANDS], weight;
    bool has_weight;
    int32_t dtype; /* promoted */
    int32_t ndim;  /* of the common shape */
    int64_t shape[ONEPASS_MAX_DIMENSIONS];
} operands;

/* f16 with bf16 gives f32, otherwise the larger one's. */
static int32_t promote(int32_t a, int32_t b) {
    const bool both_small = a < ONEPASS_F32 && b < ONEPASS_F32;
    return a == b ? a : both_small ? ONEPASS_F32 : a > b ? a : b;
}

/* Tensors on different devices are PyTorch's to judge. */
static bool join(operands *all, const borrowed *one, bool is_first) {
    if (!is_first && (one->device != all->at[0].device || one->device_index != all->at[0].device_index))
        return false;
    all->dtype = is_first ? one->tensor.dtype : promote(all->dtype, one->tensor.dtype);
    return true;
}

static bool broadcast(operands *all, const borrowed *one) {
    const int32_t ndim = all->ndim > one->tensor.ndim ? all->ndim : one->tensor.ndim;
    int64_t shape[ONEPASS_MAX_DIMENSIONS] = {0};
    for (int32_t d = 1; d <= ndim; d++) { /* from the last one on */
        const int64_t a = d <= all->ndim ? all->shape[all->ndim - d] : 1;
        const int64_t b = d <= one->tensor.ndim ? one->shape[one->tensor.ndim - d] : 1;
        if (a != b && a != 1 && b != 1)
            return false;
        shape[ndim - d] = a == 1 ? b : a;
    }
    memcpy(all->shape, shape, (size_t)ndim * sizeof *shape);
    all->ndim = ndim;
    return true;
}

static outcome borrow_operands(PyObject *const *arguments, operands *all) {
    all->ndim = 0;
    all->has_weight = arguments[OPERANDS] != Py_None;
    for (int k = 0; k < OPERANDS + all->has_weight; k++) {
        borrowed *into = k < OPERANDS ? &all->at[k] : &all->weight;
        const outcome result = torch_borrow(arguments[k], into);
        if (result != DONE)
            return result;
        if (!join(all, into, k == 0) || !broadcast(all, into))
            return OTHERWISE;
        if (k < OPERANDS)
            all->object[k] = arguments[k];
    }
    return DONE;
}

static outcome place(const operands *all, onepass_call *call) {
    for (int k = 0; k < OPERANDS; k++)
        call->operand[k] = &all->at[k].tensor;
    call->weight = all->has_weight ? &all->weight.tensor : NULL;
    call->device = all->at[0].device;
    call->device_index = all->at[0].device_index;
    call->threads = all->at[0].device == ONEPASS_CPU ? torch_threads() : 0;
    return torch_stream(&all->at[0], &call->stream);
}

static bool has_common_shape(const operands *all, const borrowed *one) {
    return one->tensor.ndim == all->ndim && memcmp(one->shape, all->shape, (size_t)all->ndim * sizeof *all->shape) == 0;
}

static bool have_one_shape(const operands *all) {
    return has_common_shape(all, &all->at[0]) && has_common_shape(all, &all->at[1]);
}

/* A tensor of the common shape; with an operand's strides if that has this shape too. */
static PyObject *make_common(const operands *all, int k, int32_t dtype, borrowed *into) {
    return has_common_shape(all, &all->at[k]) ? torch_make_like(&all->at[k], all->object[k], dtype, into)
                                              : torch_make(&all->at[k], dtype, all->ndim, all->shape, into);
}

static int64_t count_of(int32_t ndim, const int64_t *shape) {
    int64_t count = 1;
    for (int32_t d = 0; d < ndim; d++)
        count *= shape[d];
    return count;
}

/* Where the input was broadcast PyTorch counts each of its weights once in a mean, and the library at the common shape;
 * and a weight without dimensions does not decide on the type of a result that has some. */
static bool has_odd_weight(const operands *all, const onepass_call *call) {
    const borrowed *weight = &all->weight;
    if (!all->has_weight)
        return false;
    return (weight->tensor.ndim == 0 && all->ndim > 0) ||
           (call->reduction == ONEPASS_MEAN &&
            count_of(weight->tensor.ndim, weight->shape) != count_of(all->ndim, all->shape));
}

static PyObject *make_value(const operands *all, const onepass_call *call, bool in_single, borrowed *into) {
    const int32_t dtype = in_single && all->dtype < ONEPASS_F32 ? ONEPASS_F32 : all->dtype;
    return call->reduction == ONEPASS_NONE ? make_common(all, 0, dtype, into)
                                           : torch_make_scalar(&all->at[0], dtype, into);
}

/* (value, gradient for input, gradient for target), with None for what is not there; takes the references. */
static PyObject *three(PyObject **made) {
    return Py_BuildValue("(NNN)", made[0] ? made[0] : Py_NewRef(Py_None), made[1] ? made[1] : Py_NewRef(Py_None),
                         made[2] ? made[2] : Py_NewRef(Py_None));
}

static PyObject *drop(PyObject **made) {
    for (int i = 0; i < 3; i++)
        Py_CLEAR(made[i]);
    return NULL;
}

/* ------------------------------------------------------------------- PyTorch -- */

/* torch_loss(loss, reduction, parameters, input, target, weight, in_single, gradients, broadcast): the value, or with
 * gradients wanted (1: for input, 2: for target) a tuple of three. None: not for us, or of different shapes while
 * broadcast is False. */
PyObject *native_torch_loss(PyObject *module, PyObject *const *arguments, Py_ssize_t count) {
    (void)module;
    question question;
    operands all;
    borrowed value, gradient[OPERANDS];
    PyObject *made[3] = {NULL};
    if (!has_count(count, 9, "torch_loss") || !read_question(arguments, &question))
        return NULL;
    const bool in_single = arguments[6] == Py_True;
    const long wanted = PyLong_AsLong(arguments[7]);
    onepass_call *call = &question.call;
    outcome result = borrow_operands(arguments + 3, &all);
    if (result == OTHERWISE || (result == DONE && has_odd_weight(&all, call)))
        Py_RETURN_NONE;
    if (result == DONE && arguments[8] == Py_False && !have_one_shape(&all))
        Py_RETURN_NONE;
    if (result == FAILED || PyErr_Occurred() || place(&all, call) != DONE)
        return NULL;
    if (!(made[0] = make_value(&all, call, in_single, &value)))
        return NULL;
    call->value = &value.tensor;
    for (int k = 0; k < OPERANDS; k++) {
        if (!(wanted & (1 << k)))
            continue;
        if (!(made[1 + k] = make_common(&all, k, all.at[k].tensor.dtype, &gradient[k])))
            return drop(made);
        call->gradient[k] = &gradient[k].tensor;
    }
    if (!run(onepass_run, call))
        return drop(made);
    return wanted ? three(made) : made[0];
}

/* An output that is there, or is to be made (True), or is not wanted (None). */
static outcome find_gradient(const operands *all, int k, PyObject *argument, borrowed *into, PyObject **made) {
    if (argument == Py_None)
        return OTHERWISE;
    if (argument != Py_True) {
        *made = Py_NewRef(argument);
        return torch_borrow(argument, into) == DONE ? DONE : FAILED;
    }
    *made = make_common(all, k, all->at[k].tensor.dtype, into);
    return *made ? DONE : FAILED;
}

/* torch_gradient(loss, reduction, parameters, input, target, weight, upstream, gradient for input, for target):
 * gradients at the common shape, as a tuple (None, for input, for target). A gradient is made (True), not wanted
 * (None), or given: then it was computed for an upstream gradient of 1, and is computed anew unless that is what it is.
 * None: not for us. */
PyObject *native_torch_gradient(PyObject *module, PyObject *const *arguments, Py_ssize_t count) {
    (void)module;
    question question;
    operands all;
    borrowed upstream, gradient[OPERANDS];
    PyObject *made[3] = {NULL};
    if (!has_count(count, 9, "torch_gradient") || !read_question(arguments, &question))
        return NULL;
    outcome result = borrow_operands(arguments + 3, &all);
    if (result == DONE)
        result = torch_borrow(arguments[6], &upstream);
    onepass_call *call = &question.call;
    if (result == OTHERWISE || (result == DONE && has_odd_weight(&all, call)))
        Py_RETURN_NONE;
    if (result == FAILED || place(&all, call) != DONE)
        return NULL;
    call->upstream = &upstream.tensor;
    for (int k = 0; k < OPERANDS; k++) {
        result = find_gradient(&all, k, arguments[7 + k], &gradient[k], &made[1 + k]);
        if (result == FAILED)
            return drop(made);
        if (result == DONE)
            call->gradient[k] = &gradient[k].tensor;
        if (result == DONE && arguments[7 + k] != Py_True)
            call->flags = ONEPASS_UNLESS_ONE;
    }
    return run(onepass_run, call) ? three(made) : drop(made);
}

/* torch_scale(upstream, gradient, gradient or None): multiplies in place; whether it could. */
PyObject *native_torch_scale(PyObject *module, PyObject *const *arguments, Py_ssize_t count) {
    (void)module;
    borrowed upstream, gradient[OPERANDS];
    onepass_call call = ONEPASS_CALL_INIT;
    if (!has_count(count, 3, "torch_scale"))
        return NULL;
    outcome result = torch_borrow(arguments[0], &upstream);
    for (int k = 0; k < OPERANDS && result == DONE; k++) {
        if (arguments[1 + k] == Py_None)
            continue;
        result = torch_borrow(arguments[1 + k], &gradient[k]);
        call.gradient[k] = &gradient[k].tensor;
    }
    if (result == OTHERWISE)
        Py_RETURN_FALSE;
    call.upstream = &upstream.tensor;
    call.device = upstream.device;
    call.device_index = upstream.device_index;
    call.threads = call.device == ONEPASS_CPU ? torch_threads() : 0;
    if (result == FAILED || torch_stream(&upstream, &call.stream) != DONE || !run(onepass_scale, &call))
        return NULL;
    Py_RETURN_TRUE;
}

/* --------------------------------------------------------------------- NumPy -- */

/* numpy_run(loss, reduction, parameters, input, target, weight, value, gradient): arrays, or None for what is not
 * there; the outputs are arrays that the caller has made. */
PyObject *native_numpy_run(PyObject *module, PyObject *const *arguments, Py_ssize_t count) {
    (void)module;
    static const char *const names[] = {"input", "target", "weight", "value", "the gradient"};
    question question;
    borrowed tensor[5] = {0};
    const onepass_tensor *given[5];
    if (!has_count(count, 8, "numpy_run") || !read_question(arguments, &question))
        return NULL;
    for (int i = 0; i < 5; i++) {
        given[i] = arguments[3 + i] == Py_None ? NULL : &tensor[i].tensor;
        if (given[i] && numpy_borrow(arguments[3 + i], names[i], &tensor[i]) != DONE)
            return NULL;
    }
    onepass_call *call = &question.call;
    call->operand[ONEPASS_PREDICTION] = given[0];
    call->operand[ONEPASS_TARGET] = given[1];
    call->weight = given[2];
    call->value = given[3];
    call->gradient[0] = given[4];
    if (!run(onepass_run, call))
        return NULL;
    Py_RETURN_NONE;
}
