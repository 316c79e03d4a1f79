/* Reads /proc/cpuinfo, as lscpu does. Elsewhere the processor has uname's name. */
#define _POSIX_C_SOURCE 200809L
#include "machine.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

/* Arm processors give numbers only; these are the ones that one meets under Linux. */
static const struct {
    unsigned implementer, part;
    const char *name;
} arm_parts[] = {
    {0x41, 0xd03, "Cortex-A53"},  {0x41, 0xd05, "Cortex-A55"},  {0x41, 0xd08, "Cortex-A72"},
    {0x41, 0xd0b, "Cortex-A76"},  {0x41, 0xd0c, "Neoverse-N1"}, {0x41, 0xd40, "Neoverse-V1"},
    {0x41, 0xd49, "Neoverse-N2"}, {0x41, 0xd4a, "Neoverse-E1"}, {0x41, 0xd4f, "Neoverse-V2"},
    {0x41, 0xd84, "Neoverse-V3"}, {0x41, 0xd8e, "Neoverse-N3"}, {0x46, 0x001, "A64FX"},
    {0x48, 0xd01, "Kunpeng-920"}, {0x61, 0x022, "Apple M1"},    {0x61, 0x023, "Apple M1"},
    {0x61, 0x032, "Apple M2"},    {0x61, 0x033, "Apple M2"},    {0xc0, 0xac3, "Ampere-1"},
    {0xc0, 0xac4, "Ampere-1a"},
};

/* The text after the colon if the line's key is this one, else null. */
static char *value_of(char *line, const char *key) {
    char *colon = strchr(line, ':');
    if (strncmp(line, key, strlen(key)) || !colon)
        return NULL;
    colon[strcspn(colon, "\n")] = '\0';
    return colon + 1 + strspn(colon + 1, " \t");
}

/* Leaves out what is no part of a name: "(R)", "(TM)", "CPU", and the clock rate after an "@". */
static void tidy(char *name) {
    static const char *const noise[] = {"(R)", "(TM)", "(r)", "(tm)", " CPU", " Processor"};
    char *at = strstr(name, " @");
    if (at)
        *at = '\0';
    for (size_t i = 0; i < sizeof noise / sizeof *noise; i++)
        for (char *found; (found = strstr(name, noise[i]));)
            memmove(found, found + strlen(noise[i]), strlen(found + strlen(noise[i])) + 1);
}

void processor_name(char *name, size_t size) {
    char line[1024];
    unsigned implementer = 0, part = 0;
    bool named = false;
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (file && !named && fgets(line, sizeof line, file)) {
        char *value;
        if ((value = value_of(line, "model name"))) {
            snprintf(name, size, "%s", value);
            named = true;
        } else if ((value = value_of(line, "CPU implementer"))) {
            implementer = (unsigned)strtoul(value, NULL, 0);
        } else if ((value = value_of(line, "CPU part"))) {
            part = (unsigned)strtoul(value, NULL, 0);
        }
    }
    if (file)
        fclose(file);
    for (size_t i = 0; !named && i < sizeof arm_parts / sizeof *arm_parts; i++)
        if (arm_parts[i].implementer == implementer && arm_parts[i].part == part) {
            snprintf(name, size, "%s", arm_parts[i].name);
            named = true;
        }
    struct utsname system;
    if (!named && implementer)
        snprintf(name, size, "Arm %#x %#x", implementer, part);
    else if (!named)
        snprintf(name, size, "%s", uname(&system) < 0 ? "unknown" : system.machine);
    tidy(name);
}

int cores_online(void) {
    return (int)sysconf(_SC_NPROCESSORS_ONLN);
}
