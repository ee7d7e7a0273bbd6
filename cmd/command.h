/*
 * The COMMAND of 'paramo run' and 'paramo worker': the program that it names, and the exit code if it cannot be run.
 * It never knows what COMMAND does. Tests: test/e2e/run.sh.
 */
#ifndef CMD_COMMAND_H
#define CMD_COMMAND_H

/* The first argument of execvp for COMMAND: for "paramo" the path of this program, otherwise the name itself. */
const char *command_path(const char *name);

/* The exit code for an exec that failed with this errno, as in a shell: 127 if the program does not exist, 126 if it is
 * not executable, otherwise 1. */
int command_exit_code(int errno_value);

#endif
