/*
 * The harness's scheduler. Lanes are bits: a warp is a few masks that say which
 * lanes can go on, wait at the block's barrier or have returned, and a thread
 * that must wait picks its successor and switches to it. The launching stack is
 * returned to only to begin, change or end a block.
 */
#define _GNU_SOURCE
#include "simt.h"
#include "fiber.h"

#include <link.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    LANES = 32,
    MOST_WARPS = SIMT_MOST_THREADS / LANES,
    MOST_RESIDENT = 3, /* but of clusters */
    MOST_CLUSTER = 8,
    STACK_SIZE = 65536,  /* kernels need some hundred bytes, printing a failure a few thousand */
    SHARED_POISON = 0xff /* NaN as float and as double, -1 as an integer */
};

typedef struct place {
    const char *file;
    int line;
} place;

typedef struct thread {
    fiber fiber;
    struct block *block;
    int index;
    place place;      /* where it waits */
    const char *what; /* at what */
    unsigned mask;    /* if that is an operation of the warp: whose */
    uint64_t value, result;
    int argument;
} thread;

/* Lanes that meet. Disjoint groups of lanes may be at different operations. */
typedef struct meeting {
    unsigned mask, arrived;
    simt_operation operation;
    int width;
    place place;
} meeting;

enum {
    MOST_MEETINGS = LANES
};

typedef struct warp {
    unsigned ready, at_barrier, returned;
    int meetings;
    meeting meeting[MOST_MEETINGS];
} warp;

typedef struct block {
    bool under_way;
    bool fresh; /* its shared memory is still to be poisoned */
    unsigned index;
    unsigned ready_warps; /* those with a lane that can go on */
    int alive, waiting;   /* threads that have not returned; of these, at the barrier */
    int in_vain;          /* looks for what another block of the cluster is to bring, since the last that found it */
    place barrier;
    warp *last_warp;
    unsigned slow_warp, slow_lane; /* bits of those that go on only if nobody else can */
    bool slow;                     /* the same of the block */
    warp warp[MOST_WARPS];
    thread *thread[SIMT_MOST_THREADS]; /* made when first needed, then used again and again */
    char *saved_shared;                /* while another block is being run */
    size_t saved_size;
} block;

simt_index threadIdx, blockIdx, blockDim, gridDim;
int simt_accesses_left = 1;

static block resident[MOST_CLUSTER];
static block *loaded; /* whose shared memory is in place */
static thread *current;
static fiber launcher;
static const simt_launch *launch;
static uint64_t random_state;

/* How this launch is scheduled; drawn from its seed. */
static unsigned chance_of_other_warp;  /* in 256, each time a thread waits */
static unsigned chance_of_other_block; /* in 65536 */
static bool some_are_slow;
static unsigned
    slow_lane_of_all; /* in clusters the same for ever, or 0: who waits for others meets its own warp rarely */

