/* Functions that the library's files share with each other but not with users. */
#ifndef ONEPASS_INTERNAL_H
#define ONEPASS_INTERNAL_H

#define ONEPASS_INTERNAL __attribute__((visibility("hidden")))

#endif
