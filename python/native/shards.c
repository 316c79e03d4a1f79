/* Losses over rows whose classes are shared out: one kind of onepass_call after the other, of tensors that the caller
 * has made. */
#include "native.h"

enum {
    INPUT,
    TARGET,
    CLASS_WEIGHT,
    DIVISOR,
    UPSTREAM,
    VALUE,
    GRADIENT,
    LOG_SUM_EXP,
    ROW_STATE,
    TILE_SUMS,
    LABEL_LOGIT,
    GIVEN
};

static const char *const names[GIVEN] = {"input",    "target",      "weight",    "divisor",   "upstream",   "value",
                                         "gradient", "log_sum_exp", "row_state", "tile_sums", "label_logit"};

static outcome borrow(int i, PyObject *object, borrowed *into) {
    const outcome found = i == TARGET                      ? torch_borrow_labels(object, names[i], into)
                          : i == VALUE || i >= LOG_SUM_EXP ? torch_borrow_made(object, names[i], into)
                                                           : torch_borrow(object, names[i], into);
    if (found == OTHERWISE)
        PyErr_Format(PyExc_TypeError, "%s is no plain tensor of a type that is known; expected one", names[i]);
    return found == DONE ? DONE : FAILED;
}

/* torch_shard(loss, reduction, parameters, axis, first_class, all_classes, input, target, class_weight, divisor,
 * upstream, value, gradient, log_sum_exp, row_state, tile_sums, label_logit): None for what is not there. The divisor
 * is a float, a tensor or None. Returns None. */
PyObject *native_torch_shard(PyObject *module, PyObject *const *arguments, Py_ssize_t count) {
    (void)module;
    enum {
        BEFORE = 6
    };
    onepass_call call;
    borrowed tensor[GIVEN];
    const onepass_tensor *given[GIVEN] = {NULL};
    if (!native_has_count(count, BEFORE + GIVEN, "torch_shard") || !native_read_question(arguments, &call))
        return NULL;
    call.axis = (int32_t)PyLong_AsLong(arguments[3]);
    call.first_class = PyLong_AsLongLong(arguments[4]);
    call.all_classes = PyLong_AsLongLong(arguments[5]);
    for (int i = 0; i < GIVEN && !PyErr_Occurred(); i++) {
        PyObject *object = arguments[BEFORE + i];
        if (i == DIVISOR && PyFloat_Check(object)) {
            call.divisor = PyFloat_AsDouble(object);
        } else if (object != Py_None && borrow(i, object, &tensor[i]) == DONE) {
            given[i] = &tensor[i].tensor;
            if (native_are_apart(&tensor[i], &tensor[INPUT]))
                PyErr_Format(PyExc_RuntimeError, "%s is on another device than the input; expected the same", names[i]);
        }
    }
    if (PyErr_Occurred() || native_place_device(&tensor[INPUT], &call) != DONE)
        return NULL;
    for (int k = 0; k <= CLASS_WEIGHT; k++)
        call.operand[k] = given[k];
    call.divisor_tensor = given[DIVISOR];
    call.upstream = given[UPSTREAM];
    call.value = given[VALUE];
    call.gradient[0] = given[GRADIENT];
    call.log_sum_exp = given[LOG_SUM_EXP];
    call.row_state = given[ROW_STATE];
    call.tile_sums = given[TILE_SUMS];
    call.label_logit = given[LABEL_LOGIT];
    if (!native_run(onepass_run, &call, false))
        return NULL;
    Py_RETURN_NONE;
}