/* splitmix64, as in cases.c. */
static uint64_t draw(void) {
    uint64_t z = random_state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* -------------------------------------------------------------- failures -- */

static const char *file_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void tell(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void tell(const char *format, ...) {
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "simt: %s\n", text);
}

static void tell_launch(void) {
    if (launch) {
        tell("the kernel is %s with %u blocks of %u threads, seed %llu", launch->name, launch->blocks, launch->threads,
             (unsigned long long)launch->seed);
    }
    if (current) {
        tell("it happened in thread %d of block %u", current->index, current->block->index);
    }
}

/* Whatever the program has printed comes first. */
__attribute__((noreturn)) static void give_up(void) {
    fflush(stdout);
    tell_launch();
    fflush(stderr);
    _exit(1);
}

#define FAIL(...)                                                                                                      \
    do {                                                                                                               \
        tell(__VA_ARGS__);                                                                                             \
        give_up();                                                                                                     \
    } while (0)

static bool has_returned(const thread *thread) {
    return thread->block->warp[thread->index / LANES].returned >> thread->index % LANES & 1;
}

static bool waits_alike(const thread *a, const thread *b) {
    if (has_returned(a) || has_returned(b)) {
        return has_returned(a) && has_returned(b);
    }
    return a->what == b->what && a->mask == b->mask && a->place.line == b->place.line &&
           strcmp(a->place.file, b->place.file) == 0;
}

static void tell_group(const block *block, int first, int last) {
    const thread *thread = block->thread[first];
    char who[64], mask[32] = "";
    snprintf(who, sizeof who, first == last ? "thread %d" : "threads %d to %d", first, last);
    if (has_returned(thread)) {
        tell("  %s: returned", who);
        return;
    }
    if (thread->mask) {
        snprintf(mask, sizeof mask, " of lanes %08x", thread->mask);
    }
    tell("  %s: at %s%s, %s:%d", who, thread->what, mask, file_name(thread->place.file), thread->place.line);
}

static void tell_who_waits(const block *block) {
    const int threads = (int)launch->threads;
    for (int first = 0, last; first < threads; first = last + 1) {
        last = first;
        while (last + 1 < threads && waits_alike(block->thread[first], block->thread[last + 1])) {
            last++;
        }
        tell_group(block, first, last);
    }
}

void simt_misaligned(const void *address, size_t alignment, const char *file, int line) {
    FAIL("misaligned access at %s:%d: address %p is not a multiple of %zu", file_name(file), line, address, alignment);
}

/* An address out of bounds, or a stack that is full: says whose it was. The
 * sanitizer has a handler of its own, which tells more. */
static void on_signal(int number, siginfo_t *info, void *context) {
    (void)context;
    const char *address = info->si_addr;
    if (current && address >= current->fiber.stack - STACK_SIZE && address < current->fiber.stack) {
        tell("a thread has used up its stack of %d bytes", STACK_SIZE);
    } else {
        tell("%s at address %p", number == SIGSEGV ? "access out of bounds" : strsignal(number), info->si_addr);
    }
    give_up();
}

static void catch_signals(void) {
#if !defined(FIBER_ADDRESS_SANITIZER)
    static char stack[65536];
    static const int numbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
    const stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    sigaltstack(&alternate, NULL);
    struct sigaction action = {.sa_flags = SA_SIGINFO | SA_ONSTACK};
    action.sa_sigaction = on_signal;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        sigaction(numbers[i], &action, NULL);
    }
#else
    (void)on_signal;
#endif
}

/* -------------------------------------------------------------- who goes on -- */

/* One of the bits of `bits`, which has some; `random` is a byte. The next one from a random place on: close enough
 * to even chances. */
static int any_bit(unsigned bits, unsigned random) {
    const unsigned length = 32 - (unsigned)__builtin_clz(bits);
    const unsigned from = random * length >> 8;
    return __builtin_ctz(bits >> from) + (int)from;
}

static unsigned without(unsigned bits, unsigned left_out) {
    return bits & ~left_out ? bits & ~left_out : bits;
}

/* Whom the others overtake until the barrier next opens: one warp, and one lane of each. */
static void draw_slow(block *block) {
    const uint64_t random = draw();
    block->slow_warp = some_are_slow ? 1u << random % MOST_WARPS % ((launch->threads + LANES - 1) / LANES) : 0;
    block->slow_lane = slow_lane_of_all ? slow_lane_of_all : some_are_slow ? 1u << (random >> 32) % LANES : 0;
}

/* Staying with a warp lets it run ahead of the others, changing often keeps them abreast: both find mistakes. Now and
 * then the slow ones go on, too, or who asks again and again what they are to store would do so for ever. */
static thread *pick(block *block) {
    const uint64_t random = draw();
    const unsigned patience = random >> 24 & 4095 ? ~0u : 0;
    warp *warp = block->last_warp;
    if (!warp->ready || (random & 255) < chance_of_other_warp || !patience) {
        warp = &block->warp[any_bit(without(block->ready_warps, block->slow_warp & patience), random >> 8 & 255)];
        block->last_warp = warp;
    }
    const unsigned slow_lane = block->slow_lane & patience;
    return block->thread[(warp - block->warp) * LANES + any_bit(without(warp->ready, slow_lane), random >> 16 & 255)];
}

