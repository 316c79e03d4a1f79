/* onepass info: this machine, as the library sees it. */
#include "json_write.h"
#include "machine.h"
#include "tool.h"

#include <stdio.h>
#include <string.h>

static void write_version(char *text, size_t size, int32_t version) {
    if (version > 0)
        snprintf(text, size, "%d.%d", version / 1000, version % 1000 / 10);
    else
        snprintf(text, size, "-");
}

static void print_as_json(const onepass_machine_info *machine, const char *processor, const char *driver,
                          const char *toolkit) {
    printf("{\"version\": \"%s\", \"cpu\": ", onepass_version_text());
    json_write_string(stdout, processor);
    printf(", \"cores\": %d, \"threads\": %d, \"instruction_set\": \"%s\", \"instruction_sets\": \"%s\"",
           cores_online(), machine->threads, machine->instruction_set, machine->instruction_sets);
    printf(", \"gpus\": %d, \"gpu_names\": ", machine->gpu_count);
    json_write_string(stdout, machine->gpu_names);
    printf(", \"gpu_reason\": ");
    json_write_string(stdout, machine->gpu_reason);
    printf(", \"driver_cuda\": \"%s\", \"kernels_cuda\": \"%s\"}\n", driver, toolkit);
}

static void print_as_text(const onepass_machine_info *machine, const char *processor, const char *driver,
                          const char *toolkit) {
    printf("onepass          %s\n", onepass_version_text());
    printf("CPU              %s, %d core%s\n", processor, cores_online(), cores_online() == 1 ? "" : "s");
    printf("threads          %d\n", machine->threads);
    printf("instruction set  %s (here are: %s)\n", machine->instruction_set, machine->instruction_sets);
    if (machine->gpu_count > 0)
        printf("GPU              %s\n", machine->gpu_names);
    else
        printf("GPU              none: %s\n", machine->gpu_reason);
    printf("CUDA             %s%s, %s%s\n", machine->gpu_driver > 0 ? driver : "no driver",
           machine->gpu_driver > 0 ? " (the driver)" : "",
           machine->gpu_toolkit > 0 ? toolkit : "no kernels in this build",
           machine->gpu_toolkit > 0 ? " (the kernels)" : "");
}

int info_command(int argc, char **argv) {
    char processor[128], driver[32], toolkit[32];
    onepass_machine_info machine = {.size = sizeof machine};
    const bool as_json = argc == 2 && strcmp(argv[1], "--json") == 0;
    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        puts("usage: onepass info [--json]\n\nThe CPU, its instruction sets and threads, the GPUs, and the driver, or "
             "why "
             "there is none.\nThe environment variable ONEPASS_ISA forces an instruction set by its name.");
        return close_output();
    }
    if (argc > 1 && !as_json)
        return complain(WRONG, "%s: onepass info takes --json and nothing else",
                        argv[argc > 2 && strcmp(argv[1], "--json") == 0 ? 2 : 1]);
    const onepass_status status = onepass_machine(&machine);
    if (status != ONEPASS_OK)
        return complain_of_library(status);
    processor_name(processor, sizeof processor);
    write_version(driver, sizeof driver, machine.gpu_driver);
    write_version(toolkit, sizeof toolkit, machine.gpu_toolkit);
    (as_json ? print_as_json : print_as_text)(&machine, processor, driver, toolkit);
    return close_output();
}
