/*
 * Every case of the list against the oracle, bit for bit: values, gradients,
 * untouched memory. Then what the list cannot say: numbers at the end of their range,
 * value and gradient computed together or alone, and tensors that end at the end of
 * readable memory.
 */
#define _DEFAULT_SOURCE
#include "cases.h"
#include "check.h"
#include "cpu/threads.h"
#include "fence.h"
#include "oracle.h"

#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

/* ------------------------------------------------------------- the list -- */

static void compare_blocks(const test_case *c, const prepared_case *expected, const prepared_case *got) {
    char text[512], difference[160];
    if (case_equal(expected, got, difference, sizeof difference)) {
        CHECK(1, "equal");
        return;
    }
    case_describe(c, text, sizeof text);
    CHECK(0, "%s: %s", text, difference);
}

static size_t one_of_list(void) {
    const size_t one_of = check_one_of(1);
    return one_of > 1 ? one_of : check_quick("four of five cases of the list") ? 5 : 1;
}

static void test_list(void) {
    size_t count;
    const test_case *cases = case_list(&count);
    const size_t one_of = one_of_list();
    for (size_t i = 0; i < count; i++) {
        if (!check_takes(i, one_of)) {
            continue;
        }
        prepared_case *expected = case_prepare(&cases[i]);
        prepared_case *got = case_prepare(&cases[i]);
        oracle_run(&expected->call);
        const onepass_status status = onepass_run(&got->call);
        if (status != ONEPASS_OK) {
            char text[512];
            case_describe(&cases[i], text, sizeof text);
            CHECK_OK(status, text);
        } else {
            compare_blocks(&cases[i], expected, got);
        }
        case_free(expected);
        case_free(got);
    }
    printf("%zu cases in the list\n", count);
}

/* ---------------------------------------------------- what it cannot say -- */

/* Without dimensions the batch is one. */
static void test_batchmean_of_scalars(void) {
    float p = 3, t = 1, value = -77, gradient = -77;
    const onepass_tensor prediction = {&p, ONEPASS_F32, 0, NULL, NULL}, target = {&t, ONEPASS_F32, 0, NULL, NULL};
    const onepass_tensor v = {&value, ONEPASS_F32, 0, NULL, NULL}, g = {&gradient, ONEPASS_F32, 0, NULL, NULL};
    CHECK_OK(onepass_forward_backward("mse", ONEPASS_BATCHMEAN, &prediction, &target, &v, &g), "scalars");
    CHECK(value == 4 && gradient == 4, "batchmean of scalars: expected 4 and 4, got %g and %g", (double)value,
          (double)gradient);
}

/* Numbers so large that what a gradient is computed of overflows, beside NaN, infinity and tiles of usual ones: it is
 * the same alone, with the value, and with the value over its operand, whatever the mean is divided by. */
