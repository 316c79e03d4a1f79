/*
 * Every case of the list against the oracle, bit for bit: values, gradients,
 * untouched memory. Then what the list cannot say: literal tables of NaN,
 * infinity and kinks, weights and masks by hand, and tensors that end at the end
 * of readable memory.
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

/* ------------------------------------------------------------ the tables -- */

/* One element in float, not summed: the value and the slopes as they are, with the signs of zeros. */
static void one_element(const char *loss, int32_t parameter_count, const double *parameter, const float *operand,
                        float result[ORACLE_PARTS]) {
    float number[ORACLE_OPERANDS];
    onepass_tensor in[ORACLE_OPERANDS], out[ORACLE_PARTS];
    onepass_call call = {
        .size = sizeof call, .loss = loss, .reduction = ONEPASS_NONE, .parameter_count = parameter_count};
    memcpy(number, operand, sizeof number);
    memcpy(call.parameter, parameter, (size_t)parameter_count * sizeof *parameter);
    for (int i = 0; i < ORACLE_PARTS; i++) {
        out[i] = (onepass_tensor){&result[i], ONEPASS_F32, 0, NULL, NULL};
    }
    call.value = &out[0];
    for (int i = 0; i < oracle_loss_named(loss)->operand_count; i++) {
        in[i] = (onepass_tensor){&number[i], ONEPASS_F32, 0, NULL, NULL};
        call.operand[i] = &in[i];
        call.gradient[i] = &out[1 + i];
    }
    CHECK_OK(onepass_run(&call), loss);
}

typedef struct known {
    const char *loss;
    int32_t parameter_count;
    double parameter[2];
    float operand[ORACLE_OPERANDS];
    float part[ORACLE_PARTS]; /* value, slope p, slope t, slope v */
} known;

