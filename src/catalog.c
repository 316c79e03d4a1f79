/* The lists of losses: their descriptors, in the order of losses.def, row_losses.def and vector_losses.def. */
#include "engine.h"
#include "math/real.h"

#include <string.h>

#define LOSS(name, ...)        ONEPASS_INTERNAL extern const loss onepass_loss_##name;
#define ROW_LOSS(name, ...)    LOSS(name)
#define VECTOR_LOSS(name, ...) LOSS(name)
#include "losses.def"
#include "row_losses.def"
#include "vector_losses.def"
#undef LOSS
#undef ROW_LOSS
#undef VECTOR_LOSS

static const loss *const losses[] = {
#define LOSS(name, ...) &onepass_loss_##name,
#include "losses.def"
#undef LOSS
};

static const loss *const row_losses[] = {
#define ROW_LOSS(name, ...) &onepass_loss_##name,
#include "row_losses.def"
#undef ROW_LOSS
};

static const loss *const vector_losses[] = {
#define VECTOR_LOSS(name, ...) &onepass_loss_##name,
#include "vector_losses.def"
#undef VECTOR_LOSS
};

#define COUNT_OF(list) ((int32_t)(sizeof(list) / sizeof *(list)))

/* Every call comes here: most names differ in their first letter, which is asked without a call. */
static const loss *find(const loss *const *list, int32_t count, const char *name) {
    for (int32_t i = 0; i < count; i++)
        if (list[i]->info.name[0] == name[0] && strcmp(list[i]->info.name, name) == 0)
            return list[i];
    return NULL;
}

const loss *onepass_find_loss(const char *name) {
    if (!name)
        return NULL;
    const loss *loss = find(losses, COUNT_OF(losses), name);
    if (!loss)
        loss = find(row_losses, COUNT_OF(row_losses), name);
    return loss ? loss : find(vector_losses, COUNT_OF(vector_losses), name);
}

const onepass_loss_info *onepass_loss_at(int32_t index) {
    return index >= 0 && index < COUNT_OF(losses) ? &losses[index]->info : NULL;
}

const onepass_loss_info *onepass_row_loss_at(int32_t index) {
    return index >= 0 && index < COUNT_OF(row_losses) ? &row_losses[index]->info : NULL;
}

const onepass_loss_info *onepass_vector_loss_at(int32_t index) {
    return index >= 0 && index < COUNT_OF(vector_losses) ? &vector_losses[index]->info : NULL;
}

const onepass_loss_info *onepass_loss_named(const char *name) {
    const loss *loss = onepass_find_loss(name);
    return loss ? &loss->info : NULL;
}
