/*
 * What the library says when it is asked: names, version, the list of losses, the machine, and the message, which is
 * each thread's own. And what it takes from the machine it runs on, which needs processes that may end or that have
 * another environment: the number of threads, and ONEPASS_ISA.
 */
#define _POSIX_C_SOURCE 200809L
#include <onepass.h>

#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "refusals.h"

/* ---------------------------------------------------------------- messages and threads -- */

static void *complain(void *argument) {
    const char *loss = argument;
    onepass_call call = {.size = sizeof call, .loss = loss};
    uintptr_t wrong = onepass_message()[0] != '\0'; /* another thread's error is not ours */
    for (int i = 0; i < 1000; i++) {
        wrong += onepass_run(&call) != ONEPASS_INVALID_ARGUMENT;
        wrong += strstr(onepass_message(), loss) == NULL;
    }
    return (void *)wrong;
}

static void test_messages_of_threads(void) {
    static char names[2][16] = {"apples", "oranges"};
    pthread_t threads[2];
    onepass_call call = {.size = sizeof call, .loss = "bananas"};
    HOLDS(onepass_run(&call) == ONEPASS_INVALID_ARGUMENT);
    for (int i = 0; i < 2; i++)
        HOLDS(pthread_create(&threads[i], NULL, complain, names[i]) == 0);
    for (int i = 0; i < 2; i++) {
        void *wrong = NULL;
        pthread_join(threads[i], &wrong);
        CHECK(wrong == NULL, "thread %d: %d wrong messages", i, (int)(uintptr_t)wrong);
    }
    CHECK(strstr(onepass_message(), "bananas") != NULL, "\"%s\"", onepass_message());
    HOLDS(onepass_run(&good_scene()->call) == ONEPASS_OK);
    HOLDS(onepass_message()[0] == '\0');
}

/* A name of any length, and one that printf would understand, must not break the sentence or what is behind it. */
static void test_long_names(void) {
    static char name[100000];
    memset(name, 'x', sizeof name - 1);
    onepass_call call = {.size = sizeof call, .loss = name};
    expect_refusal(onepass_run(&call), ONEPASS_INVALID_ARGUMENT, "loss", "a loss with a very long name");
    call.loss = "%s%n%d";
    expect_refusal(onepass_run(&call), ONEPASS_INVALID_ARGUMENT, "loss|%s%n%d", "a loss with a format for a name");
}

/* ---------------------------------------------------------------- asking -- */

static void test_names(void) {
    static const char *const names[] = {
        "ONEPASS_OK",
        "ONEPASS_INVALID_ARGUMENT",
        "ONEPASS_INVALID_SHAPE",
        "ONEPASS_INVALID_MEMORY",
        "ONEPASS_NOT_SUPPORTED",
        "ONEPASS_NO_DEVICE",
        "ONEPASS_OUT_OF_MEMORY",
        "ONEPASS_INCOMPLETE",
        "ONEPASS_DEVICE_FAILED",
        "ONEPASS_OUT_OF_BOUNDS",
    };
    for (size_t i = 0; i < COUNT(names); i++)
        CHECK(strcmp(onepass_status_name((onepass_status)i), names[i]) == 0, "status %d is called %s", (int)i,
              onepass_status_name((onepass_status)i));
    HOLDS(onepass_status_name((onepass_status)99) != NULL);
    HOLDS(onepass_status_name((onepass_status)-1) != NULL);
    HOLDS(onepass_version() == ONEPASS_VERSION);
    char version[32];
    snprintf(version, sizeof version, "%d.%d.%d", ONEPASS_VERSION_MAJOR, ONEPASS_VERSION_MINOR, ONEPASS_VERSION_PATCH);
    CHECK(strcmp(onepass_version_text(), version) == 0, "version %s, header %s", onepass_version_text(), version);
}