static void test_huge_numbers(void) {
    enum {
        COUNT = 5 * ONEPASS_TILE + 77
    };
    static const double divisors[] = {0, 1000, 1e-39, 3e38, 1e300, 1e-308};
    static double operand[2][COUNT], place[COUNT], gradient[2][COUNT];
    const int64_t count = COUNT;
    for (int l = 0; oracle_loss_at(l); l++) {
        for (int turn = 0; turn < 24; turn++) {
            const int32_t dtype = turn % 2 ? ONEPASS_F64 : ONEPASS_F32;
            const size_t size = oracle_size(dtype);
            const double divisor = divisors[turn / 2 % 6];
            const int32_t reduction = divisor == 0 && turn >= 12 ? ONEPASS_SUM : ONEPASS_MEAN;
            const double huge = turn % 2 ? 0x1p1022 : 0x1p126;
            const double numbers[] = {0.5, -1.25, huge, -huge, 1.5 * huge, 1.875 * huge, 0, -0.0, -INFINITY, NAN};
            for (int k = 0; k < 2; k++) {
                for (int64_t i = 0; i < count; i++) { /* every second tile has usual ones alone */
                    const int64_t kinds = i / ONEPASS_TILE % 2 ? 2 : turn % 3 ? 8 : 10;
                    oracle_store(dtype, (char *)operand[k] + (size_t)i * size,
                                 numbers[(i * 7 + i / 11 + k * (i / 3)) % kinds]);
                }
            }
            memcpy(place, operand[0], sizeof place);
            double value;
            const onepass_tensor p = {operand[0], dtype, 1, &count, NULL}, t = {operand[1], dtype, 1, &count, NULL};
            const onepass_tensor over = {place, dtype, 1, &count, NULL}, scalar = {&value, ONEPASS_F64, 0, NULL, NULL};
            const onepass_tensor alone = {gradient[0], dtype, 1, &count, NULL};
            const onepass_tensor together = {gradient[1], dtype, 1, &count, NULL};
            onepass_call call = {.size = sizeof call,
                                 .loss = oracle_loss_at(l)->name,
                                 .reduction = reduction,
                                 .divisor = divisor,
                                 .operand = {&p, &t},
                                 .gradient = {&alone},
                                 .threads = 1 + turn % 3};
            if (oracle_loss_at(l)->operand_count != 2) {
                continue;
            }
            CHECK_OK(onepass_run(&call), call.loss);
            call.value = &scalar;
            call.gradient[0] = &together;
            CHECK_OK(onepass_run(&call), call.loss);
            CHECK(memcmp(gradient[0], gradient[1], COUNT * size) == 0, "%s: with its value, turn %d", call.loss, turn);
            call.operand[0] = call.gradient[0] = &over;
            CHECK_OK(onepass_run(&call), call.loss);
            CHECK(memcmp(gradient[0], place, COUNT * size) == 0, "%s: over its operand, turn %d", call.loss, turn);
        }
    }
}

/* Value and gradient at once, and each alone, where they may be computed by other steps: a NaN as the gradient of an
 * infinite operand whose value is 0, so that nothing tells of it in the sum, and parameters from 0 and the smallest
 * numbers to the largest, with distances of every size below and above them. */
static void test_values_with_gradients(void) {
    enum {
        COUNT = 3 * ONEPASS_TILE
    };
    static const double parameters[] = {0,   0x1p-1070, 0x1p-1022, 0x1p-140, 0x1p-126, 0x1p-100, 0x1p-60, 0.3,
                                        0.5, 1,         7.3,       0x1p64,   0x1p65,   3e38,     0x1p900, 0x1p901};
    static const char *const names[] = {"mse", "smooth_l1", "hinge", "margin_ranking"};
    static double operand[3][COUNT], gradient[2][COUNT];
    const int64_t count = COUNT;
    for (int turn = 0; turn < 4 * 16 * 2; turn++) {
        const int32_t dtype = turn % 2 ? ONEPASS_F64 : ONEPASS_F32;
        const size_t size = oracle_size(dtype);
        const char *name = names[turn / 2 % 4];
        const double parameter = parameters[turn / 8];
        for (int k = 0; k < 3; k++) { /* a tile with infinite numbers, one around the parameter, tiny ones */
            for (int64_t i = 0; i < count; i++) {
                const double step = (double)(i * 13 % 37) / 16;
                const bool infinite = k == turn / 2 % 4 - 1 && k > 0 && i % 5 == 0; /* by what the loss multiplies */
                const double some[] = {infinite ? INFINITY : 3 + step + 2 * (k == 0), (k == 0 ? parameter : 1) * step,
                                       ldexp((i % 3 - 1) * step, -(int)(i % 1080))};
                oracle_store(dtype, (char *)operand[k] + (size_t)i * size, some[i / ONEPASS_TILE]);
            }
        }
        double value[2];
        const onepass_tensor p = {operand[0], dtype, 1, &count, NULL}, t = {operand[1], dtype, 1, &count, NULL};
        const onepass_tensor v = {operand[2], dtype, 1, &count, NULL};
        const onepass_tensor scalar[2] = {{&value[0], ONEPASS_F64, 0, NULL, NULL},
                                          {&value[1], ONEPASS_F64, 0, NULL, NULL}};
        const onepass_tensor slope[2] = {{gradient[0], dtype, 1, &count, NULL}, {gradient[1], dtype, 1, &count, NULL}};
        onepass_call call = {.size = sizeof call,
                             .loss = name,
                             .parameter = {parameter},
                             .parameter_count = strcmp(name, "mse") != 0,
                             .operand = {&p, &t, strcmp(name, "margin_ranking") ? NULL : &v},
                             .value = &scalar[0],
                             .threads = 1};
        CHECK_OK(onepass_run(&call), name);
        call.value = NULL;
        call.gradient[0] = &slope[0];
        CHECK_OK(onepass_run(&call), name);
        call.value = &scalar[1];
        call.gradient[0] = &slope[1];
        CHECK_OK(onepass_run(&call), name);
        CHECK(memcmp(&value[0], &value[1], sizeof *value) == 0, "%s of %g, the value: %a with its gradient, %a alone",
              name, parameter, value[1], value[0]);
        CHECK(memcmp(gradient[0], gradient[1], COUNT * size) == 0, "%s of %g, the gradient with its value", name,
              parameter);
    }
}

