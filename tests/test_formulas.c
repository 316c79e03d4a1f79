/*
 * The losses as mathematics. What the library computes in double is compared with three witnesses in long double:
 *
 * - the formulas of onepass_loss_info, which people and programs read, for the value and the slope in p;
 * - the lines of oracle_losses.def with libm's functions, for the value and every slope;
 * - finite differences of the first, for every slope.
 *
 * How far the library may be off is not a number for each loss. The first witness brings a running error analysis: it
 * adds up how far an evaluation of the formula in double, operation by operation, may be off, and the library may be
 * off by four times that. The second is evaluated beside the arguments, too, and the library may be off by what a
 * change of the arguments in their last digits makes of the result, and by some of its own last digits. Where a
 * comparison hangs on the last digits, as at a kink, nothing can be said; kinks are in the tables of test_losses.c.
 */
#include "cases.h"
#include "check.h"
#include "oracle.h"

#include <float.h>
#include <math.h>

enum {
    TRIALS = 1000
};

/* A rounding of a double is off by at most this, relative to the result. */
#define UNIT ((long double)0x1p-53)

/* ------------------------------------------------------- running errors -- */

/* A number, and how far from it an evaluation in double may be. */
typedef struct inexact {
    long double value, error;
} inexact;

/* Whether a comparison was within the errors. */
static int uncertain;

static inexact exactly(long double value) {
    return (inexact){value, 0};
}

/* What a function or an operation makes of it: `error` comes from its arguments, and it rounds `times` on its own. */
static inexact rounded(long double value, long double error, int times) {
    return (inexact){value, error + times * UNIT * fabsl(value)};
}

static inexact sum(inexact a, inexact b, int sign) {
    return rounded(a.value + sign * b.value, a.error + b.error, 1);
}

static inexact product(inexact a, inexact b) {
    return rounded(a.value * b.value, fabsl(a.value) * b.error + (fabsl(b.value) + b.error) * a.error, 1);
}

static inexact ratio(inexact a, inexact b) {
    const long double value = a.value / b.value;
    return rounded(value, (a.error + fabsl(value) * b.error) / fabsl(b.value), 1);
}

static int compare(inexact a, const char *operator, inexact b) {
    if (a.error + b.error > 0 && fabsl(a.value - b.value) <= a.error + b.error) {
        uncertain = 1;
    }
    if (operator[0] == '<') {
        return operator[1] == '=' ? a.value <= b.value : a.value<b.value;
    }
    if (operator[0] == '>') {
        return operator[1] == '=' ? a.value >= b.value : a.value> b.value;
    }
    return operator[0] == '=' ? a.value == b.value : a.value != b.value;
}

static long double sigmoid(long double x) {
    return x < 0 ? expl(x) / (1 + expl(x)) : 1 / (1 + expl(-x));
}

static long double softplus(long double x) {
    return x > 0 ? x + log1pl(expl(-x)) : log1pl(expl(x));
}

