/* What a part was computed from, for its file. */
#ifndef ONEPASS_CLI_ORIGIN_H
#define ONEPASS_CLI_ORIGIN_H

#include "pass.h"

/* Of the pass's part, which is open. False: it has complained. */
bool find_origin(pass *pass, part_origin *origin);

#endif
