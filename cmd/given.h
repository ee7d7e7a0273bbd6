/*
 * Writes the options of this command line as text, for another command line. It never knows what an option means.
 * Tests: test/e2e/tune.sh.
 */
#ifndef CMD_GIVEN_H
#define CMD_GIVEN_H

#include "cmd/options.h"

/* Is an option of this name, without "--", on the command line? */
int given_by_name(const struct options *o, const char *name);
/* " --model lr --data 'a b.ffm'": the options that are on the command line, in the order of the table, except those of
 * left_out[0..n), quoted for a shell. NULL: no memory. The caller frees it. */
char *given_text(const struct options *o, const enum option_id *left_out, size_t n);

#endif