/* Elementary functions of the library are off by a unit or two, which is twice what a rounding is. */
static inexact function_of(const char *name, inexact a, inexact b) {
    const long double x = a.value;
    if (strcmp(name, "abs") == 0) {
        return (inexact){fabsl(x), a.error};
    }
    if (strcmp(name, "sign") == 0) {
        compare(a, "<", exactly(0));
        return exactly((x > 0) - (x < 0));
    }
    if (strcmp(name, "exp") == 0) {
        return rounded(expl(x), expl(x) * a.error, 2);
    }
    if (strcmp(name, "log") == 0) {
        return rounded(logl(x), a.error / x, 2);
    }
    if (strcmp(name, "log1p") == 0) {
        return rounded(log1pl(x), a.error / (1 + x), 2);
    }
    if (strcmp(name, "sqrt") == 0) {
        return rounded(sqrtl(x), x > 0 ? a.error / (2 * sqrtl(x)) : a.error, 1);
    }
    if (strcmp(name, "tanh") == 0) {
        return rounded(tanhl(x), a.error * (1 - tanhl(x) * tanhl(x)), 2);
    }
    if (strcmp(name, "sigmoid") == 0) {
        return rounded(sigmoid(x), a.error * sigmoid(x), 2);
    }
    if (strcmp(name, "softplus") == 0) {
        return rounded(softplus(x), a.error * sigmoid(x), 4);
    }
    if (strcmp(name, "max") == 0) {
        return x >= b.value || x != x ? a : b; /* NaN comes through */
    }
    if (strcmp(name, "min") == 0) {
        return x <= b.value || x != x ? a : b;
    }
    /* A power by way of exponential and logarithm, whose rounding the exponent magnifies. */
    CHECK(strcmp(name, "pow") == 0, "expected a function's name in a formula, got %s", name);
    const long double value = powl(x, b.value), logarithm = x > 0 ? fabsl(logl(x)) : 0;
    const long double relative = x > 0 ? fabsl(b.value) * (a.error / x + 2 * UNIT * logarithm) : 0;
    return rounded(value, value * (relative + logarithm * b.error), 4);
}

/* -------------------------------------------------------------- formulas -- */

typedef struct reader {
    const char *at;
    const onepass_loss_info *info;
    const long double *operand, *parameter;
} reader;

static inexact read_choice(reader *r);

static int skip(reader *r, const char *text) {
    while (*r->at == ' ') {
        r->at++;
    }
    if (strncmp(r->at, text, strlen(text)) != 0) {
        return 0;
    }
    r->at += strlen(text);
    return 1;
}

static void expect(reader *r, const char *text) {
    if (!skip(r, text)) {
        printf("%s: expected %s in a formula, got \"%s\"\n", r->info->name, text, r->at);
        exit(1);
    }
}

/* A number is what its digits say, if that is a double. */
static inexact read_number(reader *r) {
    char *end;
    const double number = strtod(r->at, &end);
    const long double precise = strtold(r->at, &end);
    r->at = end;
    return (inexact){number, number == precise ? 0 : UNIT * fabsl(precise)};
}

static inexact variable(const reader *r, const char *name) {
    static const char *const names[ORACLE_OPERANDS] = {"p", "t", "v"};
    for (int i = 0; i < r->info->operand_count; i++) {
        if (strcmp(name, names[i]) == 0) {
            return exactly(r->operand[i]);
        }
    }
    for (int i = 0; i < r->info->parameter_count; i++) {
        if (strcmp(name, r->info->parameter[i].name) == 0) {
            return exactly(r->parameter[i]);
        }
    }
    CHECK(strcmp(name, "x") == 0, "%s: expected a name that the formula may use, got %s", r->info->name, name);
    return rounded(r->operand[0] - r->operand[1], 0, 1);
}

static inexact read_name(reader *r) {
    char name[32] = "";
    for (size_t i = 0;
         i + 1 < sizeof name && ((*r->at >= 'a' && *r->at <= 'z') || *r->at == '_' || (i && *r->at == '1')); i++) {
        name[i] = *r->at++;
    }
    if (!skip(r, "(")) {
        return variable(r, name);
    }
    const inexact a = read_choice(r);
    const inexact b = skip(r, ",") ? read_choice(r) : exactly(0);
    expect(r, ")");
    return function_of(name, a, b);
}

static inexact read_factor(reader *r) {
    if (skip(r, "-")) {
        const inexact a = read_factor(r);
        return (inexact){-a.value, a.error};
    }
    if (skip(r, "(")) {
        const inexact a = read_choice(r);
        expect(r, ")");
        return a;
    }
    return (*r->at >= '0' && *r->at <= '9') ? read_number(r) : read_name(r);
}

static inexact read_term(reader *r) {
    inexact a = read_factor(r);
    for (;;) {
        if (skip(r, "*")) {
            a = product(a, read_factor(r));
        } else if (skip(r, "/")) {
            a = ratio(a, read_factor(r));
        } else {
            return a;
        }
    }
}

