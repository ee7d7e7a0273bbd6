/*
 * Passes the output of the nodes of 'paramo run' on to standard error, each line after the name of its node. A message
 * that several nodes print, for example about a dead server, appears once, after all their names. So a line that begins
 * with "paramo" is held for a moment, until the other nodes have printed it, too. Other lines are the job's own output
 * and are printed at once. It never knows processes. Tests: test/e2e/run.sh.
 */
#ifndef CMD_RUN_OUTPUT_H
#define CMD_RUN_OUTPUT_H

#include <stddef.h>
#include <stdint.h>

enum { RUN_LINE_BYTES = 4096 }; /* longer lines are passed on in pieces; arbitrary */
enum { RUN_HELD_MAX = 16 };     /* messages that are held at a time; arbitrary. Others are printed at once */

/* One node's output. */
struct run_source {
    char name[32]; /* "server 1" */
    int fd;        /* read end, does not block; -1: none, or its end was reached */
    size_t used;   /* bytes in line */
    char line[RUN_LINE_BYTES];
};

struct run_held {
    char *text;  /* with its newline; NULL: this entry is free */
    int64_t due; /* when it is printed, ms */
    const struct run_source **from;
    size_t from_count;
};

struct run_output {
    size_t sources; /* the number of nodes, at most */
    struct run_held held[RUN_HELD_MAX];
};

/* Reads all available output, and closes the descriptor at its end. */
void run_output_read(struct run_output *output, struct run_source *source, int64_t now_ms);
/* Prints the held lines of this node; NULL: those of all nodes. */
void run_output_flush(struct run_output *output, const struct run_source *source);
/* Prints a last line that has no newline. */
void run_output_end(struct run_source *source);
/* When the next held message is due, on the clock of now_ms; -1: none is held. */
int64_t run_output_due(const struct run_output *output);
/* Prints the messages that are due. */
void run_output_tick(struct run_output *output, int64_t now_ms);

/* Writes all bytes. An error of the descriptor ends it, and is ignored. */
void run_write(int fd, const char *data, size_t len);

#endif