static void test_list_of_losses(void) {
    static const struct {
        const char *name, *parameter;
        double standard;
    } losses[] = {{"mse", NULL, 0}, {"smooth_l1", "beta", 1}, {"hinge", "margin", 1}};
    for (size_t i = 0; i < COUNT(losses); i++) {
        const onepass_loss_info *info = onepass_loss_named(losses[i].name);
        CHECK(info != NULL, "%s is not listed", losses[i].name);
        if (info == NULL)
            continue;
        HOLDS(strcmp(info->name, losses[i].name) == 0);
        HOLDS(info->operand_count == 2);
        HOLDS(info->parameter_count == (losses[i].parameter != NULL));
        if (info->parameter_count == 1 && losses[i].parameter != NULL) {
            HOLDS(strcmp(info->parameter[0].name, losses[i].parameter) == 0);
            HOLDS(info->parameter[0].default_value == losses[i].standard);
            HOLDS(info->parameter[0].meaning[0] != '\0');
        }
    }
    int32_t count = 0;
    for (const onepass_loss_info *info; (info = onepass_loss_at(count)) != NULL; count++) {
        HOLDS(onepass_loss_named(info->name) == info);
        HOLDS(info->meaning[0] != '\0' && info->value[0] != '\0' && info->slope[0] != '\0');
        HOLDS(info->operand_count >= 2 && info->operand_count <= ONEPASS_MAX_OPERANDS);
        for (int32_t k = 0; k < info->operand_count; k++)
            HOLDS(info->operand[k][0] != '\0');
    }
    CHECK(count >= (int32_t)COUNT(losses), "%d losses are listed", (int)count); /* these and later ones */
    HOLDS(onepass_loss_at(-1) == NULL && onepass_loss_at(INT32_MIN) == NULL && onepass_loss_at(INT32_MAX) == NULL);
    HOLDS(onepass_loss_named(NULL) == NULL && onepass_loss_named("") == NULL && onepass_loss_named("mze") == NULL);
    HOLDS(onepass_loss_named("smooth_l1")->parameter[0].minimum == 0);
    const onepass_loss_info *ranking = onepass_loss_named("margin_ranking");
    HOLDS(ranking->operand_count == 3 && strcmp(ranking->operand[0], "input1") == 0 &&
          strcmp(ranking->operand[1], "input2") == 0 && strcmp(ranking->operand[2], "target") == 0);
    HOLDS(strcmp(onepass_loss_named("mse")->operand[0], "prediction") == 0);
}

static scene *scene_of(const onepass_loss_info *info) {
    return info->operand_count > ONEPASS_THIRD ? third_scene() : good_scene();
}

static void test_limits_of_parameters(void) {
    for (int32_t i = 0; onepass_loss_at(i) != NULL; i++)
        expect_limits_of_parameters(scene_of, onepass_loss_at(i));
}

static void test_machine(void) {
    expect_refusal(onepass_machine(NULL), ONEPASS_INVALID_ARGUMENT, "null", "machine, nowhere to write");
    onepass_machine_info info, untouched;
    memset(&info, POISON, sizeof info);
    static const size_t wrong[] = {0, 1, sizeof info - 1, 4097, SIZE_MAX};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        info.size = wrong[i];
        memcpy(&untouched, &info, sizeof info);
        expect_refusal(onepass_machine(&info), ONEPASS_INVALID_ARGUMENT, "size", "machine, wrong size");
        HOLDS(memcmp(&untouched, &info, sizeof info) == 0);
    }
    info.size = sizeof info;
    HOLDS(onepass_machine(&info) == ONEPASS_OK);
    HOLDS(onepass_message()[0] == '\0');
    HOLDS(info.instruction_set[0] != '\0' && strstr(info.instruction_sets, info.instruction_set) != NULL);
    HOLDS(info.threads >= 1);
    CHECK(info.gpu_count > 0 ? info.gpu_reason[0] == '\0' : info.gpu_reason[0] != '\0', "%d GPUs, \"%s\"",
          (int)info.gpu_count, info.gpu_reason);
    CHECK((info.gpu_count > 0) == (info.gpu_names[0] != '\0'), "%d GPUs, \"%s\"", (int)info.gpu_count, info.gpu_names);
    HOLDS(info.gpu_count == 0 || (info.gpu_driver / 1000 >= info.gpu_toolkit / 1000 && info.gpu_toolkit > 0));
}

/* ---------------------------------------------------------------- in a process of its own -- */

/* A number of threads that no machine has, for a call with a tile for each: the library must take fewer. Where it does
 * not, the OpenMP runtime ends the process. To sanitizers so many tiles are ten seconds, and they see fewer. */
