/*
 * The formula of a loss as the catalogue shows it to people, computed in double with the C library's functions. Nothing
 * here knows how the library computes a loss: that is what makes it a check.
 */
#ifndef ONEPASS_DEMO_FORMULA_H
#define ONEPASS_DEMO_FORMULA_H

#include <stdbool.h>

#include <onepass.h>

enum {
    MOST_STEPS = 160,
    BLOCK = 512 /* numbers that are computed at a time */
};

/* p, t, v and x = p - t, then the parameters. */
enum {
    PREDICTION,
    TARGET,
    THIRD,
    DIFFERENCE,
    FIRST_PARAMETER,
    VARIABLES = FIRST_PARAMETER + ONEPASS_MAX_PARAMETERS
};

typedef struct step {
    int inputs;   /* how many results of earlier steps it takes: 0 to 3 */
    int variable; /* with no inputs: which one, or -1 for the number */
    double number;
    double (*of_one)(double);
    double (*of_two)(double, double);
} step;

typedef struct formula {
    const char *rest; /* what has not been read */
    const onepass_loss_info *loss;
    step step[MOST_STEPS];
    int steps;
    bool understood;
} formula;

formula formula_read(const char *text, const onepass_loss_info *loss);

/* `count` results, up to BLOCK of them. An operand has a number an element, a parameter has one. */
void formula_compute(const formula *formula, const double *const *variable, int count, double *result);

#endif