static void become(thread *next) {
    current = next;
    threadIdx.x = (unsigned)next->index;
}

/* The running thread has recorded what it waits for, if anything, and others go on. */
static void go_on(void) {
    thread *self = current;
    block *block = self->block;
    if (block->ready_warps == 0 && block->alive > 0) {
        tell("no thread of block %u can go on:", block->index);
        tell_who_waits(block);
        give_up();
    }
    if (block->alive == 0 || (draw() & 65535) < chance_of_other_block) {
        fiber_switch(&self->fiber, &launcher);
        return;
    }
    thread *next = pick(block);
    if (next != self) {
        become(next);
        fiber_switch(&self->fiber, &next->fiber);
    }
}

static void set_ready(block *block, warp *warp, unsigned lanes) {
    warp->ready |= lanes;
    block->ready_warps |= 1u << (warp - block->warp);
}

static void set_waiting(block *block, warp *warp, unsigned lane_bit) {
    warp->ready &= ~lane_bit;
    if (!warp->ready) {
        block->ready_warps &= ~(1u << (warp - block->warp));
    }
}

void simt_yield(void) {
    simt_accesses_left = 1 + (int)(draw() % 128);
    go_on();
}

/* Atomics are how blocks meet, so from here on others may overtake this one. */
void simt_atomic(void) {
    if (chance_of_other_block && draw() % 2) {
        current->block->slow = true;
        fiber_switch(&current->fiber, &launcher);
    } else {
        go_on();
    }
}

/* ------------------------------------------------------------- the barrier -- */

static void open_barrier_if_all_wait(block *block) {
    if (block->waiting == 0 || block->waiting < block->alive) {
        return;
    }
    for (unsigned i = 0; i * LANES < launch->threads; i++) {
        warp *warp = &block->warp[i];
        if (warp->at_barrier) {
            set_ready(block, warp, warp->at_barrier);
            warp->at_barrier = 0;
        }
    }
    block->waiting = 0;
    draw_slow(block);
}

static void wait_at(const char *what, unsigned mask, place place) {
    current->what = what;
    current->mask = mask;
    current->place = place;
}

static bool same_place(place a, place b) {
    return a.line == b.line && (a.file == b.file || strcmp(a.file, b.file) == 0);
}

void simt_barrier(const char *file, int line) {
    block *block = current->block;
    warp *warp = &block->warp[current->index / LANES];
    const place here = {file, line};
    wait_at("__syncthreads", 0, here);
    if (block->waiting > 0 && !same_place(here, block->barrier)) {
        FAIL("threads of one block are at different barriers: __syncthreads at %s:%d and at %s:%d", file_name(file),
             line, file_name(block->barrier.file), block->barrier.line);
    }
    const unsigned bit = 1u << current->index % LANES;
    block->barrier = here;
    block->waiting++;
    warp->at_barrier |= bit;
    set_waiting(block, warp, bit);
    open_barrier_if_all_wait(block);
    go_on();
}

/* ---------------------------------------------------------------- the warp -- */

static const char *const operation_name[] = {
    [SIMT_SYNCWARP] = "__syncwarp",      [SIMT_SHFL] = "__shfl_sync",
    [SIMT_SHFL_UP] = "__shfl_up_sync",   [SIMT_SHFL_DOWN] = "__shfl_down_sync",
    [SIMT_SHFL_XOR] = "__shfl_xor_sync", [SIMT_ANY] = "__any_sync",
    [SIMT_ALL] = "__all_sync",           [SIMT_BALLOT] = "__ballot_sync",
};

/* The lane that a shuffle reads; a lane whose source is beyond its segment reads itself. */
static int source_lane(simt_operation operation, int lane, int argument, int width) {
    const int begin = lane & ~(width - 1), end = begin + width;
    int source = lane;
    switch (operation) {
    case SIMT_SHFL:
        return begin + (argument & (width - 1));
    case SIMT_SHFL_UP:
        source = lane - argument;
        return source < begin ? lane : source;
    case SIMT_SHFL_DOWN:
        source = lane + argument;
        return source >= end ? lane : source;
    default:
        source = lane ^ argument;
        return source >= end ? lane : source;
    }
}

