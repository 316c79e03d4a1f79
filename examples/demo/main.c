/*
 * make demo: what this library does, on this machine, in half a minute. First that its results are right, for every
 * loss there is; then how fast it is. Ends with 1 if something is wrong.
 */
#define _POSIX_C_SOURCE 200809L
#include "demo.h"
#include "gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void must(onepass_status status) {
    if (status == ONEPASS_OK)
        return;
    fprintf(stderr, "%s: %s\n", onepass_status_name(status), onepass_message());
    exit(EXIT_FAILURE);
}

void *allocate(int64_t count, size_t size) {
    void *memory = calloc((size_t)count, size);
    if (memory)
        return memory;
    fprintf(stderr, "there is no memory for %lld numbers\n", (long long)count);
    exit(EXIT_FAILURE);
}

void show_progress(const char *what) {
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r\033[K%s", what);
}

int main(int argc, char **argv) {
    const bool quick = argc == 2 && !strcmp(argv[1], "--no-speed");
    if (argc > 1 && !quick) {
        fprintf(stderr, "usage: %s [--no-speed]\n", argv[0]);
        return EXIT_FAILURE;
    }
    onepass_machine_info machine = {.size = sizeof machine};
    must(onepass_machine(&machine));
    printf("onepass %s: loss functions and their gradients in one pass over memory.\n", onepass_version_text());
    printf("On this machine: %s instructions, %d thread%s; %s\n", machine.instruction_set, machine.threads,
           machine.threads == 1 ? "" : "s", machine.gpu_count > 0 ? machine.gpu_names : "no GPU");
    if (machine.gpu_count > 0)
        gpu_open();
    else
        printf("Why no GPU: %s.\n", machine.gpu_reason);
    printf(
        "\nIs it right? Every loss, its mean and the gradient of that. Errors are in units of a float's last digit:\n"
        "0.5 is what rounding to a float costs. \"Same bits\": forward alone, backward alone and both at once, on 1\n"
        "to %d threads%s.\n",
        machine.threads, machine.gpu_count > 0 ? ", and the same on the GPU" : "");
    bool right = check_elements(&machine);
    right = check_rows(&machine) && right;
    right = right && (quick || show_speed(&machine));
    printf("\n%s\n", right ? "Everything is right." : "SOMETHING IS WRONG: see above.");
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
