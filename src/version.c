/* Which version this is. */
#include "onepass.h"

#define TEXT_OF(x) #x
#define TEXT(x)    TEXT_OF(x)

int onepass_version(void) {
    return ONEPASS_VERSION;
}

const char *onepass_version_text(void) {
    return TEXT(ONEPASS_VERSION_MAJOR) "." TEXT(ONEPASS_VERSION_MINOR) "." TEXT(ONEPASS_VERSION_PATCH);
}
