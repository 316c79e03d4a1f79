/* The module onepass._native: what it offers, and what the library says of itself. */
#include "native.h"

static PyObject *native_learn_torch(PyObject *module, PyObject *torch) {
    (void)module;
    if (torch_learn(torch) != DONE)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *native_use_exchange_api(PyObject *module, PyObject *use) {
    (void)module;
    const int is_allowed = PyObject_IsTrue(use);
    return is_allowed < 0 ? NULL : PyBool_FromLong(torch_use_exchange(is_allowed));
}

static PyObject *parameter_dict(const onepass_parameter_info *info) {
    return Py_BuildValue("{s:s,s:s,s:d,s:d,s:d,s:N,s:N}", "name", info->name, "meaning", info->meaning, "default",
                         info->default_value, "minimum", info->minimum, "maximum", info->maximum, "minimum_excluded",
                         PyBool_FromLong(info->minimum_excluded), "maximum_excluded",
                         PyBool_FromLong(info->maximum_excluded));
}

static PyObject *operand_names(const onepass_loss_info *info) {
    PyObject *names = PyList_New(0);
    for (int32_t k = 0; names && k < info->operand_count; k++) {
        PyObject *one = PyUnicode_FromString(info->operand[k]);
        if (!one || PyList_Append(names, one) != 0)
            Py_CLEAR(names);
        Py_XDECREF(one);
    }
    return names;
}

static PyObject *loss_dict(const onepass_loss_info *info) {
    PyObject *parameters = PyList_New(0), *operands = operand_names(info);
    for (int32_t i = 0; parameters && i < info->parameter_count; i++) {
        PyObject *one = parameter_dict(&info->parameter[i]);
        if (!one || PyList_Append(parameters, one) != 0)
            Py_CLEAR(parameters);
        Py_XDECREF(one);
    }
    if (!parameters || !operands) {
        Py_XDECREF(parameters);
        Py_XDECREF(operands);
        return NULL;
    }
    return Py_BuildValue("{s:s,s:s,s:s,s:s,s:N,s:N}", "name", info->name, "meaning", info->meaning, "value",
                         info->value, "slope", info->slope, "operands", operands, "parameters", parameters);
}

static PyObject *list_of(const onepass_loss_info *(*loss_at)(int32_t index)) {
    PyObject *list = PyList_New(0);
    for (int32_t i = 0; list && loss_at(i); i++) {
        PyObject *one = loss_dict(loss_at(i));
        if (!one || PyList_Append(list, one) != 0)
            Py_CLEAR(list);
        Py_XDECREF(one);
    }
    return list;
}

static PyObject *native_losses(PyObject *module, PyObject *none) {
    (void)module;
    (void)none;
    return list_of(onepass_loss_at);
}

static PyObject *native_row_losses(PyObject *module, PyObject *none) {
    (void)module;
    (void)none;
    return list_of(onepass_row_loss_at);
}

static PyObject *native_vector_losses(PyObject *module, PyObject *none) {
    (void)module;
    (void)none;
    return list_of(onepass_vector_loss_at);
}

static PyObject *native_machine(PyObject *module, PyObject *none) {
    (void)module;
    (void)none;
    onepass_machine_info info = {.size = sizeof info};
    if (onepass_machine(&info) != ONEPASS_OK) {
        PyErr_SetString(PyExc_RuntimeError, onepass_message());
        return NULL;
    }
    return Py_BuildValue("{s:s,s:s,s:i,s:i,s:s,s:s,s:i,s:i}", "instruction_set", info.instruction_set,
                         "instruction_sets", info.instruction_sets, "threads", (int)info.threads, "gpu_count",
                         (int)info.gpu_count, "gpu_reason", info.gpu_reason, "gpu_names", info.gpu_names, "gpu_driver",
                         (int)info.gpu_driver, "gpu_toolkit", (int)info.gpu_toolkit);
}

#define FAST(name)                                                                                                     \
    { #name, (PyCFunction)(void (*)(void))native_##name, METH_FASTCALL, NULL }

static PyMethodDef methods[] = {
    FAST(torch_loss),
    FAST(torch_gradient),
    FAST(torch_scale),
    FAST(numpy_run),
    FAST(torch_rows),
    FAST(torch_rows_gradient),
    {"torch_is_one", native_torch_is_one, METH_O, NULL},
    FAST(torch_shard),
    FAST(accumulator_begin),
    FAST(accumulator_add),
    FAST(accumulator_merge),
    FAST(accumulator_finish),
    {"accumulator_describe", native_accumulator_describe, METH_O, NULL},
    {"accumulator_export", native_accumulator_export, METH_O, NULL},
    {"accumulator_import", native_accumulator_import, METH_O, NULL},
    {"learn_torch", native_learn_torch, METH_O, "Tells the module of PyTorch, once."},
    {"use_exchange_api", native_use_exchange_api, METH_O, "Whether DLPack's exchange API may be used; what it was."},
    {"losses", native_losses, METH_NOARGS, NULL},
    {"row_losses", native_row_losses, METH_NOARGS, NULL},
    {"vector_losses", native_vector_losses, METH_NOARGS, NULL},
    {"machine", native_machine, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static int fill(PyObject *module) {
    return PyModule_AddStringConstant(module, "version", onepass_version_text());
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, fill}, {0, NULL}};

static PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "onepass._native",
                                 .m_doc = "The C library onepass, for the Python files beside it.",
                                 .m_methods = methods, .m_slots = slots};

PyMODINIT_FUNC PyInit__native(void);
PyMODINIT_FUNC PyInit__native(void) {
    return PyModuleDef_Init(&definition);
}
