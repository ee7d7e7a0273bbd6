/*
 * Reads the job's secret from the first line of a file. Tests: test/e2e/roles.sh.
 */
#ifndef CMD_TOKEN_H
#define CMD_TOKEN_H

#include <stddef.h>

enum { TOKEN_BYTES = 256 };

/* Returns 0, or the exit code after an error is printed. */
int token_read(const char *verb, const char *path, char token[TOKEN_BYTES]);

#endif
