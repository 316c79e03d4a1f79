/* What the parsers of all formats share: types, shapes and sentences. */
#include "layout.h"

#include <stdarg.h>
#include <stdio.h>

const char *dtype_name(int32_t dtype) {
    switch (dtype) {
    case ONEPASS_F16:
        return "f16";
    case ONEPASS_BF16:
        return "bf16";
    case ONEPASS_F32:
        return "f32";
    case ONEPASS_F64:
        return "f64";
    case ONEPASS_BOOL:
        return "bool";
    case ONEPASS_I64:
        return "i64";
    case ONEPASS_I32:
        return "i32";
    case ONEPASS_U8:
        return "u8";
    }
    return "?";
}

bool suits(int32_t dtype, purpose purpose) {
    switch (purpose) {
    case FOR_MASK:
        return dtype == ONEPASS_BOOL;
    case FOR_LABELS:
        return dtype == ONEPASS_I64 || dtype == ONEPASS_I32 || dtype == ONEPASS_U8;
    case FOR_ANY_NUMBERS:
        return suits(dtype, FOR_NUMBERS) || suits(dtype, FOR_LABELS);
    default:
        return dtype >= ONEPASS_F16 && dtype <= ONEPASS_F64;
    }
}

bool machine_is_big_endian(void) {
    return __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
}

void write_shape(char *text, size_t size, int32_t ndim, const int64_t *shape) {
    size_t used = (size_t)snprintf(text, size, "(");
    for (int32_t d = 0; d < ndim && used < size; d++)
        used += (size_t)snprintf(text + used, size - used, "%s%lld", d > 0 ? ", " : "", (long long)shape[d]);
    if (used < size)
        snprintf(text + used, size - used, ndim == 1 ? ",)" : ")");
}

bool fail(problem *problem, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(problem->text, sizeof problem->text, format, arguments);
    va_end(arguments);
    return false;
}

bool fail_expected(problem *problem, const char *expected, const unsigned char *text, size_t size, size_t at,
                   size_t origin) {
    const unsigned long long place = (unsigned long long)origin + at;
    if (at >= size)
        return fail(problem, "expected %s at byte %llu, where it ends", expected, place);
    if (text[at] == '\n')
        return fail(problem, "expected %s at byte %llu, not the end of a line", expected, place);
    if (text[at] < ' ' || text[at] > '~')
        return fail(problem, "expected %s at byte %llu, not the byte 0x%02x", expected, place, text[at]);
    return fail(problem, "expected %s at byte %llu, not '%c'", expected, place, text[at]);
}

onepass_tensor layout_tensor(const layout *layout) {
    return (onepass_tensor){
        .dtype = layout->dtype, .ndim = layout->ndim, .shape = layout->shape, .strides = layout->stride};
}

bool count_elements(layout *layout, problem *problem) {
    char text[256];
    onepass_shape shape = ONEPASS_SHAPE_INIT;
    const onepass_tensor tensor = layout_tensor(layout);
    const int64_t size = (int64_t)onepass_dtype_size(layout->dtype);
    int64_t bytes;
    write_shape(text, sizeof text, layout->ndim, layout->shape);
    for (int32_t d = 0; d < layout->ndim; d++)
        if (layout->shape[d] < 0)
            return fail(problem, "its shape %s has a negative extent", text);
    if (onepass_broadcast(&shape, &tensor) != ONEPASS_OK || __builtin_mul_overflow(shape.count, size, &bytes))
        return fail(problem, "its shape %s of %s is absurd: the number of bytes does not fit into 63 bits", text,
                    dtype_name(layout->dtype));
    layout->count = shape.count;
    return true;
}

void fill_strides(layout *layout, bool fortran) {
    int64_t stride = layout->count > 0 ? 1 : 0;
    for (int32_t i = 0; i < layout->ndim; i++) {
        const int32_t d = fortran ? i : layout->ndim - 1 - i;
        layout->stride[d] = stride;
        stride *= layout->count > 0 ? layout->shape[d] : 0;
    }
}
