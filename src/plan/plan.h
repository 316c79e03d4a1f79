/*
 * From a call to a job: every argument is checked before anything is computed, so that an engine never meets bad input.
 * A file a family. Depends on call.h and tensor.h.
 */
#ifndef ONEPASS_PLAN_H
#define ONEPASS_PLAN_H

#include "engine.h"

/* A call that was read. `job` is complete only if the status is ONEPASS_OK. */
ONEPASS_INTERNAL onepass_status onepass_plan(const onepass_call *call, job *job);

/* The same for a call of onepass_scale. */
ONEPASS_INTERNAL onepass_status onepass_plan_scale(const onepass_call *call, job *job);

#endif
