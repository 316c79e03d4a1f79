/* The list of losses: their descriptors, in the order of losses.def. */
#include "engine.h"
#include "math/real.h"

#include <string.h>

#define LOSS(name, ...) ONEPASS_INTERNAL extern const loss onepass_loss_##name;
#include "losses.def"
#undef LOSS

static const loss *const losses[] = {
#define LOSS(name, ...) &onepass_loss_##name,
#include "losses.def"
#undef LOSS
};

#define LOSS_COUNT ((int32_t)(sizeof losses / sizeof *losses))

/* Every call comes here: most names differ in their first letter, which is asked without a call. */
const loss *onepass_find_loss(const char *name) {
    for (int32_t i = 0; name && i < LOSS_COUNT; i++)
        if (losses[i]->info.name[0] == name[0] && strcmp(losses[i]->info.name, name) == 0)
            return losses[i];
    return NULL;
}

const onepass_loss_info *onepass_loss_at(int32_t index) {
    return index >= 0 && index < LOSS_COUNT ? &losses[index]->info : NULL;
}

const onepass_loss_info *onepass_loss_named(const char *name) {
    const loss *loss = onepass_find_loss(name);
    return loss ? &loss->info : NULL;
}
