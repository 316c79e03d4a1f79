/* Prints the instruction sets that this build and this machine have, in one line: each is a value of ONEPASS_ISA. */
#include <onepass.h>

#include <stdio.h>

int main(void) {
    onepass_machine_info info = {.size = sizeof info};
    if (onepass_machine(&info) != ONEPASS_OK) {
        fprintf(stderr, "%s\n", onepass_message());
        return 1;
    }
    printf("%s\n", info.instruction_sets);
    return 0;
}