/* Written out by hand, so that a slip in the oracle's formulas has a second witness. */
static const known known_results[] = {
    /* A NaN stays NaN in value and slopes. */
    {"mse", 0, {0}, {NAN, 1}, {NAN, NAN, NAN}},
    {"mse", 0, {0}, {1, NAN}, {NAN, NAN, NAN}},
    {"smooth_l1", 0, {0}, {NAN, 1}, {NAN, NAN, NAN}},
    {"smooth_l1", 0, {0}, {1, NAN}, {NAN, NAN, NAN}},
    {"smooth_l1", 1, {0}, {NAN, 1}, {NAN, NAN, NAN}},
    /* Infinite differences, and infinity less itself. */
    {"mse", 0, {0}, {INFINITY, 1}, {INFINITY, INFINITY, -INFINITY}},
    {"mse", 0, {0}, {1, INFINITY}, {INFINITY, -INFINITY, INFINITY}},
    {"mse", 0, {0}, {INFINITY, INFINITY}, {NAN, NAN, NAN}},
    {"smooth_l1", 0, {0}, {INFINITY, 1}, {INFINITY, 1, -1}},
    {"smooth_l1", 0, {0}, {1, INFINITY}, {INFINITY, -1, 1}},
    {"smooth_l1", 0, {0}, {-INFINITY, -INFINITY}, {NAN, NAN, NAN}},
    /* The square overflows, the difference does not. */
    {"mse", 0, {0}, {1e30f, 0}, {INFINITY, 2e30f, -2e30f}},
    /* Plain numbers. */
    {"mse", 0, {0}, {3, 1}, {4, 4, -4}},
    {"mse", 0, {0}, {-1, 2}, {9, -6, 6}},
    {"mse", 0, {0}, {2, 2}, {0, 0, -0.0f}},
    {"smooth_l1", 0, {0}, {3, 1}, {1.5f, 1, -1}},
    {"smooth_l1", 0, {0}, {1, 1.5f}, {0.125f, -0.5f, 0.5f}},
    {"smooth_l1", 1, {4}, {3, 1}, {0.5f, 0.5f, -0.5f}},
    /* On the kink of smooth_l1 both formulas agree in value; the slope is the sign. */
    {"smooth_l1", 0, {0}, {1, 0}, {0.5f, 1, -1}},
    {"smooth_l1", 0, {0}, {-1, 0}, {0.5f, -1, 1}},
    {"smooth_l1", 1, {2}, {1, 3}, {1, -1, 1}},
    /* beta = 0 is l1, whose slope at 0 is 0. */
    {"smooth_l1", 1, {0}, {5, 2}, {3, 1, -1}},
    {"smooth_l1", 1, {0}, {2, 5}, {3, -1, 1}},
    {"smooth_l1", 1, {0}, {2, 2}, {0, 0, -0.0f}},
    {"smooth_l1", 1, {0}, {-0.0f, 0}, {0, 0, -0.0f}},
    /* hinge: wrong side, right side, within the margin, on the kink (slope 1, as clamp has it). */
    {"hinge", 0, {0}, {-2, 1}, {3, -1, 2}},
    {"hinge", 0, {0}, {2, 1}, {0, -0.0f, -0.0f}},
    {"hinge", 0, {0}, {0.5f, -1}, {1.5f, 1, -0.5f}},
    {"hinge", 0, {0}, {1, 1}, {0, -1, -1}},
    {"hinge", 0, {0}, {-1, -1}, {0, 1, 1}},
    {"hinge", 1, {3}, {2, 1}, {1, -1, -2}},
    {"hinge", 1, {3}, {3, 1}, {0, -1, -3}},
    /* a = 0 where margin - p*t is NaN; 0 times NaN or infinity is NaN all the same. */
    {"hinge", 0, {0}, {NAN, 2}, {NAN, -0.0f, NAN}},
    {"hinge", 0, {0}, {2, NAN}, {NAN, NAN, -0.0f}},
    {"hinge", 0, {0}, {2, INFINITY}, {0, NAN, -0.0f}},
    {"hinge", 0, {0}, {INFINITY, 2}, {0, -0.0f, NAN}},
    {"hinge", 0, {0}, {-2, INFINITY}, {INFINITY, -INFINITY, 2}},
    {"hinge", 0, {0}, {0, INFINITY}, {NAN, NAN, -0.0f}},
    /* l1: NaN has no sign. */
    {"l1", 0, {0}, {3, 1}, {2, 1, -1}},
    {"l1", 0, {0}, {1, 3}, {2, -1, 1}},
    {"l1", 0, {0}, {2, 2}, {0, 0, -0.0f}},
    {"l1", 0, {0}, {-0.0f, 0}, {0, 0, -0.0f}},
    {"l1", 0, {0}, {INFINITY, 1}, {INFINITY, 1, -1}},
    {"l1", 0, {0}, {INFINITY, INFINITY}, {NAN, NAN, NAN}},
    {"l1", 0, {0}, {NAN, 1}, {NAN, NAN, NAN}},
    /* huber: line, parabola, kink. */
    {"huber", 0, {0}, {3, 1}, {1.5f, 1, -1}},
    {"huber", 0, {0}, {1, 1.5f}, {0.125f, -0.5f, 0.5f}},
    {"huber", 1, {4}, {3, 1}, {2, 2, -2}},
    {"huber", 0, {0}, {1, 0}, {0.5f, 1, -1}},
    {"huber", 1, {2}, {1, 3}, {2, -2, 2}},
    {"huber", 0, {0}, {-INFINITY, 1}, {INFINITY, -1, 1}},
    {"huber", 0, {0}, {NAN, 1}, {NAN, NAN, NAN}},
    {"log_cosh", 0, {0}, {2, 2}, {0, 0, -0.0f}},
    {"log_cosh", 0, {0}, {1e-30f, 0}, {0, 1e-30f, -1e-30f}},
    {"log_cosh", 0, {0}, {100, 0}, {99.3068528f, 1, -1}},
    {"log_cosh", 0, {0}, {1, INFINITY}, {INFINITY, -1, 1}},
    {"log_cosh", 0, {0}, {1, NAN}, {NAN, NAN, NAN}},
    /* charbonnier: 3, 4, 5; eps = 0 is l1, whose slope at 0 is 0, also where the square underflows. */
    {"charbonnier", 1, {3}, {6, 2}, {5, 0.8f, -0.8f}},
    {"charbonnier", 1, {0}, {2, 5}, {3, -1, 1}},
    {"charbonnier", 1, {0}, {2, 2}, {0, 0, -0.0f}},
    {"charbonnier", 1, {0}, {0, 1e-30f}, {0, -1, 1}},
    {"charbonnier", 0, {0}, {NAN, 2}, {NAN, NAN, NAN}},
    /* quantile: below the target, above it, on it. */
    {"quantile", 1, {0.75}, {1, 3}, {1.5f, -0.75f, 0.75f}},
    {"quantile", 1, {0.75}, {3, 1}, {0.5f, 0.25f, -0.25f}},
    /* tukey_biweight: from c on a constant, c*c/6, and no slope; an infinite c is half of mse. */
    {"tukey_biweight", 1, {2}, {3, 2}, {0.385416657f, 0.5625f, -0.5625f}},
    {"tukey_biweight", 1, {3}, {5, 2}, {1.5f, 0, -0.0f}},
    {"tukey_biweight", 1, {3}, {-1, 2}, {1.5f, 0, -0.0f}},
    {"tukey_biweight", 1, {3}, {INFINITY, 2}, {1.5f, 0, -0.0f}},
    {"tukey_biweight", 1, {INFINITY}, {5, 2}, {4.5f, 3, -3}},
    {"tukey_biweight", 0, {0}, {2, 2}, {0, 0, -0.0f}},
    {"tukey_biweight", 0, {0}, {NAN, 2}, {NAN, NAN, NAN}},
    {"tukey_biweight", 0, {0}, {2, NAN}, {NAN, NAN, NAN}},
    {"quantile", 0, {0}, {2, 2}, {0, 0, -0.0f}},
    {"quantile", 0, {0}, {2, NAN}, {NAN, NAN, NAN}},
    /* epsilon_insensitive: outside, inside, on the edge, where the slope is still 0; eps = 0 is l1. */
    {"epsilon_insensitive", 1, {0.5}, {3, 1}, {1.5f, 1, -1}},
    {"epsilon_insensitive", 1, {0.5}, {1, 1.25f}, {0, 0, -0.0f}},
    {"epsilon_insensitive", 1, {0.5}, {1, 1.5f}, {0, 0, -0.0f}},
    {"epsilon_insensitive", 1, {0}, {1, 3}, {2, -1, 1}},
    {"epsilon_insensitive", 1, {0}, {2, 2}, {0, 0, -0.0f}},
    {"epsilon_insensitive", 0, {0}, {1, INFINITY}, {INFINITY, -1, 1}},
    {"epsilon_insensitive", 0, {0}, {NAN, 1}, {NAN, NAN, NAN}},
    /* mape: the target's magnitude matters beyond eps. */
    {"mape", 0, {0}, {3, 2}, {50, 50, -75}},
    {"mape", 0, {0}, {1, 2}, {50, -50, 25}},
    {"mape", 0, {0}, {-3, -2}, {50, -50, 75}},
    {"mape", 0, {0}, {2, 2}, {0, 0, -0.0f}},
    {"mape", 1, {0.5}, {1, 0}, {200, 200, -200}},
    {"mape", 1, {0.5}, {2, -0.5f}, {500, 200, -200}},
    {"mape", 0, {0}, {0x1p127f, 0x1p126f}, {100, 0x1.9p-120f, -0x1.9p-119f}},
    {"mape", 0, {0}, {NAN, 2}, {NAN, NAN, NAN}},
    {"mape", 0, {0}, {2, NAN}, {NAN, NAN, NAN}},
    /* msle: -1 has an infinite logarithm, less has none. */
    {"msle", 0, {0}, {0, 0}, {0, 0, -0.0f}},
    {"msle", 0, {0}, {7, 7}, {0, 0, -0.0f}},
    {"msle", 0, {0}, {-1, 0}, {INFINITY, -INFINITY, INFINITY}},
    {"msle", 0, {0}, {-2, 0}, {NAN, NAN, NAN}},
    {"msle", 0, {0}, {-2, -2}, {NAN, NAN, NAN}},
    {"msle", 0, {0}, {INFINITY, 1}, {INFINITY, NAN, -INFINITY}},
    {"msle", 0, {0}, {1, NAN}, {NAN, NAN, NAN}},
    /* squared_hinge: as hinge, but smooth at the kink. */
    {"squared_hinge", 0, {0}, {-2, 1}, {9, -6, 12}},
    {"squared_hinge", 0, {0}, {2, 1}, {0, -0.0f, -0.0f}},
    {"squared_hinge", 0, {0}, {1, 1}, {0, -0.0f, -0.0f}},
    {"squared_hinge", 0, {0}, {0.5f, -1}, {2.25f, 3, -1.5f}},
    {"squared_hinge", 1, {3}, {2, 1}, {1, -2, -4}},
    {"squared_hinge", 0, {0}, {NAN, 2}, {NAN, -0.0f, NAN}},
    {"squared_hinge", 0, {0}, {2, INFINITY}, {0, NAN, -0.0f}},
    /* hinge_embedding: alike, unlike and near, unlike and far, on the kink, and targets that are neither. */
    {"hinge_embedding", 0, {0}, {0.5f, 1}, {0.5f, 1, 0}},
    {"hinge_embedding", 0, {0}, {0.5f, -1}, {0.5f, -1, 0}},
    {"hinge_embedding", 0, {0}, {2, -1}, {0, 0, 0}},
    {"hinge_embedding", 0, {0}, {1, -1}, {0, -1, 0}},
    {"hinge_embedding", 0, {0}, {0.5f, 0}, {1, 0, 0}},
    {"hinge_embedding", 1, {2}, {3, 0}, {3, 1, 0}},
    {"hinge_embedding", 0, {0}, {NAN, 1}, {NAN, 1, 0}},
    {"hinge_embedding", 0, {0}, {NAN, -1}, {NAN, 0, 0}},
    /* soft_margin does not overflow. */
    {"soft_margin", 0, {0}, {0, 1}, {0.693147182f, -0.5f, -0.0f}},
    {"soft_margin", 0, {0}, {-1000, 1}, {1000, -1, 1000}},
    {"soft_margin", 0, {0}, {1000, 1}, {0, 0, 0}},
    {"soft_margin", 0, {0}, {1000, -1}, {1000, 1, -1000}},
    {"soft_margin", 0, {0}, {NAN, 1}, {NAN, NAN, NAN}},
    /* margin_ranking: wrong order, right order, on the kink. */
    {"margin_ranking", 0, {0}, {1, 3, 1}, {2, -1, 1, 2}},
    {"margin_ranking", 0, {0}, {3, 1, 1}, {0, -0.0f, 0, -0.0f}},
    {"margin_ranking", 0, {0}, {3, 1, -1}, {2, 1, -1, -2}},
    {"margin_ranking", 0, {0}, {2, 2, 1}, {0, -1, 1, -0.0f}},
    {"margin_ranking", 1, {0.5}, {1, 1, -1}, {0.5f, 1, -1, -0.0f}},
    {"margin_ranking", 0, {0}, {1, 3, NAN}, {NAN, NAN, NAN, 0}},
    /* bce: the logarithms end at -100, and outside of 0 to 1 there is nothing. */
    {"bce", 0, {0}, {0, 0}, {0, 0, INFINITY}},
    {"bce", 0, {0}, {1, 1}, {-0.0f, 0, -INFINITY}}, /* as in PyTorch */
    {"bce", 0, {0}, {0, 1}, {100, -1e12f, INFINITY}},
    {"bce", 0, {0}, {1, 0}, {100, 1e12f, -INFINITY}},
    {"bce", 0, {0}, {0.5f, 0.5f}, {0.693147182f, 0, 0}},
    {"bce", 0, {0}, {2, 0}, {NAN, NAN, NAN}},
    {"bce", 0, {0}, {-1, 0.5f}, {NAN, NAN, NAN}},
    {"bce", 0, {0}, {NAN, 0.5f}, {NAN, NAN, NAN}},
    /* bce_with_logits: exact far from 0, on both sides. */
    {"bce_with_logits", 0, {0}, {0, 0}, {0.693147182f, 0.5f, -0.0f}},
    {"bce_with_logits", 0, {0}, {0, 1}, {0.693147182f, -0.5f, -0.0f}},
    {"bce_with_logits", 0, {0}, {1000, 0}, {1000, 1, -1000}},
    {"bce_with_logits", 0, {0}, {1000, 1}, {0, 0, -1000}},
    {"bce_with_logits", 0, {0}, {-1000, 1}, {1000, -1, 1000}},
    {"bce_with_logits", 0, {0}, {-1000, 0}, {0, 0, 1000}},
    {"bce_with_logits", 0, {0}, {INFINITY, 0}, {INFINITY, 1, -INFINITY}},
    {"bce_with_logits", 0, {0}, {-INFINITY, 1}, {INFINITY, -1, INFINITY}},
    {"bce_with_logits", 0, {0}, {NAN, 1}, {NAN, NAN, NAN}},
    {"bce_with_logits_pos_weight", 0, {0}, {1000, 0, 3}, {1000, 1, -1000, 0}},
    {"bce_with_logits_pos_weight", 0, {0}, {-1000, 1, 3}, {3000, -3, 3000, 1000}},
    {"bce_with_logits_pos_weight", 0, {0}, {0, 1, 2}, {1.38629436f, -1, 0.693147182f, 0.693147182f}},
    {"bce_with_logits_pos_weight", 0, {0}, {0, 1, NAN}, {NAN, NAN, NAN, 0.693147182f}},
    /* focal: a hard wrong one counts in full, a right one not at all; alpha below 0 is none; gamma = 0 is
       bce_with_logits. */
    {"focal", 0, {0}, {1000, 0}, {750, 0.75f, -2750}},
    {"focal", 0, {0}, {1000, 1}, {0, 0, -0.0f}},
    {"focal", 1, {-1}, {1000, 0}, {1000, 1, -3000}},
    {"focal", 2, {-1, 0}, {1000, 0}, {1000, 1, -1000}},
    {"focal", 2, {-1, 0}, {-1000, 1}, {1000, -1, 1000}},
    {"focal", 2, {-1, 1}, {1000, 0}, {1000, 1, -2000}},
    {"focal", 0, {0}, {NAN, 1}, {NAN, NAN, NAN}},
    {"focal_squared", 0, {0}, {1000, 0}, {750, 0.75f, -2750}},
    {"focal_squared", 1, {-1}, {-1000, 1}, {1000, -1, 3000}},
    {"poisson_nll", 0, {0}, {0, 3}, {1, -2, -0.0f}},
    {"poisson_nll", 0, {0}, {1000, 1}, {INFINITY, INFINITY, -1000}},
    {"poisson_nll", 0, {0}, {-1000, 2}, {2000, -2, 1000}},
    {"poisson_nll", 0, {0}, {NAN, 2}, {NAN, NAN, NAN}},
    /* Stirling's term begins above 1. */
    {"poisson_nll_full", 0, {0}, {0, 1}, {1, 0, 0}},
    {"poisson_nll_full", 0, {0}, {0, 0}, {1, 1, 0}},
    {"poisson_nll_full", 0, {0}, {0, NAN}, {NAN, NAN, NAN}},
    {"poisson_nll_rate", 0, {0}, {1, 2}, {1, -1, -0.0f}},
    {"poisson_nll_rate", 1, {1}, {0, 5}, {0, -4, -0.0f}},
    {"poisson_nll_rate", 0, {0}, {-1, 1}, {NAN, 2, NAN}},
    {"poisson_nll_rate_full", 0, {0}, {1, 1}, {1, 0, 0}},
    {"poisson_nll_rate_full", 0, {0}, {1, NAN}, {NAN, NAN, NAN}},
    /* gaussian_nll: a variance below eps is eps, in the slopes, too. */
    {"gaussian_nll", 0, {0}, {3, 1, 1}, {2, 2, -2, -1.5f}},
    {"gaussian_nll", 1, {1}, {3, 1, 1}, {2.9189386f, 2, -2, -1.5f}},
    {"gaussian_nll", 2, {0, 1}, {3, 1, 0}, {2, 2, -2, -1.5f}},
    {"gaussian_nll", 2, {0, 1}, {3, 1, -3}, {2, 2, -2, -1.5f}},
    {"gaussian_nll", 0, {0}, {3, 1, NAN}, {NAN, NAN, NAN, NAN}},
    {"gaussian_nll", 0, {0}, {NAN, 1, 1}, {NAN, NAN, NAN, NAN}},
    /* kl_div: 0 log 0 is 0, and autograd's slope there is NaN. */
    {"kl_div", 0, {0}, {-1, 0}, {0, -0.0f, NAN}},
    {"kl_div", 0, {0}, {-1, 1}, {1, -1, 2}},
    {"kl_div", 0, {0}, {-INFINITY, 0}, {NAN, -0.0f, NAN}},
    {"kl_div", 0, {0}, {-1, -1}, {NAN, 1, NAN}},
    /* relative_entropy: 0 log 0 is 0, also over 0; what is predicted as 0 and is not is infinite. */
    {"relative_entropy", 0, {0}, {0.5f, 0.5f}, {0, -1, 1}},
    {"relative_entropy", 0, {0}, {0.5f, 0}, {0, 0, NAN}},
    {"relative_entropy", 0, {0}, {0, 0}, {0, 0, NAN}},
    {"relative_entropy", 0, {0}, {0, 0.5f}, {INFINITY, -INFINITY, INFINITY}},
    {"relative_entropy", 0, {0}, {-0.5f, 0.5f}, {NAN, 1, NAN}},
    {"relative_entropy", 0, {0}, {0.5f, -0.5f}, {NAN, 1, NAN}},
    {"relative_entropy", 0, {0}, {NAN, 0}, {NAN, NAN, NAN}},
    {"kl_div_log_target", 0, {0}, {-1, 0}, {1, -1, 2}},
    {"kl_div_log_target", 0, {0}, {0, -INFINITY}, {NAN, -0.0f, NAN}},
    {"gamma_deviance", 0, {0}, {2, 2}, {0, 0, 0}},
    {"gamma_deviance", 0, {0}, {1, 0}, {INFINITY, 2, -INFINITY}},
    {"gamma_deviance", 0, {0}, {1, -1}, {NAN, 4, 4}},
    {"gamma_deviance", 0, {0}, {NAN, 1}, {NAN, NAN, NAN}},
    {"gamma_deviance", 0, {0}, {1e-40f, 2}, {INFINITY, -INFINITY, INFINITY}},
    {"gamma_deviance", 0, {0}, {0x1p-100f, 0x1p40f}, {INFINITY, -INFINITY, 0x1p101f}},
    {"gamma_deviance", 0, {0}, {-1, 0x1p-149f}, {NAN, -2, -INFINITY}},
    {"gamma_deviance", 0, {0}, {0, 2}, {NAN, -INFINITY, INFINITY}},
    /* tweedie_deviance: of power 1.5 it is 4*(sqrt(p) - sqrt(t))^2/sqrt(p), of 3 (p - t)^2/(p*p*t). A target of 0 is
       infinitely far off from power 2 on. */
    {"tweedie_deviance", 0, {0}, {4, 1}, {2, 0.75f, -2}},
    {"tweedie_deviance", 0, {0}, {1, 4}, {4, -6, 2}},
    {"tweedie_deviance", 0, {0}, {4, 0}, {8, 1, -INFINITY}},
    {"tweedie_deviance", 0, {0}, {2, 2}, {0, 0, -0.0f}},
    {"tweedie_deviance", 1, {1}, {1, 0}, {2, 2, -INFINITY}},
    {"tweedie_deviance", 1, {1}, {3, 3}, {0, 0, -0.0f}},
    {"tweedie_deviance", 1, {2}, {2, 0}, {INFINITY, 1, -INFINITY}},
    {"tweedie_deviance", 1, {3}, {2, 1}, {0.25f, 0.25f, -0.75f}},
    {"tweedie_deviance", 1, {3}, {1, 2}, {0.5f, -2, 0.75f}},
    {"tweedie_deviance", 1, {3}, {0x1p-140f, 0x1p-140f}, {0, 0, -0.0f}},
    {"tweedie_deviance", 0, {0}, {0, 2}, {INFINITY, -INFINITY, INFINITY}},
    {"tweedie_deviance", 0, {0}, {1, -1}, {NAN, 4, NAN}},
    {"tweedie_deviance", 1, {1}, {-1, -2}, {NAN, NAN, NAN}},
    {"tweedie_deviance", 0, {0}, {NAN, 1}, {NAN, NAN, NAN}},
    {"tweedie_deviance", 0, {0}, {1, NAN}, {NAN, NAN, NAN}},
};

