/*
 * The COMMAND of 'paramo run' and 'paramo worker'. Tests: test/e2e/run.sh.
 */
#ifndef CMD_COMMAND_H
#define CMD_COMMAND_H

/* What to hand to execvp for COMMAND: this very program for "paramo", wherever it lies, else the name as it
 * is. */
const char *command_path(const char *name);

/* The exit code for an exec that failed with this errno: 127 not found, 126 not executable, else 1 (as the
 * shell's). */
int command_exit_code(int errno_value);

#endif
