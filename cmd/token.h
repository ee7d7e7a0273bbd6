/*
 * The job's secret from a file: its first line. Tests: test/e2e/roles.sh.
 */
#ifndef CMD_TOKEN_H
#define CMD_TOKEN_H

#include <stddef.h>

enum { TOKEN_BYTES = 256 };

/* 0, or the exit code after one line that says what is wrong with the file. */
int token_read(const char *verb, const char *path, char token[TOKEN_BYTES]);

#endif
