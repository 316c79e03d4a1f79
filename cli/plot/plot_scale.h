/* Axes: where a number stands in a picture, and which numbers are written beside it. */
#ifndef ONEPASS_CLI_PLOT_SCALE_H
#define ONEPASS_CLI_PLOT_SCALE_H

/* From numbers to places. */
typedef struct scale {
    double low, high;  /* numbers */
    double begin, end; /* their places */
} scale;

double scale_place(const scale *scale, double number);

/* A step of 1, 2, 2.5 or 5 times a power of ten, of which no more than `ticks` make up the whole. */
double nice_step(double whole, int ticks);

/* A step of 1, 2, 4, ... powers of two, so that at most `ticks` fit between the two exponents. */
int nice_power_step(double low, double high, int ticks);

#endif
