#include "learn/darlin/coordinate.h"

#include <math.h>

double coordinate_step(double w, double g, double u, double l1, double reach)
{
    const double to = w - g / u, zone = l1 / u;
    double next = to > zone ? to - zone : to < -zone ? to + zone : 0;
    if (reach > 0 && next > w + reach)
        next = w + reach;
    if (reach > 0 && next < w - reach)
        next = w - reach;
    return next;
}

double coordinate_reach(double reach, double moved, double u, double l1)
{
    const double twice = 2 * fabs(moved), least = reach > 0 ? reach / 2 : l1 / (2 * u);
    return twice > least ? twice : least;
}

double coordinate_violation(double w, double g, double l1)
{
    if (w != 0)
        return fabs(g + copysign(l1, w));
    return fabs(g) > l1 ? fabs(g) - l1 : 0;
}

double coordinate_curvature(double bend, double way)
{
    const double bound = way < 1 ? bend / (1 - way) : 0.25;
    return bound < 0.25 ? bound : 0.25;
}
