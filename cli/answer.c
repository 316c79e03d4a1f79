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

static void print_value(const task *task) {
    char digits[64], bits[32];
    if (task->call.reduction == ONEPASS_NONE) {
        printf(", \"value\": null, \"bits\": null");
        return;
    }
    number_digits(&task->value, digits, sizeof digits);
    number_hex(&task->value, bits, sizeof bits);
    const char *quote = isfinite(number_value(&task->value)) ? "" : "\"";
    printf(", \"value\": %s%s%s, \"bits\": \"%s\"", quote, digits, quote, bits);
}

static void print_parameters(const onepass_loss_info *loss, const onepass_call *call) {
    printf(", \"parameters\": {");
    for (int32_t i = 0; i < loss->parameter_count; i++) {
        printf("%s\"%s\": ", i ? ", " : "", loss->parameter[i].name);
        json_write_number(stdout, call->parameter[i]);
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
    print_parameters(loss, &task->call);
    printf(", \"reduction\": \"%s\"", reduction_name(task->call.reduction));
    print_value(task);
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

int print_answer(const task *task, const onepass_loss_info *loss, const loss_options *options, double seconds) {
    char text[64];
    if (options->as_json) {
        print_json(task, loss, options, seconds);
    } else if (task->call.reduction != ONEPASS_NONE) {
        if (options->as_hex)
            number_hex(&task->value, text, sizeof text);
        else
            number_digits(&task->value, text, sizeof text);
        puts(text);
    }
    return close_output();
}
