/* What stands beside every figure: the machine's name, its cores and the compiler. */
#ifndef ONEPASS_BENCH_MACHINE_H
#define ONEPASS_BENCH_MACHINE_H

#include <stddef.h>

/* The processor as people call it: "Neoverse-N1", "Intel Xeon Platinum 8488C". */
void processor_name(char *name, size_t size);

/* The same for a file name: lower case, hyphens. */
void processor_file_name(char *name, size_t size);

int cores_online(void);
const char *compiler_name(void);

#endif
