/*
 * What the nodes of 'paramo run' print. Each line is passed on to standard error, after the name of its node.
 * A line that several nodes print (all learn of one death) is printed once, after all their names. So a message of
 * Paramo's, a line that begins with "paramo", is held for a moment, until the other nodes have printed it, too. Other
 * lines are the job's own output and pass at once. This module knows nothing of processes. Tests: test/e2e/run.sh.
 */
#ifndef CMD_RUN_OUTPUT_H
#define CMD_RUN_OUTPUT_H

#include <stddef.h>
#include <stdint.h>

enum { RUN_LINE_BYTES = 4096 }; /* longer lines are passed on in pieces */
enum { RUN_HELD_MAX = 16 };     /* messages held at a time */

/* One node's output. */
struct run_source {
    char name[32]; /* "server 1" */
    int fd;        /* read end, does not block; -1: none (any more) */
    size_t used;   /* bytes in line */
    char line[RUN_LINE_BYTES];
};

struct run_held {
    char *text;  /* with its newline; NULL: the place is free */
    int64_t due; /* when it is printed */
    const struct run_source **from;
    size_t from_count;
};

struct run_output {
    size_t sources; /* how many there can be */
    struct run_held held[RUN_HELD_MAX];
};

/* Takes what there is to read, and closes the descriptor at its end. */
void run_output_read(struct run_output *output, struct run_source *source, int64_t now_ms);
/* Prints the held lines of this process; NULL: all held lines. */
void run_output_flush(struct run_output *output, const struct run_source *source);
/* A last line without its end. */
void run_output_end(struct run_source *source);
/* When the next held message is due (now_ms's clock), -1: none is held. */
int64_t run_output_due(const struct run_output *output);
/* Prints what is due. */
void run_output_tick(struct run_output *output, int64_t now_ms);

/* To standard error or another descriptor; does nothing if that is closed. */
void run_write(int fd, const char *data, size_t len);

#endif
