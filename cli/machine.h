/* The machine's name and its cores, for onepass info. */
#ifndef ONEPASS_CLI_MACHINE_H
#define ONEPASS_CLI_MACHINE_H

#include <stddef.h>

/* The processor as people call it: "Neoverse-N1", "Intel Xeon Platinum 8488C". */
void processor_name(char *name, size_t size);

int cores_online(void);

#endif
