/*
 * A program that loads the shared library, named as its argument, calls it with threads and lets it go again, three
 * times over. The OpenMP runtime that came with the library has threads then that sleep in its code.
 */
#define _GNU_SOURCE
#include "check.h"

#include <dlfcn.h>
#include <unistd.h>

enum {
    COUNT = 1 << 20, /* enough for several threads */
    WHILE = 20000,   /* microseconds, for the threads to look at what is left of their code */
};

int main(int argc, char **argv) {
    static float numbers[COUNT];
    for (int time = 0; time < 3 && argc > 1; time++) {
        void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        void *symbol = library ? dlsym(library, "onepass_mean_f32") : NULL;
        if (!CHECK(symbol, "%s: %s", argv[1], dlerror())) {
            break;
        }
        __typeof__(&onepass_mean_f32) mean;
        memcpy(&mean, &symbol, sizeof mean);
        float loss = -1;
        CHECK(mean("mse", COUNT, numbers, numbers, &loss, NULL) == ONEPASS_OK && loss == 0, "a loss of %g", loss);
        CHECK(dlclose(library) == 0, "%s", dlerror());
        usleep(WHILE);
    }
    return check_finish();
}
