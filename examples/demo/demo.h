/* What the parts of the demo share. */
#ifndef ONEPASS_DEMO_H
#define ONEPASS_DEMO_H

#include <stdbool.h>
#include <stdint.h>

#include <onepass.h>

/* Every loss of the catalogue, the losses of each element by their formulas, those over rows and of vectors by the
 * tests' oracle, and its bits on every number of threads, by every route and on the GPU. True if all is right. */
bool check_elements(const onepass_machine_info *machine);
bool check_rows(const onepass_machine_info *machine);

/* A few losses, compared with loops that one would write by hand. True if all is right. */
bool show_speed(const onepass_machine_info *machine);

/* Ends the program, with the library's sentence, unless all is well. */
void must(onepass_status status);

void *allocate(int64_t count, size_t size);

/* One line that is overwritten, and only where somebody watches. */
void show_progress(const char *what);

#endif