static void test_tables(void) {
    static const char *const names[ORACLE_PARTS] = {"value", "slope p", "slope t", "slope v"};
    for (size_t i = 0; i < sizeof known_results / sizeof known_results[0]; i++) {
        const known *row = &known_results[i];
        float got[ORACLE_PARTS] = {-77, -77, -77, -77};
        one_element(row->loss, row->parameter_count, row->parameter, row->operand, got);
        for (int j = 0; j < 1 + oracle_loss_named(row->loss)->operand_count; j++) {
            char what[200];
            snprintf(what, sizeof what, "%s(%g, %g) of p = %g, t = %g, v = %g: %s (expected %.9g, got %.9g)", row->loss,
                     row->parameter[0], row->parameter[1], (double)row->operand[0], (double)row->operand[1],
                     (double)row->operand[2], names[j], (double)row->part[j], (double)got[j]);
            CHECK_BITS(oracle_encode(ONEPASS_F32, (double)row->part[j]), oracle_load_bits(ONEPASS_F32, &got[j]), what);
        }
    }
}

/* Means of nothing, and NaN or infinity anywhere in a long sum. */
static void test_reduced_specials(void) {
    enum {
        COUNT = 5000
    };
    static float operand[ORACLE_OPERANDS][COUNT];
    const int64_t count = COUNT;
    for (int i = 0; oracle_loss_at(i); i++) {
        const oracle_loss *loss = oracle_loss_at(i);
        onepass_tensor in[ORACLE_OPERANDS];
        float value = 7, expected = -7;
        const onepass_tensor v = {&value, ONEPASS_F32, 0, NULL, NULL}, e = {&expected, ONEPASS_F32, 0, NULL, NULL};
        onepass_call call = {.size = sizeof call, .loss = loss->name, .value = &v};
        uint64_t state = (uint64_t)i;
        for (int j = 0; j < loss->operand_count; j++) {
            in[j] = (onepass_tensor){operand[j], ONEPASS_F32, 1, &count, NULL};
            call.operand[j] = &in[j];
            for (int at = 0; at < COUNT; at++) {
                oracle_store_bits(ONEPASS_F32, &operand[j][at],
                                  random_operand(&state, DATA_NORMAL, loss->domain[j], ONEPASS_F32, 0));
            }
        }
        for (int64_t at = 0; at < COUNT; at += 831) {
            const float kept = operand[0][at];
            operand[0][at] = NAN;
            CHECK_OK(onepass_run(&call), loss->name);
            CHECK_BITS(0x7fc00000, oracle_load_bits(ONEPASS_F32, &value), "mean with one NaN");
            operand[0][at] = at % 2 ? INFINITY : -INFINITY;
            CHECK_OK(onepass_run(&call), loss->name);
            call.value = &e;
            oracle_run(&call);
            call.value = &v;
            CHECK_BITS(oracle_load_bits(ONEPASS_F32, &expected), oracle_load_bits(ONEPASS_F32, &value),
                       "mean with an infinite prediction");
            operand[0][at] = kept;
        }
        const int64_t none = 0;
        for (int j = 0; j < loss->operand_count; j++) {
            in[j].shape = &none;
        }
        CHECK_OK(onepass_run(&call), loss->name);
        CHECK_BITS(0x7fc00000, oracle_load_bits(ONEPASS_F32, &value), "mean of nothing");
    }
}

