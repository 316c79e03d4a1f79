/*
 * A call but for its tensors: its size, flags, loss, parameters, and the device. What is found goes into a job. Depends
 * on the catalogue and on messages.
 */
#ifndef ONEPASS_CALL_H
#define ONEPASS_CALL_H

#include "engine.h"

/* A caller's call, whose size may be another than ours. Nobody else looks at it. */
ONEPASS_INTERNAL onepass_status onepass_read_call(const onepass_call *given, onepass_call *call);

ONEPASS_INTERNAL onepass_status onepass_check_flags(const onepass_call *call);

/* Whether there can be such a device at all; that it is there is the engine's to say. */
ONEPASS_INTERNAL onepass_status onepass_check_device(int32_t device, int32_t device_index);

/* Where and how: device, threads, stream and workspace. */
ONEPASS_INTERNAL onepass_status onepass_plan_place(const onepass_call *call, job *job);

/* Loss, parameters, reduction and divisor, and the place. */
ONEPASS_INTERNAL onepass_status onepass_plan_loss(const onepass_call *call, job *job);

#endif
