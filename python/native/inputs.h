/* What calls over rows and of vectors have in common: the tensors that go in, and the gradients that come out. */
#ifndef ONEPASS_NATIVE_INPUTS_H
#define ONEPASS_NATIVE_INPUTS_H

#include "native.h"

/* The inputs of a call over rows or of vectors, which come after the question and the axis: operands first. */
enum {
    WEIGHT = 3, /* of the rows, as the mask is */
    MASK,
    DIVISOR,
    GIVEN,
    IN_SINGLE = -1 /* for a value's type: at least f32, as autocast wants it */
};

typedef struct inputs {
    PyObject *object[GIVEN];
    borrowed at[GIVEN];
    bool has[GIVEN];
} inputs;

/* `arguments` begin with the axis; `operands` says how each of them is borrowed, `names` what messages call all that is
 * given. OTHERWISE if one is not for us. */
outcome native_borrow_inputs(PyObject *const *arguments, torch_borrower *const *operands, const char *const *names,
                             inputs *all, onepass_call *call);
outcome native_place_inputs(const inputs *all, onepass_call *call);

/* Of a value: asked for, or the common one of the first operands, as many as have a say, and the rows' weights. */
int32_t native_value_type(const inputs *all, int deciding, long asked);

/* A gradient for an operand, made for it. */
PyObject *native_make_gradient(const inputs *all, int k, borrowed *into);

/* The gradients of a tuple: to be made (True), not asked for (None), the operand itself, which they lie over, or there:
 * then the call has ONEPASS_SKIP_IF_UPSTREAM_IS_ONE. False with an exception. */
bool native_find_gradients(const inputs *all, PyObject *tuple, int count, borrowed *gradient, PyObject **made,
                           onepass_call *call);

/* Elements that take a microsecond or two. */
bool native_has_few(int64_t rows, int64_t elements);

#endif