/* -------------------------------------------------------------- weights -- */

typedef struct weighed {
    const char *what;
    int32_t reduction;
    double divisor;
    float weight[4];
    float value, gradient[4];
} weighed;

/* mse of p = 1, 2, 3, 4 and t = 0, by hand: terms 1, 4, 9, 16, slopes 2, 4, 6, 8. */
static const weighed weighed_results[] = {
    {"mean", ONEPASS_MEAN, 0, {1, 0, 2, -1}, 1.5f, {1, 0, 6, -4}},
    {"sum", ONEPASS_SUM, 0, {1, 0, 2, -1}, 3, {2, 0, 12, -8}},
    {"mean with a divisor", ONEPASS_MEAN, 4, {1, 0, 2, -1}, 0.75f, {0.5f, 0, 3, -2}},
    {"mean of ones", ONEPASS_MEAN, 0, {1, 1, 1, 1}, 7.5f, {0.5f, 1, 1.5f, 2}},
    {"weights that sum to 0", ONEPASS_MEAN, 0, {1, -1, 0, 0}, -INFINITY, {INFINITY, -INFINITY, NAN, NAN}},
    {"no weight at all", ONEPASS_MEAN, 0, {0, 0, 0, 0}, NAN, {NAN, NAN, NAN, NAN}},
    {"a NaN", ONEPASS_MEAN, 0, {NAN, 1, 1, 1}, NAN, {NAN, NAN, NAN, NAN}},
    {"a NaN in a sum", ONEPASS_SUM, 0, {NAN, 1, 1, 1}, NAN, {NAN, 4, 6, 8}},
    {"an infinite one", ONEPASS_MEAN, 0, {INFINITY, 1, -1, 1}, NAN, {NAN, 0, -0.0f, 0}},
};