static inexact read_sum(reader *r) {
    inexact a = read_term(r);
    for (;;) {
        if (skip(r, "+")) {
            a = sum(a, read_term(r), 1);
        } else if (skip(r, "-")) {
            a = sum(a, read_term(r), -1);
        } else {
            return a;
        }
    }
}

/* condition ? a : b. What is not chosen has no say in what is uncertain. */
static inexact read_choice(reader *r) {
    static const char *const operators[] = {"<=", ">=", "==", "!=", "<", ">"};
    const inexact a = read_sum(r);
    for (size_t i = 0; i < sizeof operators / sizeof operators[0]; i++) {
        if (skip(r, operators[i])) {
            const int holds = compare(a, operators[i], read_sum(r));
            expect(r, "?");
            const int before = uncertain;
            const inexact b = read_choice(r);
            const int in_first = uncertain;
            uncertain = before;
            expect(r, ":");
            const inexact c = read_choice(r);
            uncertain = holds ? in_first : uncertain;
            return holds ? b : c;
        }
    }
    return a;
}

static inexact evaluate(const onepass_loss_info *info, const char *formula, const long double *operand,
                        const long double *parameter) {
    reader r = {formula, info, operand, parameter};
    uncertain = 0;
    const inexact result = read_choice(&r);
    skip(&r, "");
    CHECK(!*r.at, "%s: expected the end of the formula, got \"%s\"", info->name, r.at);
    return result;
}

/* ------------------------------------------------------------- arguments -- */

/* What the library makes of many arguments, in double: the value and the slopes of each. */
typedef struct trials {
    const onepass_loss_info *info;
    const oracle_loss *oracle;
    double parameter[ONEPASS_MAX_PARAMETERS];
    double operand[ORACLE_OPERANDS][TRIALS];
    double part[ORACLE_PARTS][TRIALS];
} trials;

/* Of moderate size, since a formula may overflow where the library does not: near 0 and far from it, and now and then a
 * round number. */
static double argument(uint64_t *state, oracle_domain domain) {
    static const double round[] = {0, 1, 0.5, 2, 3, 20, 300, 0x1p-20, 1e-5};
    const int64_t choice = random_below(state, 10);
    if (choice == 0) {
        double number = round[random_below(state, sizeof round / sizeof round[0])];
        if (domain == ORACLE_PROBABILITY && number > 1) {
            number = 1;
        }
        return domain == ORACLE_ANY && random_below(state, 2) ? -number : number;
    }
    const int32_t data = choice < 5 ? DATA_UNIFORM : DATA_NORMAL;
    const double number = oracle_decode(ONEPASS_F64, random_operand(state, data, domain, ONEPASS_F64, 0));
    return choice == 9 && domain == ORACLE_ANY ? 16 * number : number;
}

static void compute(trials *all) {
    const int64_t count = TRIALS;
    onepass_tensor in[ORACLE_OPERANDS], out[ORACLE_PARTS];
    onepass_call call = {.size = sizeof call,
                         .loss = all->info->name,
                         .reduction = ONEPASS_NONE,
                         .parameter_count = all->info->parameter_count};
    memcpy(call.parameter, all->parameter, sizeof call.parameter);
    for (int j = 0; j < 1 + all->info->operand_count; j++) {
        out[j] = (onepass_tensor){all->part[j], ONEPASS_F64, 1, &count, NULL};
        if (j) {
            in[j - 1] = (onepass_tensor){all->operand[j - 1], ONEPASS_F64, 1, &count, NULL};
            call.operand[j - 1] = &in[j - 1];
            call.gradient[j - 1] = &out[j];
        }
    }
    call.value = &out[0];
    CHECK_OK(onepass_run(&call), all->info->name);
}