static void finish_shuffle(thread *const *thread, const meeting *meeting) {
    for (int lane = 0; lane < LANES; lane++) {
        if (!(meeting->mask >> lane & 1)) {
            continue;
        }
        const int source = source_lane(meeting->operation, lane, thread[lane]->argument, meeting->width);
        if (source < 0 || source >= LANES || !(meeting->mask >> source & 1)) {
            FAIL("%s at %s:%d: lane %d reads lane %d, which takes no part (mask %08x)",
                 operation_name[meeting->operation], file_name(meeting->place.file), meeting->place.line, lane, source,
                 meeting->mask);
        }
        thread[lane]->result = thread[source]->value;
    }
}

static void finish_vote(thread *const *thread, const meeting *meeting) {
    unsigned votes = 0;
    for (int lane = 0; lane < LANES; lane++) {
        if (meeting->mask >> lane & 1 && thread[lane]->value) {
            votes |= 1u << lane;
        }
    }
    const unsigned result = meeting->operation == SIMT_BALLOT ? votes
                            : meeting->operation == SIMT_ANY  ? votes != 0
                                                              : votes == meeting->mask;
    for (int lane = 0; lane < LANES; lane++) {
        if (meeting->mask >> lane & 1) {
            thread[lane]->result = result;
        }
    }
}

static void finish_meeting(thread *const *thread, const meeting *meeting) {
    if (meeting->operation >= SIMT_ANY) {
        finish_vote(thread, meeting);
    } else if (meeting->operation != SIMT_SYNCWARP) {
        finish_shuffle(thread, meeting);
    }
}

/* The meeting of exactly these lanes: one that has begun, or a new one. */
static meeting *find_meeting(warp *warp, const meeting *wanted) {
    for (int i = 0; i < warp->meetings; i++) {
        meeting *known = &warp->meeting[i];
        if (known->mask != wanted->mask) {
            continue;
        }
        if (known->operation != wanted->operation || known->width != wanted->width ||
            !same_place(known->place, wanted->place)) {
            tell("lanes of one warp are at different operations: %s at %s:%d and %s at %s:%d",
                 operation_name[wanted->operation], file_name(wanted->place.file), wanted->place.line,
                 operation_name[known->operation], file_name(known->place.file), known->place.line);
            give_up();
        }
        return known;
    }
    warp->meeting[warp->meetings] = *wanted;
    return &warp->meeting[warp->meetings++];
}

uint64_t simt_warp(simt_operation operation, unsigned mask, uint64_t value, int argument, int width, const char *file,
                   int line) {
    thread *self = current;
    block *block = self->block;
    warp *warp = &block->warp[self->index / LANES];
    const unsigned bit = 1u << self->index % LANES;
    if (!(mask & bit)) {
        FAIL("%s at %s:%d: the mask %08x leaves out the lane that calls, %d", operation_name[operation],
             file_name(file), line, mask, self->index % LANES);
    }
    if (width < 1 || width > LANES || (width & (width - 1)) != 0) {
        FAIL("%s at %s:%d: the width is %d, not a power of two up to 32", operation_name[operation], file_name(file),
             line, width);
    }
    self->value = value;
    self->argument = argument;
    wait_at(operation_name[operation], mask, (place){file, line});
    meeting *meeting = find_meeting(warp, &(struct meeting){mask, 0, operation, width, {file, line}});
    meeting->arrived |= bit;
    if (meeting->arrived == mask) {
        finish_meeting(&block->thread[self->index / LANES * LANES], meeting);
        *meeting = warp->meeting[--warp->meetings];
        set_ready(block, warp, mask);
    } else {
        set_waiting(block, warp, bit);
    }
    go_on();
    return self->result;
}

/* -------------------------------------------------------------- the cluster -- */

static unsigned cluster_waiting, cluster_met; /* threads, and how often all have met */

void simt_meet_cluster(void) {
    const unsigned met = cluster_met;
    wait_at("the barrier of the cluster", 0, (place){"a cluster", 0});
    if (++cluster_waiting == launch->cluster * launch->threads) {
        cluster_waiting = 0;
        cluster_met++;
    }
    while (!simt_found(cluster_met != met)) {}
}

