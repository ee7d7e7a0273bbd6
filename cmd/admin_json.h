/*
 * The report of a verb about a live job as JSON. It never knows what a report says. One thread.
 * Tests: test/e2e/ring.sh, status.sh, checkpoint.sh.
 */
#ifndef CMD_ADMIN_JSON_H
#define CMD_ADMIN_JSON_H

#include <jansson.h>

/* Prints root, indented, and a newline. flags: further flags of jansson. Frees root (NULL: there was no memory for it).
 * Returns the exit code; an error is printed. */
int admin_json_print(const char *verb, json_t *root, size_t flags);

#endif
