/*
 * The sizes of the simulated world, and its tables. It holds no state. Tests: test/sim/test_play.c;
 * scripts/mutants.
 */
#ifndef SIM_SIZES_H
#define SIM_SIZES_H

#include <stdbool.h>

#include "sim/fault.h"

enum {
    SIM_KEYS = 64,    /* rows of each table */
    SIM_OP_KEYS = 12, /* of a request */
    SIM_WIDE = 20,    /* values of a wide row */
    SIM_OP_VALS = SIM_OP_KEYS * SIM_WIDE,
    SIM_RECENT = 64,      /* requests of a customer whose ends are kept */
    SIM_CELL_VALUES = 40, /* values that one cell may hold, as far as is known */
    SIM_STREAMS = 2,      /* streams of the pool, of 3 and 2 work units */
    SIM_UNITS = 3,
    SIM_ROUNDS = 2,
    SIM_DIGITS = 31,      /* pushes to a key: each has two bits of a 64-bit sum */
    SIM_REAL_DIGITS = 20, /* the same of SIM_REALS, whose sums are doubles */
    SIM_PRIORITIES = 2,
    SIM_CUSTOMERS = 2,
    SIM_TASKS_CUSTOMER = SIM_CUSTOMERS,     /* the customer of a node's tasks */
    SIM_SERVERS = 2 * SCHEDULE_SERVERS_MAX, /* places: a server that returns may join as one more ... */
    SIM_SHARDS = 2 * SIM_SERVERS,
    SIM_PLACES = 16, /* ... and so may a worker whose death is not known yet */
    SIM_SERIALS = 4096,
    SIM_TERMS = 1024,   /* starts of schedulers */
    SIM_WEIGHT = 8,     /* the weight of a server, until a fault changes it a little */
    SIM_AMIDS = 4,      /* faults that wait for a migration */
    SIM_ISLANDS = 4,    /* the same of islands */
    SIM_LATE = 8,       /* failed clears of a table that may still be carried out */
    SIM_QUARANTINE = 32 /* requests whose arrays are watched after their end */
};

/* Requests overwrite and delete rows of SIM_CELLS, and add to all other tables. SIM_REALS has values of type F64,
 * which filters may round (reals.h). So has SIM_SUMS, which aggregates the pushes of each clock (sums.h). The others
 * are of type I64. */
enum sim_table {
    SIM_DENSE,
    SIM_SPARSE,
    SIM_VAR,
    SIM_USER,
    SIM_ROWS,
    SIM_CELLS,
    SIM_REALS,
    SIM_SUMS,
    SIM_TABLES
};
enum { SIM_REAL_TABLES = SIM_TABLES - SIM_REALS };

/* Are its values sums that filters may round? (reals.h) */
static inline bool reals_has(enum sim_table table)
{
    return table == SIM_REALS || table == SIM_SUMS;
}

extern const char *const sim_table_names[SIM_TABLES];

/* The number of values in a row; in SIM_VAR: in a row that exists. */
static inline unsigned sim_row_values(enum sim_table table, unsigned index)
{
    switch (table) {
    case SIM_VAR:
        return 1 + index % 3;
    case SIM_ROWS:
        return SIM_WIDE;
    case SIM_SPARSE:
    case SIM_CELLS:
    case SIM_REALS:
    case SIM_SUMS:
        return 2; /* except for SPARSE the second value is derived from the first: a torn row shows */
    default:
        return 1;
    }
}

#endif