enum {
    MOST_IN_VAIN = 10000 /* turns of blocks */
};

/* To change blocks costs copies of the shared memory, so others go on only when nobody here has found anything. */
bool simt_found(bool is_there) {
    static int turns;
    block *block = current->block;
    block->in_vain = is_there ? 0 : block->in_vain + 1;
    turns = is_there ? 0 : turns;
    if (block->in_vain > block->alive) { /* it may be those that others overtake who bring it, lanes hardly ever */
        block->slow_warp = 0;
        if (!slow_lane_of_all || turns > MOST_IN_VAIN / 32)
            block->slow_lane = 0;
        block->last_warp = &block->warp[any_bit(block->ready_warps, draw() & 255)];
    }
    if (block->in_vain > 2 * block->alive) {
        if (++turns > MOST_IN_VAIN) {
            tell("nobody in the cluster finds what it waits for; of block %u:", block->index);
            tell_who_waits(block);
            give_up();
        }
        block->in_vain = 0;
        draw_slow(block);
        fiber_switch(&current->fiber, &launcher);
    } else if (!is_there) {
        go_on();
    }
    return is_there;
}

/* -------------------------------------------------------------- the threads -- */

static void thread_returned(void) {
    block *block = current->block;
    warp *warp = &block->warp[current->index / LANES];
    const unsigned bit = 1u << current->index % LANES;
    warp->returned |= bit;
    set_waiting(block, warp, bit);
    block->alive--;
    open_barrier_if_all_wait(block);
    go_on();
}

static void thread_life(void) {
    for (;;) {
        launch->body(launch->argument);
        thread_returned();
    }
}

/* The stack has a page before it that nobody may touch. It begins elsewhere within
 * a page for each thread: the same place would be the same few cache lines for all. */
static char *make_stack(int index, size_t *size) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t guard = (STACK_SIZE + page - 1) / page * page;
    char *all =
        mmap(NULL, guard + STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED || mprotect(all, guard, PROT_NONE) != 0) {
        FAIL("no memory for the stack of thread %d", index);
    }
    *size = STACK_SIZE - (size_t)index % 16 * 256;
    return all + guard;
}

static thread *make_thread(block *block, int index) {
    thread *made = calloc(1, sizeof *made);
    if (!made) {
        FAIL("no memory for thread %d", index);
    }
    size_t size;
    char *stack = make_stack(index, &size);
    fiber_make(&made->fiber, thread_life, stack, size);
    made->block = block;
    made->index = index;
    return made;
}

/* ----------------------------------------------------------- shared memory -- */

/* A library's shared memory in two parts: from its beginning to the end of the dynamic
 * array, as far as that is in use, and what comes after the array. The bytes after
 * the part in use must remain poison. */
typedef struct shared_memory {
    char *part[2];
    size_t size[2];
    char *beyond;
    size_t beyond_size;
} shared_memory;

enum {
    BEYOND = 4096
};

static shared_memory shared;

/* Finds the thread-local storage that has the library's array in it. */
static int find_storage(struct dl_phdr_info *info, size_t size, void *found) {
    (void)size;
    const char *begin = info->dlpi_tls_data;
    for (int i = 0; begin && i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        const char *dynamic = launch->library->dynamic;
        if (header->p_type == PT_TLS && dynamic >= begin && dynamic < begin + header->p_memsz) {
            ((shared_memory *)found)->part[0] = info->dlpi_tls_data;
            ((shared_memory *)found)->size[0] = header->p_memsz;
            return 1;
        }
    }
    return 0;
}

