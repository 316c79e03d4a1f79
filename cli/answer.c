#include "answer.h"
#include "json_write.h"
#include "operands.h"
#include "option_values.h"

#include <math.h>
#include <stdio.h>

static void print_file(const char *key, const char *path) {
    printf("\"%s\": ", key);
    if (path)
        json_write_string(stdout, path);
    else
        printf("null");
}

/* Null: there is none. */
static void print_value(const number *value) {
    char digits[64], bits[32];
    if (!value) {
        printf(", \"value\": null, \"bits\": null");
        return;
    }
    number_digits(value, digits, sizeof digits);
    number_hex(value, bits, sizeof bits);
    const char *quote = isfinite(number_value(value)) ? "" : "\"";
    printf(", \"value\": %s%s%s, \"bits\": \"%s\"", quote, digits, quote, bits);
}

static void print_parameters(const onepass_loss_info *loss, const double *parameter) {
    printf(", \"parameters\": {");
    for (int32_t i = 0; i < loss->parameter_count; i++) {
        printf("%s\"%s\": ", i ? ", " : "", loss->parameter[i].name);
        json_write_number(stdout, parameter[i]);
    }
    printf("}");
}

/* By the operands' names. */
static void print_gradients(const onepass_loss_info *loss, const loss_options *options) {
    printf(", \"gradients\": {");
    for (int32_t k = 0; k < loss->operand_count; k++) {
        if (!has_gradient(loss, k))
            continue;
        if (k > 0)
            printf(", ");
        print_file(loss->operand[k], options->gradient[k]);
    }
    printf("}");
}

/* What only a loss over rows, or of vectors, has. */
static void print_rows(const task *task, const loss_options *options) {
    if (count_vectors(task->loss) > 0)
        printf(", \"length\": %lld", (long long)task->classes);
    if (!has_classes(task->loss))
        return;
    printf(", \"classes\": %lld, ", (long long)task->classes);
    print_file("lse", options->log_sum_exp);
    printf(", ");
    print_file("predicted", options->predicted);
}

static void print_json(const task *task, const onepass_loss_info *loss, const loss_options *options, double seconds) {
    printf("{\"loss\": \"%s\"", loss->name);
    print_parameters(loss, task->call.parameter);
    printf(", \"reduction\": \"%s\"", reduction_name(task->call.reduction));
    print_value(task->call.reduction == ONEPASS_NONE ? NULL : &task->value);
    printf(", \"type\": \"%s\", \"shape\": [", dtype_name(task->value_dtype));
    for (int32_t d = 0; d < task->common.ndim; d++)
        printf("%s%lld", d ? ", " : "", (long long)task->common.extent[d]);
    printf("], \"elements\": %lld", (long long)task->common.count);
    if (task->call.device == ONEPASS_CUDA)
        printf(", \"device\": \"cuda:%d\"", task->call.device_index);
    else
        printf(", \"device\": \"cpu\"");
    printf(", \"threads\": %d, \"seconds\": %.6g, \"bytes\": %llu", task_threads(task), seconds,
           (unsigned long long)task->bytes);
    printf(", ");
    print_file("grad", options->gradient[0]);
    printf(", ");
    print_file("none", options->losses);
    print_gradients(loss, options);
    print_rows(task, options);
    puts("}");
}

static void print_number(const number *value, bool as_hex) {
    char text[64];
    if (as_hex)
        number_hex(value, text, sizeof text);
    else
        number_digits(value, text, sizeof text);
    puts(text);
}

int print_answer(const task *task, const onepass_loss_info *loss, const loss_options *options, double seconds) {
    if (options->as_json)
        print_json(task, loss, options, seconds);
    else if (task->call.reduction != ONEPASS_NONE)
        print_number(&task->value, options->as_hex);
    return close_output();
}

int print_merged(const onepass_accumulator_info *whole, const number *value, int parts, bool as_hex, bool as_json) {
    if (!as_json) {
        print_number(value, as_hex);
        return close_output();
    }
    printf("{\"loss\": \"%s\"", whole->loss);
    print_parameters(onepass_loss_named(whole->loss), whole->parameter);
    printf(", \"reduction\": \"%s\"", reduction_name(whole->reduction));
    if (whole->divisor != 0) /* a batchmean's parts are those of a mean over the batch's size */
        printf(", \"divisor\": %.17g", whole->divisor);
    print_value(value);
    printf(", \"type\": \"%s\", \"elements\": %lld, \"parts\": %d}\n", dtype_name(value->dtype),
           (long long)whole->total, parts);
    return close_output();
}
