/* Axes: see plot_scale.h. */
#include "plot_scale.h"

#include <math.h>

double scale_place(const scale *scale, double number) {
    if (!(scale->high > scale->low))
        return 0.5 * (scale->begin + scale->end);
    return scale->begin + (number - scale->low) / (scale->high - scale->low) * (scale->end - scale->begin);
}

double nice_step(double whole, int ticks) {
    if (!(whole > 0))
        return 1;
    const double rough = whole / ticks, power = pow(10, floor(log10(rough))), times = rough / power;
    return power * (times > 5 ? 10 : times > 2.5 ? 5 : times > 2 ? 2.5 : times > 1 ? 2 : 1);
}

int nice_power_step(double low, double high, int ticks) {
    int step = 1;
    while ((high - low) / step > ticks - 1)
        step *= 2;
    return step;
}
