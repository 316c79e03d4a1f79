/*
 * A loss over rows whose classes are shared out: which of them a call has, what it does of the whole, and the numbers
 * that travel from one call to the next.
 */
#include "message.h"
#include "order.h"
#include "plan/tensors.h"

static int64_t tiles_of(int64_t classes) {
    return classes / ORDER_TILE + (classes % ORDER_TILE != 0);
}

static shard_step step_of(const onepass_call *call) {
    bool gradient = false;
    for (int32_t k = 0; k < ONEPASS_MAX_OPERANDS; k++)
        gradient |= call->gradient[k] != NULL;
    return call->value ? SHARD_VALUE : gradient ? SHARD_SLOPES : SHARD_SUMS;
}

static onepass_status check_unset(const onepass_call *call) {
    const char *name = call->first_class   ? "first_class"
                       : call->tile_sums   ? "tile_sums"
                       : call->label_logit ? "label_logit"
                                           : NULL;
    if (name)
        FAIL_ARGUMENT("%s is set, but all_classes is 0; expected the number of all classes, or neither", name);
    return ONEPASS_OK;
}

/* Sums are of whole tiles. A gradient may be of a part of one, whose largest logit may then be elsewhere. */
static onepass_status check_tiles(const onepass_call *call, const row_shard *shard, int64_t classes) {
    const int64_t first = shard->first_class, end = first + classes;
    const bool whole = classes > 0 && first % ORDER_TILE == 0 && (end % ORDER_TILE == 0 || end == shard->all_classes);
    if (shard->step == SHARD_SUMS && !whole)
        FAIL_SHAPE("the input has %lld classes of %lld, from %lld on; expected whole tiles, from a multiple of %d to "
                   "another or to the last class",
                   (long long)classes, (long long)shard->all_classes, (long long)first, ORDER_TILE);
    if (shard->step == SHARD_SLOPES && first % ORDER_TILE != 0 && first % ORDER_TILE + classes > ORDER_TILE)
        FAIL_SHAPE("the input has %lld classes from %lld on; expected some that begin with a tile, at a multiple of "
                   "%d, or are within one",
                   (long long)classes, (long long)first, ORDER_TILE);
    if (shard->step == SHARD_SLOPES && classes > 0 && !whole && !call->tile_sums)
        FAIL_ARGUMENT("tile_sums is null, but the input has %lld classes of %lld, from %lld on, which are not whole "
                      "tiles; expected the sums of the tiles that they are of",
                      (long long)classes, (long long)shard->all_classes, (long long)first);
    return ONEPASS_OK;
}

onepass_status onepass_plan_shard(const onepass_call *call, job *job) {
    row_shard *shard = &job->rows.shard;
    const int64_t classes = job->rows.classes;
    *shard = (row_shard){.step = SHARD_NONE, .all_classes = classes};
    if (call->all_classes == 0)
        return check_unset(call);
    if (job->loss->kind != ROW_LABEL)
        return onepass_fail(ONEPASS_NOT_SUPPORTED,
                            "all_classes is set; classes of %s cannot be shared out, so it must be 0", call->loss);
    if (call->predicted)
        return onepass_fail(ONEPASS_NOT_SUPPORTED, "predicted is set, but the classes are shared out; expected null");
    if (call->first_class < 0 || call->all_classes < 0 || call->first_class > call->all_classes - classes)
        FAIL_SHAPE("first_class is %lld and the input has %lld classes; expected them within all_classes, which is "
                   "%lld",
                   (long long)call->first_class, (long long)classes, (long long)call->all_classes);
    shard->step = step_of(call);
    shard->first_class = call->first_class;
    shard->all_classes = call->all_classes;
    shard->sums_of_tile = job->rows.smoothing != 0 ? ONEPASS_SMOOTH_TILE_SUMS : ONEPASS_TILE_SUMS;
    if (shard->step == SHARD_VALUE && (classes || call->first_class))
        FAIL_SHAPE("value is set, and the input has %lld classes from %lld on; expected none from 0 on, since a value "
                   "comes of tile_sums",
                   (long long)classes, (long long)call->first_class);
    return check_tiles(call, shard, classes);
}

/* Doubles, those of the last dimension side by side. */
static onepass_status plan_numbers(const onepass_tensor *given, const char *name, const onepass_shape *expected,
                                   tensor *tensor) {
    if (!given)
        FAIL_ARGUMENT("%s is null, but all_classes is set; expected a tensor", name);
    OK(onepass_read_tensor(given, name, tensor));
    if (tensor->dtype != ONEPASS_F64 || !onepass_same_shape(&tensor->shape, expected))
        return onepass_fail_rows(tensor, expected, "of type f64, it has");
    const int32_t last = expected->ndim - 1;
    if (tensor->shape.count > 0 && tensor->shape.extent[last] > 1 && tensor->stride[last] != 1)
        FAIL_MEMORY("%s has a last stride of %lld; expected 1", name, (long long)tensor->stride[last]);
    return onepass_check_output(tensor);
}

onepass_status onepass_plan_shard_numbers(const onepass_call *call, tensors *all, job *job) {
    row_shard *shard = &job->rows.shard;
    if (shard->step == SHARD_NONE)
        return ONEPASS_OK;
    if (shard->step == SHARD_VALUE && (call->gradient[0] || call->gradient[1]))
        FAIL_ARGUMENT("value and a gradient are set, but the classes are shared out; expected one of them");
    if (shard->step == SHARD_SUMS && call->row_state)
        FAIL_ARGUMENT("row_state is set, but neither a value nor a gradient is; expected null for sums of tiles");
    if (shard->step == SHARD_SLOPES && !call->row_state)
        FAIL_ARGUMENT("row_state is null, but a gradient is set and the classes are shared out; expected a tensor");
    const int64_t classes = shard->step == SHARD_VALUE ? shard->all_classes : job->rows.classes;
    const onepass_shape tiles = {3, {all->common.count, shard->sums_of_tile, tiles_of(classes)}, 0};
    const onepass_shape labels = {1, {all->common.count}, 0};
    if (shard->step != SHARD_SLOPES || call->tile_sums) {
        OK(plan_numbers(call->tile_sums, "tile_sums", &tiles, &all->tile_sums));
        shard->tile_sums = all->tile_sums.data;
        shard->row_step = all->tile_sums.stride[0];
        shard->sum_step = all->tile_sums.stride[1];
    }
    OK(plan_numbers(call->label_logit, "label_logit", &labels, &all->label_logit));
    shard->label_logit = all->label_logit.data;
    if (shard->step == SHARD_SUMS)
        job->reduction = ONEPASS_SUM; /* of which there is nothing: no divisor is asked for */
    return ONEPASS_OK;
}