/* `turn` 0 has the default parameters, each other turn another value for one of them; 0 if there is none any more. */
static int choose_parameters(trials *all, int turn) {
    static const double values[] = {0.75, 0, 3, -1};
    oracle_parameters(all->oracle, 0, NULL, all->parameter);
    for (int i = 0; i < all->info->parameter_count && turn; i++) {
        const onepass_parameter_info *known = &all->info->parameter[i];
        for (size_t j = 0; j < sizeof values / sizeof values[0] && turn; j++) {
            const int is_above = known->above_least ? values[j] > known->least : values[j] >= known->least;
            const int is_below = known->below_greatest ? values[j] < known->greatest : values[j] <= known->greatest;
            turn -= is_above && is_below;
            if (!turn) {
                all->parameter[i] = values[j];
            }
        }
    }
    return !turn;
}

static void choose_arguments(trials *all, uint64_t seed) {
    uint64_t state = seed;
    for (int i = 0; i < TRIALS; i++) {
        for (int j = 0; j < all->info->operand_count; j++) {
            all->operand[j][i] = argument(&state, all->oracle->domain[j]);
            /* A third operand is a variance or a weight, and no loss is smooth where there is none. */
            if (j == ONEPASS_THIRD && all->operand[j][i] >= 0 && all->operand[j][i] < 1e-5) {
                all->operand[j][i] = 1e-5;
            }
        }
        /* Prediction and target near each other, where much cancels. */
        if (i % 16 == 0 && all->oracle->domain[0] == all->oracle->domain[1]) {
            all->operand[1][i] = all->operand[0][i] * (1 - 0x1p-30);
        }
    }
}

static void widen(const trials *all, int trial, long double *operand, long double *parameter) {
    for (int j = 0; j < ORACLE_OPERANDS; j++) {
        operand[j] = j < all->info->operand_count ? all->operand[j][trial] : 0;
    }
    for (int j = 0; j < ONEPASS_MAX_PARAMETERS; j++) {
        parameter[j] = all->parameter[j];
    }
}

static const char *const part_names[ORACLE_PARTS] = {"value", "slope in p", "slope in t", "slope in v"};

/* NaN for NaN, infinity for infinity, and else within the bound. */
static void check_near(const trials *all, int trial, int part, long double expected, long double bound,
                       const char *witness) {
    const double got = all->part[part][trial];
    const int finite = expected - expected == 0;
    const int holds = finite                 ? fabsl(got - expected) <= bound + DBL_MIN
                      : expected != expected ? got != got
                                             : got == (double)expected;
    CHECK(holds, "%s(%g, %g) at p = %.17g, t = %.17g, v = %.17g, %s: expected %.20Lg by %s within %.3Lg, got %.20g",
          all->info->name, all->parameter[0], all->parameter[1], all->operand[0][trial], all->operand[1][trial],
          all->operand[2][trial], part_names[part], expected, witness, bound, got);
}

/* -------------------------------------------------------- the witnesses -- */

/* The formulas that users read. */
static void test_catalogue(const trials *all) {
    const char *const formulas[2] = {all->info->value, all->info->slope};
    for (int part = 0; part < 2; part++) {
        int certain = 0;
        for (int i = 0; i < TRIALS; i++) {
            long double operand[ORACLE_OPERANDS], parameter[ONEPASS_MAX_PARAMETERS];
            widen(all, i, operand, parameter);
            const inexact expected = evaluate(all->info, formulas[part], operand, parameter);
            if (!uncertain) {
                certain++;
                check_near(all, i, part, expected.value, 4 * expected.error, "the formula");
            }
        }
        CHECK(certain > TRIALS / 2, "%s, %s: expected more than half of %d points to be certain, got %d",
              all->info->name, part_names[part], TRIALS, certain);
    }
}