static void test_weights_by_hand(void) {
    float p[4] = {1, 2, 3, 4}, t = 0;
    const int64_t count = 4;
    const onepass_tensor prediction = {p, ONEPASS_F32, 1, &count, NULL}, target = {&t, ONEPASS_F32, 0, NULL, NULL};
    for (size_t i = 0; i < sizeof weighed_results / sizeof weighed_results[0]; i++) {
        const weighed *row = &weighed_results[i];
        float weight[4], value = -77, gradient[4] = {-77, -77, -77, -77};
        memcpy(weight, row->weight, sizeof weight);
        const onepass_tensor w = {weight, ONEPASS_F32, 1, &count, NULL}, v = {&value, ONEPASS_F32, 0, NULL, NULL};
        const onepass_tensor g = {gradient, ONEPASS_F32, 1, &count, NULL};
        const onepass_call call = {.size = sizeof call,
                                   .loss = "mse",
                                   .reduction = row->reduction,
                                   .divisor = row->divisor,
                                   .operand = {&prediction, &target},
                                   .weight = &w,
                                   .value = &v,
                                   .gradient = {&g}};
        CHECK_OK(onepass_run(&call), row->what);
        CHECK_BITS(oracle_encode(ONEPASS_F32, (double)row->value), oracle_load_bits(ONEPASS_F32, &value), row->what);
        for (int j = 0; j < 4; j++) {
            CHECK_BITS(oracle_encode(ONEPASS_F32, (double)row->gradient[j]),
                       oracle_load_bits(ONEPASS_F32, &gradient[j]), row->what);
        }
    }
}

