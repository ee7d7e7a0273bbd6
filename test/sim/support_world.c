/* The same world as the worker's tests have. */
#include "../worker/support_world.c"
