/*
 * The report of a verb about a live job as JSON. It never knows what a report says. One thread.
 * Tests: test/e2e/ring.sh, status.sh, checkpoint.sh.
 */
#ifndef CMD_ADMIN_JSON_H
#define CMD_ADMIN_JSON_H

#include <jansson.h>

/* Prints root, indented, and a newline. flags: of jansson, beside that. Takes root (NULL: there was no memory). Returns
 * the exit code, after one line that says what is wrong. */
int admin_json_print(const char *verb, json_t *root, size_t flags);

#endif