/* Of loops over every loss that are about bits sanitizers see a quarter, each loss another one. */
static int is_taken(int turn) {
    return !CHECK_SANITIZED || check_takes((size_t)turn, 4);
}

/* Weights of 1 have the bits of none, and so has a mask that leaves all elements. */
static void test_weights_of_one(void) {
    for (int i = 0; oracle_loss_at(i); i++) {
        for (int turn = 0; turn < 24; turn++) {
            if (!is_taken(turn + i)) {
                continue;
            }
            test_case c = {.group = "ones",
                           .loss = oracle_loss_at(i)->name,
                           .prediction = turn % 4 == 3 ? ONEPASS_F64 : ONEPASS_F32,
                           .target = ONEPASS_F32,
                           .gradient = ONEPASS_F64,
                           .value = ONEPASS_F64,
                           .upstream_dtype = ONEPASS_F32,
                           .reduction = turn % 4,
                           .wanted = WANT_ALL,
                           .upstream = turn / 3 % 4,
                           .layout = case_layout_named("target per row"),
                           .rows = 7,
                           .columns = turn % 2 ? 191 : 2048,
                           .data = DATA_NORMAL,
                           .weight_dtype = ONEPASS_F16,
                           .weights = WEIGHTS_ONE,
                           .masks = MASKS_ALL,
                           .seed = (uint64_t)turn};
            const int how = turn / 2 % 3; /* a weight, a mask, both */
            prepared_case *without = case_prepare(&c);
            /* Filled after the weight, the third operand has other numbers; these are taken over. */
            c.weight = how == 1 ? WEIGHT_ABSENT : turn % 2 ? WEIGHT_DENSE : WEIGHT_SCALAR;
            c.mask = how == 0 ? WEIGHT_ABSENT : turn % 2 ? WEIGHT_PER_ROW : WEIGHT_DENSE;
            prepared_case *with = case_prepare(&c);
            memcpy(with->block + with->begin[TENSOR_THIRD], without->block + without->begin[TENSOR_THIRD],
                   with->bytes[TENSOR_THIRD]);
            CHECK_OK(onepass_run(&without->call), "without weights");
            CHECK_OK(onepass_run(&with->call), "with weights of 1 or a full mask");
            for (int which = TENSOR_VALUE; which <= TENSOR_GRADIENT_THIRD; which++) {
                CHECK(memcmp(without->block + without->begin[which], with->block + with->begin[which],
                             without->bytes[which]) == 0,
                      "%s, turn %d: expected the bits of a call without weights in %s", c.loss, turn,
                      case_owner(with, with->begin[which]));
            }
            case_free(without);
            case_free(with);
        }
    }
}

/* ---------------------------------------------------------------- masks -- */

typedef struct masked {
    const char *what;
    int32_t reduction;
    double divisor;
    unsigned char mask[4];
    int weighted; /* by 1, 0, 2, -1 */
    float value, gradient[4];
} masked;