/* The same of more elements than the engine takes for cached, in one memory order or another: the gradient begins with
 * a cache line, or behind its first 16 bytes. */
static void test_many_values_with_gradients(void) {
    enum {
        COUNT = (1 << 20) + 2 * ONEPASS_TILE + 77,
        BEHIND = 4
    };
    static const char *const names[] = {"mse", "l1", "smooth_l1", "hinge", "margin_ranking"};
    static float operand[3][COUNT], alone[COUNT];
    static _Alignas(64) float together[COUNT + BEHIND];
    const int64_t count = COUNT;
    for (int k = 0; k < 3; k++) {
        for (int64_t i = 0; i < count; i++) {
            operand[k][i] = (float)((i * (7 + k) + i / 1000) % 1013 - 506) / 256;
        }
    }
    for (int turn = 0; turn < 5 * 2; turn++) {
        const char *name = names[turn / 2];
        float value[2], *const own[2] = {alone, together + turn % 2 * BEHIND};
        const onepass_tensor p = {operand[0], ONEPASS_F32, 1, &count, NULL};
        const onepass_tensor t = {operand[1], ONEPASS_F32, 1, &count, NULL};
        const onepass_tensor v = {operand[2], ONEPASS_F32, 1, &count, NULL};
        const onepass_tensor scalar[2] = {{&value[0], ONEPASS_F32, 0, NULL, NULL},
                                          {&value[1], ONEPASS_F32, 0, NULL, NULL}};
        const onepass_tensor slope[2] = {{own[0], ONEPASS_F32, 1, &count, NULL},
                                         {own[1], ONEPASS_F32, 1, &count, NULL}};
        onepass_call call = {.size = sizeof call,
                             .loss = name,
                             .operand = {&p, &t, strcmp(name, "margin_ranking") ? NULL : &v},
                             .value = &scalar[0]};
        CHECK_OK(onepass_run(&call), name);
        call.value = NULL;
        call.gradient[0] = &slope[0];
        CHECK_OK(onepass_run(&call), name);
        call.value = &scalar[1];
        call.gradient[0] = &slope[1];
        CHECK_OK(onepass_run(&call), name);
        CHECK(value[0] == value[1], "%s of many, the value: %a with its gradient, %a alone", name, (double)value[1],
              (double)value[0]);
        CHECK(memcmp(own[0], own[1], COUNT * sizeof(float)) == 0, "%s of many, the gradient with its value", name);
    }
}

/* ---------------------------------------------------------------- edges -- */

/* Tensors that end at an unreadable page, or begin after one: a load beyond the
 * last element, which poison cannot show, dies here. */