static void find_shared_memory(void) {
    const simt_library *library = launch->library;
    if (launch->shared_memory > library->dynamic_size) {
        FAIL("%u bytes of dynamic shared memory; a block can have %zu", launch->shared_memory, library->dynamic_size);
    }
    if (!dl_iterate_phdr(find_storage, &shared)) {
        FAIL("the kernels' thread-local storage was not found");
    }
    char *end = shared.part[0] + shared.size[0], *dynamic_end = library->dynamic + library->dynamic_size;
    shared.beyond = library->dynamic + launch->shared_memory;
    const size_t room = (size_t)(dynamic_end - shared.beyond);
    shared.beyond_size = room < BEYOND ? room : BEYOND;
    shared.size[0] = (size_t)(shared.beyond + shared.beyond_size - shared.part[0]);
    shared.part[1] = dynamic_end;
    shared.size[1] = (size_t)(end - dynamic_end);
}

static void poison_shared(void) {
    for (int i = 0; i < 2; i++) {
        memset(shared.part[i], SHARED_POISON, shared.size[i]);
    }
}

static void check_beyond_shared(const block *block) {
    for (size_t i = 0; i < shared.beyond_size; i++) {
        if ((unsigned char)shared.beyond[i] != SHARED_POISON) {
            FAIL("block %u wrote beyond its %u bytes of dynamic shared memory, at byte %zu", block->index,
                 launch->shared_memory, launch->shared_memory + i);
        }
    }
}

static void save_shared(block *block) {
    const size_t size = shared.size[0] + shared.size[1];
    if (block->saved_size < size) {
        free(block->saved_shared);
        block->saved_shared = malloc(size);
        block->saved_size = size;
        if (!block->saved_shared) {
            FAIL("no memory to save %zu bytes of shared memory", size);
        }
    }
    memcpy(block->saved_shared, shared.part[0], shared.size[0]);
    memcpy(block->saved_shared + shared.size[0], shared.part[1], shared.size[1]);
}

/* Puts the block's shared memory in place. */
static void load_shared(block *block) {
    if (loaded && loaded != block && loaded->under_way) {
        save_shared(loaded);
    }
    if (block->fresh) {
        poison_shared();
    } else if (loaded != block) {
        memcpy(shared.part[0], block->saved_shared, shared.size[0]);
        memcpy(shared.part[1], block->saved_shared + shared.size[0], shared.size[1]);
    }
    block->fresh = false;
    loaded = block;
}

void *simt_in_block(int rank, void *address) {
    const unsigned index = current->block->index / launch->cluster * launch->cluster + (unsigned)rank;
    size_t offset = 0;
    for (int i = 0; i < 2; i++) {
        const size_t place = (size_t)((char *)address - shared.part[i]);
        if (place < shared.size[i])
            offset = place + (i ? shared.size[0] : 0);
    }
    for (int i = 0; i < MOST_CLUSTER; i++) {
        if (resident[i].under_way && resident[i].index == index) {
            return &resident[i] == loaded ? address : resident[i].saved_shared + offset;
        }
    }
    FAIL("block %u of the cluster is not there any more", index);
}

/* -------------------------------------------------------------- the blocks -- */

static void begin_block(block *block, unsigned index) {
    const int threads = (int)launch->threads;
    for (int i = 0; i < threads; i++) {
        if (!block->thread[i]) {
            block->thread[i] = make_thread(block, i);
        }
    }
    block->under_way = block->fresh = true;
    block->slow = false;
    block->index = index;
    block->alive = threads;
    block->waiting = block->in_vain = 0;
    block->ready_warps = 0;
    for (int i = 0; i * LANES < threads; i++) {
        const int lanes = threads - i * LANES < LANES ? threads - i * LANES : LANES;
        block->warp[i].at_barrier = block->warp[i].returned = block->warp[i].ready = 0;
        block->warp[i].meetings = 0;
        set_ready(block, &block->warp[i], ~0u >> (LANES - lanes));
    }
    block->last_warp = &block->warp[any_bit(block->ready_warps, draw() & 255)];
    draw_slow(block);
}

/* Until it ends or another block's turn comes. */
static void run_block(block *block) {
    load_shared(block);
    blockIdx.x = block->index;
    become(pick(block));
    fiber_switch(&launcher, &current->fiber);
    current = NULL;
    block->under_way = block->alive > 0;
    if (!block->under_way) {
        check_beyond_shared(block);
    }
}