/* How much the parts change if each argument changes in its last digits, by eight units. */
static void sensitivity(const trials *all, const long double *operand, const long double *parameter,
                        const long double *part, long double *change) {
    memset(change, 0, ORACLE_PARTS * sizeof *change);
    for (int j = 0; j < all->info->operand_count; j++) {
        for (int sign = -1; sign <= 1; sign += 2) {
            long double beside[ORACLE_OPERANDS], other[ORACLE_PARTS] = {0};
            memcpy(beside, operand, sizeof beside);
            beside[j] *= 1 + 8 * sign * UNIT;
            all->oracle->in_wide(beside, parameter, other);
            for (int k = 0; k < ORACLE_PARTS; k++) {
                change[k] += fabsl(other[k] - part[k]);
            }
        }
    }
}

/* The oracle's lines. */
static void test_oracle(const trials *all) {
    for (int i = 0; i < TRIALS; i++) {
        long double operand[ORACLE_OPERANDS], parameter[ONEPASS_MAX_PARAMETERS];
        long double part[ORACLE_PARTS] = {0}, change[ORACLE_PARTS];
        widen(all, i, operand, parameter);
        all->oracle->in_wide(operand, parameter, part);
        sensitivity(all, operand, parameter, part, change);
        for (int k = 0; k < 1 + all->info->operand_count; k++) {
            long double bound = (change[k] == change[k] ? change[k] : INFINITY) + 16 * UNIT * fabsl(part[k]);
            if (k < 2) { /* terms may cancel whatever the arguments do, as the formula shows */
                const inexact known = evaluate(all->info, k ? all->info->slope : all->info->value, operand, parameter);
                bound = 4 * known.error > bound ? 4 * known.error : bound;
            }
            check_near(all, i, k, part[k], bound, "the oracle's line");
        }
    }
}

/* Finite differences. Where they differ on both sides, as at a kink, or have lost their digits, they say nothing. */
static void test_slopes(const trials *all) {
    for (int j = 0; j < all->info->operand_count; j++) {
        int smooth = 0;
        for (int i = 0; i < TRIALS; i++) {
            long double operand[ORACLE_OPERANDS], parameter[ONEPASS_MAX_PARAMETERS], value[3];
            widen(all, i, operand, parameter);
            const long double middle = operand[j], h = 1e-9L * (1 + fabsl(middle));
            for (int side = 0; side < 3; side++) {
                operand[j] = middle + (side - 1) * h;
                value[side] = evaluate(all->info, all->info->value, operand, parameter).value;
            }
            const double slope = all->part[1 + j][i];
            const long double above = (value[2] - value[1]) / h, below = (value[1] - value[0]) / h;
            const int has_digits = fabsl(value[1]) * LDBL_EPSILON / h <= 1e-8L * (1 + fabs(slope));
            if (!has_digits || !(fabsl(above - below) <= 1e-4L * (1e-4L + fabsl(above)))) {
                continue;
            }
            smooth++;
            CHECK(fabsl((above + below) / 2 - slope) <= 1e-6L * (1 + fabs(slope)),
                  "%s at p = %g, t = %g, v = %g, %s: expected %.9Lg by differences, got %.9g", all->info->name,
                  all->operand[0][i], all->operand[1][i], all->operand[2][i], part_names[1 + j], (above + below) / 2,
                  slope);
        }
        CHECK(smooth > TRIALS / 20, "%s, %s: expected more than %d smooth points, got %d", all->info->name,
              part_names[1 + j], TRIALS / 20, smooth);
    }
}

int main(void) {
    static trials all;
    if (LDBL_MANT_DIG < 64) {
        return check_skip("long double has no more digits than double here");
    }
    for (int i = 0; (all.info = onepass_loss_at(i)); i++) {
        all.oracle = oracle_loss_named(all.info->name);
        for (int turn = 0; all.oracle && choose_parameters(&all, turn); turn++) {
            choose_arguments(&all, (uint64_t)(100 * i + turn));
            compute(&all);
            test_catalogue(&all);
            test_oracle(&all);
            if (turn == 0) {
                test_slopes(&all);
            }
        }
    }
    return check_finish();
}