/* mse of p = 1, 2, 3, 4 and t = 0, by hand, as for the weights. The common shape is (2, 2). */
static const masked masked_results[] = {
    {"mean", ONEPASS_MEAN, 0, {1, 0, 0, 255}, 0, 8.5f, {1, 0, 0, 4}},
    {"sum", ONEPASS_SUM, 0, {1, 0, 0, 2}, 0, 17, {2, 0, 0, 8}},
    {"mean with a divisor", ONEPASS_MEAN, 4, {0, 1, 1, 0}, 0, 3.25f, {0, 1, 1.5f, 0}},
    {"batchmean", ONEPASS_BATCHMEAN, 0, {1, 0, 0, 1}, 0, 8.5f, {1, 0, 0, 4}},
    {"batchmean of all", ONEPASS_BATCHMEAN, 0, {1, 1, 1, 1}, 0, 15, {1, 2, 3, 4}},
    {"nothing takes part", ONEPASS_MEAN, 0, {0, 0, 0, 0}, 0, NAN, {0, 0, 0, 0}},
    {"nothing takes part in a sum", ONEPASS_SUM, 0, {0, 0, 0, 0}, 0, 0, {0, 0, 0, 0}},
    {"nothing takes part in a batchmean", ONEPASS_BATCHMEAN, 0, {0, 0, 0, 0}, 0, 0, {0, 0, 0, 0}},
    {"weighted mean", ONEPASS_MEAN, 0, {1, 1, 1, 0}, 1, 19.0f / 3, {2.0f / 3, 0, 4, 0}},
    {"weighted mean of weights that sum to 0",
     ONEPASS_MEAN,
     0,
     {1, 1, 0, 1},
     1,
     -INFINITY,
     {INFINITY, NAN, 0, -INFINITY}},
    {"weighted batchmean", ONEPASS_BATCHMEAN, 0, {0, 1, 1, 1}, 1, 1, {0, 0, 6, -4}},
};

static void test_masks_by_hand(void) {
    static const int64_t shape[2] = {2, 2};
    float p[4] = {1, 2, 3, 4}, t = 0, weight[4] = {1, 0, 2, -1};
    for (size_t i = 0; i < sizeof masked_results / sizeof masked_results[0]; i++) {
        const masked *row = &masked_results[i];
        unsigned char mask[4];
        float value = -77, gradient[4] = {-77, -77, -77, -77};
        memcpy(mask, row->mask, sizeof mask);
        const onepass_tensor prediction = {p, ONEPASS_F32, 2, shape, NULL}, target = {&t, ONEPASS_F32, 0, NULL, NULL};
        const onepass_tensor m = {mask, ONEPASS_BOOL, 2, shape, NULL}, w = {weight, ONEPASS_F32, 2, shape, NULL};
        const onepass_tensor v = {&value, ONEPASS_F32, 0, NULL, NULL}, g = {gradient, ONEPASS_F32, 2, shape, NULL};
        const onepass_call call = {.size = sizeof call,
                                   .loss = "mse",
                                   .reduction = row->reduction,
                                   .divisor = row->divisor,
                                   .operand = {&prediction, &target},
                                   .weight = row->weighted ? &w : NULL,
                                   .mask = &m,
                                   .value = &v,
                                   .gradient = {&g}};
        CHECK_OK(onepass_run(&call), row->what);
        CHECK_BITS(oracle_encode(ONEPASS_F32, (double)row->value), oracle_load_bits(ONEPASS_F32, &value), row->what);
        for (int j = 0; j < 4; j++) {
            CHECK_BITS(oracle_encode(ONEPASS_F32, (double)row->gradient[j]),
                       oracle_load_bits(ONEPASS_F32, &gradient[j]), row->what);
        }
    }
}

/* Every loss and type, with a weight, a mask, both and neither: over the number of elements, to the bit. */
static void test_over_elements(void) {
    static const int32_t lies[] = {WEIGHT_ABSENT, WEIGHT_DENSE, WEIGHT_DENSE + 1};
    int turn = 0;
    for (int l = 0; oracle_loss_at(l); l++) {
        for (int32_t dtype = ONEPASS_F16; dtype <= ONEPASS_F64; dtype++) {
            for (int beside = 0; beside < 9; beside++, turn++) {
                if (!is_taken(turn)) {
                    continue;
                }
                test_case c = case_dense("over elements", oracle_loss_at(l)->name, dtype, turn % 5 ? 127 : 3001);
                c.wanted = WANT_ALL;
                c.upstream = UPSTREAM_OTHER;
                c.rows = 3;
                c.data = DATA_UNIFORM;
                c.weight = lies[beside / 3];
                c.weight_dtype = turn % 7 ? dtype : ONEPASS_F64;
                c.weights = turn % WEIGHTS_COUNT;
                c.mask = lies[beside % 3];
                c.masks = turn / 2 % MASKS_COUNT;
                c.threads = turn % 3;
                c.seed = (uint64_t)turn;
                prepared_case *expected = case_prepare(&c), *got = case_prepare(&c);
                char difference[160], text[512];
                case_describe(&c, text, sizeof text);
                expected->call.flags = got->call.flags = ONEPASS_OVER_ELEMENTS;
                oracle_run(&expected->call);
                if (CHECK_OK(onepass_run(&got->call), text)) {
                    CHECK(case_equal(expected, got, difference, sizeof difference), "%s: %s", difference, text);
                }
                case_free(expected);
                case_free(got);
            }
        }
    }
}

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

/* ---------------------------------------------------------- conversions -- */

/* The gradient of hinge in p is -t where p = 0, so it shows how t is loaded and the
 * result stored, and nothing else. Both vectorised and, in the last few, not. */
static void negated_by_library(int32_t from, const void *t, int32_t to, void *gradient, int64_t count) {
    float zero = 0;
    const onepass_tensor p = {&zero, ONEPASS_F32, 0, NULL, NULL};
    const onepass_tensor target = {(void *)(uintptr_t)t, from, 1, &count, NULL};
    const onepass_tensor g = {gradient, to, 1, &count, NULL};
    CHECK_OK(onepass_backward("hinge", ONEPASS_SUM, &p, &target, NULL, &g, NULL), "conversion");
}