static void test_edges(void) {
    enum {
        MOST = 2 * ONEPASS_TILE + 300,
        TENSORS = 8 /* prediction, target, variance, their gradients, weight, mask */
    };
    fenced memory[TENSORS];
    for (int i = 0; i < TENSORS; i++) {
        memory[i] = fence(MOST * sizeof(double));
    }
    for (int32_t dtype = ONEPASS_F16; dtype <= ONEPASS_F64; dtype++) {
        for (int64_t count = 1; count <= MOST; count += count < 150 ? 1 : 127) {
            for (int turn = 0; turn < 4; turn++) {
                const int at_end = turn % 2, masked = turn / 2;
                onepass_tensor tensor[TENSORS];
                double value;
                onepass_tensor scalar = {&value, ONEPASS_F64, 0, NULL, NULL};
                for (int i = 0; i < TENSORS; i++) {
                    const int32_t own = i == TENSORS - 1 ? ONEPASS_BOOL : dtype;
                    const size_t bytes = (size_t)count * oracle_size(own);
                    char *data = memory[i].begin + (at_end ? memory[i].bytes - bytes : 0);
                    memset(memory[i].begin, 0, memory[i].bytes);
                    tensor[i] = (onepass_tensor){data, own, 1, &count, NULL};
                    for (int64_t j = 0; j < count && (i == 0 || i == 2 || i >= 6); j++) {
                        oracle_store(own, data + (size_t)j * oracle_size(own), i == 0 ? 2.0 : 1.0);
                    }
                }
                onepass_call call = {.size = sizeof call,
                                     .loss = "gaussian_nll",
                                     .reduction = ONEPASS_SUM,
                                     .operand = {&tensor[0], &tensor[1], &tensor[2]},
                                     .weight = masked ? &tensor[6] : NULL,
                                     .mask = masked ? &tensor[7] : NULL,
                                     .value = &scalar,
                                     .gradient = {&tensor[3], &tensor[4], &tensor[5]}};
                CHECK_OK(onepass_run(&call), "gaussian_nll at the edge of memory");
                CHECK(value == 2.0 * (double)count, "%s, %lld elements at the edge: expected %g, got %g",
                      oracle_dtype_name(dtype), (long long)count, 2.0 * (double)count, value);
                call.loss = "mse";
                call.operand[2] = call.gradient[2] = NULL;
                CHECK_OK(onepass_run(&call), "mse at the edge of memory");
                CHECK(value == 4.0 * (double)count, "%s, %lld elements at the edge: expected %g, got %g",
                      oracle_dtype_name(dtype), (long long)count, 4.0 * (double)count, value);
            }
        }
    }
    for (int i = 0; i < TENSORS; i++) {
        munmap(memory[i].all, memory[i].bytes + 2 * memory[i].page);
    }
}

/* --------------------------------------------------------- the catalogue -- */

/* The library and the oracle know the same losses, operands and defaults. */
static void test_catalogue(void) {
    int count = 0;
    for (; onepass_loss_at(count); count++) {
        const onepass_loss_info *info = onepass_loss_at(count);
        const oracle_loss *loss = oracle_loss_named(info->name);
        if (!CHECK(loss != NULL, "%s: expected a line in oracle/formulas.def, got none", info->name)) {
            continue;
        }
        CHECK(loss->operand_count == info->operand_count, "%s: expected %d operands, got %d", info->name,
              loss->operand_count, info->operand_count);
        CHECK(loss->parameter_count == info->parameter_count, "%s: expected %d parameters, got %d", info->name,
              loss->parameter_count, info->parameter_count);
        for (int i = 0; i < info->parameter_count && i < loss->parameter_count; i++) {
            CHECK(loss->default_value[i] == info->parameter[i].default_value, "%s: expected default %g for %s, got %g",
                  info->name, loss->default_value[i], info->parameter[i].name, info->parameter[i].default_value);
        }
        CHECK(onepass_loss_named(info->name) == info, "%s: expected the same entry by name", info->name);
    }
    for (int i = 0; oracle_loss_at(i); i++) {
        CHECK(onepass_loss_named(oracle_loss_at(i)->name) != NULL, "%s: expected the library to have it",
              oracle_loss_at(i)->name);
    }
    CHECK(count > 0, "expected losses, got none");
}

int main(void) {
    onepass_cpu_cores = 5; /* the most threads that a case has */
    test_catalogue();
    test_batchmean_of_scalars();
    test_huge_numbers();
    test_values_with_gradients();
    test_many_values_with_gradients();
    test_edges();
    test_list();
    return check_finish();
}
