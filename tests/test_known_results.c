/*
 * Results that were worked out by hand, NaN, infinity, kinks and zeros among them, so that a slip in the oracle's
 * formulas has a second witness. Every loss has some.
 */
#include "cases.h"
#include "check.h"
#include "oracle.h"

#include <math.h>

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

static void test_every_loss_is_there(void) {
    for (int i = 0; oracle_loss_at(i); i++) {
        const char *name = oracle_loss_at(i)->name;
        size_t at = 0, count = sizeof known_results / sizeof known_results[0];
        while (at < count && strcmp(known_results[at].loss, name) != 0) {
            at++;
        }
        CHECK(at < count, "%s: expected a line in known_results, got none", name);
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

int main(void) {
    test_every_loss_is_there();
    test_tables();
    test_reduced_specials();
    return check_finish();
}
