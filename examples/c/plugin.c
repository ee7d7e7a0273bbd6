/* The functions of own_functions.h as a plugin, and with nonzero.c a filter:
 *     paramo run -s 2 -w 1 --workers-only --plugin ./plugin.so -- ./function
 *     paramo run -s 1 -w 1 --plugin ./plugin.so -- paramo train --filter push=nonzero ... */
#include <paramo/plugin.h>

#include "nonzero.h"
#include "own_functions.h"

const paramo_function *const paramo_functions[] = {&clip_function, &histogram_function, NULL};
const paramo_filter *const paramo_filters[] = {&nonzero, NULL};
