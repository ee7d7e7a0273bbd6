/* The tasks of own_tasks.h as a plugin. It calls functions of the library, and gets them from the process that loads
 * it:
 *     paramo run -s 3 -w 1 --workers-only --plugin ./tasks.so -- ./task */
#include <paramo/plugin.h>

#include "own_tasks.h"

const paramo_task_function *const paramo_tasks[] = {&sum_task, &total_task, NULL};
