/*
 * The switch: what the calling convention keeps across a call goes onto the old
 * stack, the stack pointers change places, and the same comes off the new one.
 * The floating-point control registers are the same for all and stay. On other
 * processors ucontext does it, with a system call each time.
 */
#define _GNU_SOURCE
#include "fiber.h"

#include <stdint.h>
#include <string.h>

#if defined(FIBER_ADDRESS_SANITIZER)
#include <sanitizer/common_interface_defs.h>
#endif

/* The running fiber, for the first steps of a new one. */
static fiber *running;
#if defined(FIBER_ADDRESS_SANITIZER)
static fiber *previous;
#endif

/* The sanitizer keeps a shadow of the stack that is in use, so it must know of a change. */
static void announce(fiber *from, fiber *to) {
#if defined(FIBER_ADDRESS_SANITIZER)
    previous = from;
    __sanitizer_start_switch_fiber(&from->fake_stack, to->bounds, to->bounds_size);
#else
    (void)from;
#endif
    running = to;
}

static void arrive(fiber *here) {
#if defined(FIBER_ADDRESS_SANITIZER)
    __sanitizer_finish_switch_fiber(here->fake_stack, &previous->bounds, &previous->bounds_size);
#else
    (void)here;
#endif
}

static void begin(void) {
    arrive(running);
    running->entry();
    __builtin_trap(); /* a fiber's entry does not return */
}

#if defined(FIBER_OWN_SWITCH)

void onepass_fiber_swap(void **save, void *load);

#if defined(__x86_64__)
__asm__(".text\n"
        ".globl onepass_fiber_swap\n"
        ".type onepass_fiber_swap, @function\n"
        "onepass_fiber_swap:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size onepass_fiber_swap, .-onepass_fiber_swap\n");

/* Six registers, the address to return to, and one more word: a function expects
 * its stack pointer 8 below a multiple of 16. */
enum {
    SAVED_WORDS = 8,
    RETURN_WORD = 6
};
#else
__asm__(".text\n"
        ".globl onepass_fiber_swap\n"
        ".type onepass_fiber_swap, %function\n"
        "onepass_fiber_swap:\n"
        "    sub sp, sp, #160\n"
        "    stp x19, x20, [sp, #0]\n"
        "    stp x21, x22, [sp, #16]\n"
        "    stp x23, x24, [sp, #32]\n"
        "    stp x25, x26, [sp, #48]\n"
        "    stp x27, x28, [sp, #64]\n"
        "    stp x29, x30, [sp, #80]\n"
        "    stp d8, d9, [sp, #96]\n"
        "    stp d10, d11, [sp, #112]\n"
        "    stp d12, d13, [sp, #128]\n"
        "    stp d14, d15, [sp, #144]\n"
        "    mov x9, sp\n"
        "    str x9, [x0]\n"
        "    mov sp, x1\n"
        "    ldp x19, x20, [sp, #0]\n"
        "    ldp x21, x22, [sp, #16]\n"
        "    ldp x23, x24, [sp, #32]\n"
        "    ldp x25, x26, [sp, #48]\n"
        "    ldp x27, x28, [sp, #64]\n"
        "    ldp x29, x30, [sp, #80]\n"
        "    ldp d8, d9, [sp, #96]\n"
        "    ldp d10, d11, [sp, #112]\n"
        "    ldp d12, d13, [sp, #128]\n"
        "    ldp d14, d15, [sp, #144]\n"
        "    add sp, sp, #160\n"
        "    ret\n"
        ".size onepass_fiber_swap, .-onepass_fiber_swap\n");

enum {
    SAVED_WORDS = 20,
    RETURN_WORD = 11
};
#endif

static void prepare(fiber *fiber) {
    const uintptr_t top = ((uintptr_t)fiber->stack + fiber->size) & ~(uintptr_t)15;
    uintptr_t *saved = (uintptr_t *)top - SAVED_WORDS;
    memset(saved, 0, SAVED_WORDS * sizeof *saved);
    saved[RETURN_WORD] = (uintptr_t)begin;
    fiber->stack_pointer = saved;
}

static void swap(fiber *from, fiber *to) {
    onepass_fiber_swap(&from->stack_pointer, to->stack_pointer);
}

#else

static void prepare(fiber *fiber) {
    getcontext(&fiber->context);
    fiber->context.uc_stack.ss_sp = fiber->stack;
    fiber->context.uc_stack.ss_size = fiber->size;
    fiber->context.uc_link = NULL;
    makecontext(&fiber->context, begin, 0);
}

static void swap(fiber *from, fiber *to) {
    swapcontext(&from->context, &to->context);
}

#endif

void fiber_make(fiber *fiber, void (*entry)(void), char *stack, size_t size) {
    memset(fiber, 0, sizeof *fiber);
    fiber->entry = entry;
    fiber->stack = stack;
    fiber->size = size;
#if defined(FIBER_ADDRESS_SANITIZER)
    fiber->bounds = stack;
    fiber->bounds_size = size;
#endif
    prepare(fiber);
}

void fiber_switch(fiber *from, fiber *to) {
    announce(from, to);
    swap(from, to);
    arrive(from);
}