/* The blocks of a cluster stay together. */
static unsigned *shuffled_blocks(unsigned first, unsigned count) {
    unsigned *order = malloc(count * sizeof *order);
    const unsigned together = launch->cluster ? launch->cluster : 1;
    if (!order) {
        FAIL("no memory for the order of %u blocks", count);
    }
    for (unsigned i = 0; i < count; i += together) {
        const unsigned j = (unsigned)(draw() % (i / together + 1)) * together;
        for (unsigned k = 0; k < together; k++) {
            if (j != i) {
                order[i + k] = order[j + k];
            }
            order[j + k] = first + i + k;
        }
    }
    return order;
}

/* Whose turn it is. One that others shall overtake waits until there is no other. */
static block *next_block(int most_resident) {
    unsigned under_way = 0, slow = 0;
    for (int i = 0; i < most_resident; i++) {
        under_way |= (unsigned)resident[i].under_way << i;
        slow |= (unsigned)resident[i].slow << i;
    }
    if (!under_way) {
        return NULL;
    }
    return &resident[any_bit(without(under_way, slow), draw() & 255)];
}

static bool is_any_under_way(void) {
    bool is_any = false;
    for (int i = 0; i < MOST_CLUSTER; i++) {
        is_any |= resident[i].under_way;
    }
    return is_any;
}

static void run_blocks(const unsigned *order, unsigned count, int most_resident) {
    unsigned begun = 0;
    for (;;) {
        const bool waits = launch->cluster && is_any_under_way(); /* clusters come one after the other */
        for (int i = 0; i < most_resident && begun < count && !waits; i++) {
            if (!resident[i].under_way) {
                begin_block(&resident[i], order[begun++]);
            }
        }
        block *next = next_block(most_resident);
        if (!next) {
            return;
        }
        run_block(next);
    }
}

static void check_launch(void) {
    if (launch->threads < 1 || launch->threads > SIMT_MOST_THREADS) {
        FAIL("%u threads a block; expected 1 to %d", launch->threads, SIMT_MOST_THREADS);
    }
    if (launch->blocks < 1 || launch->blocks > 0x7fffffffu) {
        FAIL("%u blocks; expected 1 to 2^31 - 1", launch->blocks);
    }
    if (launch->cluster && (launch->cluster > MOST_CLUSTER || launch->blocks % launch->cluster != 0 ||
                            launch->first_block % launch->cluster != 0 || launch->block_count % launch->cluster != 0)) {
        FAIL("%u blocks, %u of them from block %u on, in clusters of %u; expected whole clusters of up to %d",
             launch->blocks, launch->block_count, launch->first_block, launch->cluster, MOST_CLUSTER);
    }
    if (launch->first_block >= launch->blocks || launch->block_count > launch->blocks - launch->first_block) {
        FAIL("a sample of %u blocks from block %u on; there are %u", launch->block_count, launch->first_block,
             launch->blocks);
    }
}

/* Half of the launches have several blocks under way, which costs copies of the shared memory. */
static int draw_schedule(void) {
    static const unsigned chances[] = {256, 16, 2, 0};
    chance_of_other_warp = chances[draw() % 4];
    some_are_slow = draw() % 2 == 0;
    slow_lane_of_all = launch->cluster && draw() % 2 == 0 ? 1u << draw() % LANES : 0;
    const bool several = draw() % 2 == 0 || launch->cluster;
    chance_of_other_block = several ? 128 : 0;
    return launch->cluster ? (int)launch->cluster : several ? MOST_RESIDENT : 1;
}

void simt_run(const simt_launch *given) {
    static bool prepared;
    launch = given;
    if (!prepared) {
        catch_signals();
        prepared = true;
    }
    check_launch();
    find_shared_memory();
    random_state = launch->seed;
    gridDim = (simt_index){launch->blocks, 1, 1};
    blockDim = (simt_index){launch->threads, 1, 1};
    const int most_resident = draw_schedule();
    const unsigned count = launch->block_count ? launch->block_count : launch->blocks;
    unsigned *order = shuffled_blocks(launch->first_block, count);
    run_blocks(order, count, most_resident);
    free(order);
    loaded = NULL;
    launch = NULL;
}
