/*
 * How many threads there can be. OpenMP's runtimes end the program when they cannot have a thread that they are asked
 * for, so they are asked for none that they cannot have.
 */
#ifndef ONEPASS_CPU_THREADS_H
#define ONEPASS_CPU_THREADS_H

#include "engine.h"

/* What a large call uses if it does not say: as many as OpenMP is set to, ... */
ONEPASS_INTERNAL int onepass_cpu_wished_threads(void);

/* ... but no more than there are cores. */
ONEPASS_INTERNAL int onepass_cpu_default_threads(void);

/* How many of so many the calling thread's next parallel region can have, itself included. */
ONEPASS_INTERNAL int onepass_cpu_possible_threads(int64_t wanted);

/* Tests set this to have more threads than there are cores; 0: as many as there are. */
ONEPASS_INTERNAL extern int32_t onepass_cpu_cores;

#endif
