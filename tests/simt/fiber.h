/*
 * Fibers: stacks of their own that hand the processor to each other by name. One
 * switch is a dozen instructions, since a test makes some hundred million of
 * them. A fiber never ends; who is not needed any more is not switched to.
 */
#ifndef ONEPASS_TESTS_SIMT_FIBER_H
#define ONEPASS_TESTS_SIMT_FIBER_H

#include <stddef.h>

#if defined(__SANITIZE_ADDRESS__)
#define FIBER_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FIBER_ADDRESS_SANITIZER 1
#endif
#endif

#if (defined(__x86_64__) && !defined(__ILP32__)) || defined(__aarch64__)
#define FIBER_OWN_SWITCH 1
#else
#include <ucontext.h>
#endif

typedef struct fiber {
#if defined(FIBER_OWN_SWITCH)
    void *stack_pointer;
#else
    ucontext_t context;
#endif
    void (*entry)(void);
    char *stack; /* its lowest byte; null: the stack that the program began with */
    size_t size;
#if defined(FIBER_ADDRESS_SANITIZER)
    void *fake_stack;
    const void *bounds; /* the whole stack, as the sanitizer wants to know it */
    size_t bounds_size;
#endif
} fiber;

/* A fiber that will begin with `entry`, which must not return, on this stack. */
void fiber_make(fiber *fiber, void (*entry)(void), char *stack, size_t size);

/* Goes on with `to`; returns when somebody switches back to `from`, which is the fiber that runs. */
void fiber_switch(fiber *from, fiber *to);

#endif
