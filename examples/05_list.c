/*
 * 05: what there is.
 *
 * Lists the losses with their operands, formulas and parameters, and says what this machine has.
 */
#include <stdio.h>

#include <onepass.h>

static void print_loss(const onepass_loss_info *loss) {
    printf("%s of %s", loss->name, loss->operand[0]);
    for (int32_t k = 1; k < loss->operand_count; k++)
        printf(", %s", loss->operand[k]);
    printf(": %s\n    value  %s\n    slope  %s\n", loss->meaning, loss->value, loss->slope);
    for (int32_t k = 0; k < loss->parameter_count; k++) {
        const onepass_parameter_info *parameter = &loss->parameter[k];
        printf("    %-6s %s; %s %g, %s %g, %g if not given\n", parameter->name, parameter->meaning,
               parameter->minimum_excluded ? "above" : "from", parameter->minimum,
               parameter->maximum_excluded ? "below" : "up to", parameter->maximum, parameter->default_value);
    }
}

int main(void) {
    onepass_machine_info machine = {.size = sizeof machine};
    if (onepass_machine(&machine) != ONEPASS_OK) {
        fprintf(stderr, "%s\n", onepass_message());
        return 1;
    }
    printf("onepass %s uses %s (of: %s) and %d threads\n", onepass_version_text(), machine.instruction_set,
           machine.instruction_sets, (int)machine.threads);
    if (machine.gpu_count > 0)
        printf("GPUs: %d\n\n", (int)machine.gpu_count);
    else
        printf("no GPU: %s\n\n", machine.gpu_reason);

    const onepass_loss_info *loss;
    for (int32_t i = 0; (loss = onepass_loss_at(i)); i++)
        print_loss(loss);
    printf("\nOver rows, with z a row of the input and y its class index:\n\n");
    for (int32_t i = 0; (loss = onepass_row_loss_at(i)); i++)
        print_loss(loss);
    printf("\nOf vectors, with sums over their elements:\n\n");
    for (int32_t i = 0; (loss = onepass_vector_loss_at(i)); i++)
        print_loss(loss);
    printf("\nThat is all.\n");
    return 0;
}