static void check_negated(int32_t from, const unsigned char *t, int32_t to, unsigned char *gradient, int64_t count) {
    negated_by_library(from, t, to, gradient, count);
    for (int64_t i = 0; i < count; i++) {
        const double value = oracle_load(from, t + (size_t)i * oracle_size(from));
        const double expected = value - value == 0 ? -value : NAN; /* 0 times infinity is NaN */
        char what[96];
        snprintf(what, sizeof what, "%a from %s, negated, to %s", value, oracle_dtype_name(from),
                 oracle_dtype_name(to));
        CHECK_BITS(oracle_encode(to, expected), oracle_load_bits(to, gradient + (size_t)i * oracle_size(to)), what);
    }
}

/* Every 16-bit pattern is loaded; and every tie between two 16-bit numbers is stored, with its
 * neighbours in the wider type on both sides, which a rounding in two steps gets wrong. */
static void test_library_conversions(void) {
    enum {
        PATTERNS = 65536,
        MOST = 3 * PATTERNS + 16
    };
    unsigned char *t = malloc(MOST * sizeof(double));
    unsigned char *gradient = malloc(MOST * sizeof(double));
    if (!t || !gradient) {
        perror("malloc");
        exit(1);
    }
    for (int32_t small = ONEPASS_F16; small <= ONEPASS_BF16; small++) {
        for (uint64_t bits = 0; bits < PATTERNS; bits++) {
            oracle_store_bits(small, t + 2 * bits, bits);
        }
        check_negated(small, t, ONEPASS_F32, gradient, PATTERNS);
        check_negated(small, t, ONEPASS_F64, gradient, PATTERNS);
        for (int32_t wide = ONEPASS_F32; wide <= ONEPASS_F64; wide++) {
            const size_t size = oracle_size(wide);
            int64_t count = 0;
            for (uint64_t bits = 0; bits < PATTERNS; bits++) {
                const double low = oracle_decode(small, bits);
                const double high = oracle_decode(small, bits + 1);
                /* Beyond the largest the next step would have the same length. */
                const double step = high - high == 0 ? high - low : low - oracle_decode(small, bits - 1);
                const uint64_t tie = oracle_encode(wide, low + step / 2);
                for (uint64_t around = tie - 1; low - low == 0 && tie && around != tie + 2; around++) {
                    oracle_store_bits(wide, t + (size_t)count++ * size, around);
                }
            }
            check_negated(wide, t, small, gradient, count);
        }
    }
    free(t);
    free(gradient);
}

/* ----------------------------------------------------------- the oracle -- */

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

/* The oracle's conversions against the compiler's, where C has them. */
static void test_conversions(void) {
    uint64_t state = 5;
    for (int i = 0; i < 20000; i++) {
        const double value = oracle_double_from_bits(random_bits(&state));
        const double scaled = oracle_decode(ONEPASS_F64, random_element(&state, DATA_TINY, ONEPASS_F32, 0));
        const double both[2] = {value, scaled};
        for (int j = 0; j < 2; j++) {
            const float rounded = (float)both[j];
            if (both[j] == both[j]) {
                CHECK_BITS(oracle_load_bits(ONEPASS_F32, &rounded), oracle_encode(ONEPASS_F32, both[j]), "to float");
            }
        }
    }
    /* Every 16-bit pattern survives the way to double and back; NaN becomes canonical. */
    for (uint64_t bits = 0; bits < 65536; bits++) {
        const int nan_f16 = (bits & 0x7fff) > 0x7c00;
        const int nan_bf16 = (bits & 0x7fff) > 0x7f80;
        CHECK_BITS(nan_f16 ? 0x7e00 : bits, oracle_encode(ONEPASS_F16, oracle_decode(ONEPASS_F16, bits)), "f16");
        CHECK_BITS(nan_bf16 ? 0x7fc0 : bits, oracle_encode(ONEPASS_BF16, oracle_decode(ONEPASS_BF16, bits)), "bf16");
    }
    /* Ties, the last finite number, the first infinite one and denormals, by hand. */
    CHECK_BITS(0x7bff, oracle_encode(ONEPASS_F16, 65519.99), "f16 below the tie");
    CHECK_BITS(0x7c00, oracle_encode(ONEPASS_F16, 65520), "f16 at the tie to infinity");
    CHECK_BITS(0x3c00, oracle_encode(ONEPASS_F16, 1 + 0x1p-11), "f16 tie to even, down");
    CHECK_BITS(0x3c02, oracle_encode(ONEPASS_F16, 1 + 0x3p-11), "f16 tie to even, up");
    CHECK_BITS(0x3c01, oracle_encode(ONEPASS_F16, 1 + 0x1p-11 + 0x1p-50), "f16 just above a tie");
    CHECK_BITS(0x0000, oracle_encode(ONEPASS_F16, 0x1p-25), "f16 half of the least denormal");
    CHECK_BITS(0x0001, oracle_encode(ONEPASS_F16, 0x1.000001p-25), "f16 above half of the least denormal");
    CHECK_BITS(0x8400, oracle_encode(ONEPASS_F16, -0x1.ffffffp-15), "f16 up to the least normal");
    CHECK_BITS(0x3f80, oracle_encode(ONEPASS_BF16, 1 + 0x1p-8), "bf16 tie to even, down");
    CHECK_BITS(0x3f82, oracle_encode(ONEPASS_BF16, 1 + 0x3p-8), "bf16 tie to even, up");
    CHECK_BITS(0x0001, oracle_encode(ONEPASS_BF16, 0x1p-133), "bf16 least denormal");
    CHECK_BITS(0x7f80, oracle_encode(ONEPASS_BF16, 0x1.ffp127), "bf16 at the tie to infinity");
}

int main(void) {
    onepass_cpu_cores = 5; /* the most threads that a case has */
    test_conversions();
    test_catalogue();
    test_tables();
    test_reduced_specials();
    test_weights_by_hand();
    test_weights_of_one();
    test_masks_by_hand();
    test_over_elements();
    test_batchmean_of_scalars();
    test_huge_numbers();
    test_values_with_gradients();
    test_edges();
    test_library_conversions();
    test_list();
    return check_finish();
}