static int child_with_many_threads(void) {
    scene *s = good_scene();
    part *const operands[] = {&s->prediction, &s->target};
    for (int i = 0; i < 2; i++) {
        operands[i]->tensor.ndim = 1;
        operands[i]->tensor.strides = operands[i]->strides;
        operands[i]->shape[0] = (int64_t)(CHECK_SANITIZED ? 10000 : 100000) * ONEPASS_TILE;
    }
    s->call.gradient[0] = s->call.gradient[1] = NULL;
    s->call.threads = INT32_MAX;
    float value = 0;
    s->value.tensor.data = &value;
    return onepass_run(&s->call) == ONEPASS_OK && value == 1 ? 0 : 2; /* the mean of (1 - 0)^2 */
}

/* ONEPASS_ISA is read once, so each value needs a process of its own: this program again, with two arguments. Returns 0
 * if the library does what it must with the name: "known" or "unknown". */
static int child_with_instruction_set(const char *expectation) {
    const char *name = getenv("ONEPASS_ISA");
    onepass_machine_info info = {.size = sizeof info};
    bool known = strcmp(expectation, "known") == 0;
    for (int again = 0; again < 2; again++) {
        scene *s = good_scene();
        memcpy(&before, s, sizeof before);
        onepass_status status = onepass_run(&s->call);
        if (known && status != ONEPASS_OK)
            return 2;
        if (!known && (status == ONEPASS_OK || !sentence_has(onepass_message(), "ONEPASS_ISA") ||
                       !sentence_has(onepass_message(), name) || memcmp(&before, s, sizeof before) != 0)) {
            fprintf(stderr, "run: %s \"%s\"\n", onepass_status_name(status), onepass_message());
            return 3;
        }
        status = onepass_machine(&info);
        if (known && (status != ONEPASS_OK || strcmp(info.instruction_set, name) != 0))
            return 4;
        const char *there = getenv("ONEPASS_TEST_SETS"); /* as the parent was told them, '|' between */
        if (!known && (status == ONEPASS_OK || !sentence_has(onepass_message(), there))) {
            fprintf(stderr, "machine: %s \"%s\"\n", onepass_status_name(status), onepass_message());
            return 5;
        }
    }
    return 0;
}

static int run_child(const char *program, const char *instruction_set, const char *expectation) {
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        if (instruction_set != NULL)
            setenv("ONEPASS_ISA", instruction_set, 1);
        execl(program, program, "--child", expectation, (char *)NULL);
        _exit(127);
    }
    int status = -1;
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
        return -1;
    return WEXITSTATUS(status);
}

static void test_many_threads(const char *program) {
    int code = run_child(program, NULL, "threads");
    if (code == 127)
        printf("left out: this program cannot start itself here, so a great number of threads is not tested\n");
    else
        CHECK(code == 0, "2^31 - 1 threads: child ended with %d (-1: by a signal)", code);
}

static void test_instruction_set_variable(const char *program) {
    onepass_machine_info info = {.size = sizeof info};
    HOLDS(onepass_machine(&info) == ONEPASS_OK);
    char sets[256];
    snprintf(sets, sizeof sets, "%s", info.instruction_sets);
    for (char *blank = sets; (blank = strchr(blank, ' ')) != NULL;)
        *blank = '|';
    setenv("ONEPASS_TEST_SETS", sets, 1);
    static const char *const unknown[] = {"abacus", "NEON ", "av", "neon,sve"};
    for (size_t i = 0; i < COUNT(unknown); i++) {
        int code = run_child(program, unknown[i], "unknown");
        if (code == 127) {
            printf("left out: this program cannot start itself here, so ONEPASS_ISA is not tested\n");
            return;
        }
        CHECK(code == 0, "ONEPASS_ISA=%s: child ended with %d", unknown[i], code);
    }
    for (char *name = strtok(sets, "|"); name != NULL; name = strtok(NULL, "|")) {
        int code = run_child(program, name, "known");
        CHECK(code == 0, "ONEPASS_ISA=%s: child ended with %d", name, code);
    }
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "--child") == 0)
        return strcmp(argv[2], "threads") == 0 ? child_with_many_threads() : child_with_instruction_set(argv[2]);
    HOLDS(onepass_message()[0] == '\0');
    test_messages_of_threads();
    test_long_names();
    test_names();
    test_list_of_losses();
    test_limits_of_parameters();
    test_machine();
    test_many_threads(argv[0]);
    test_instruction_set_variable(argv[0]);
    return check_finish();
}
