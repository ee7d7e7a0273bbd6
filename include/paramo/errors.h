/*
 * Error codes of Paramo, from one table: code, name, sentence. Includes nothing, so every layer may use it. A
 * code says what kind of thing failed; paramo_last_error(), on the thread of the failed call, has the exact
 * cause ("bind 10.0.0.5:8000: address in use"). Tests: test/base/test_base.c.
 */
#ifndef PARAMO_ERRORS_H
#define PARAMO_ERRORS_H

#ifdef __cplusplus
extern "C" {
#endif

/* clang-format off */
#define PARAMO_ERRORS(X)                                                                     \
    X(0,  OK,             "no error")                                                       \
    /* the caller's mistake: nothing was sent, nothing has changed */                       \
    X(1,  INVALID,        "an argument is not valid")                                       \
    X(2,  KEYS_UNSORTED,  "keys are not in ascending order")                                \
    X(3,  KEYS_REPEATED,  "a key appears twice in one request")                             \
    X(4,  SIZE_MISMATCH,  "the sizes of keys, values and lens do not agree")                \
    X(5,  NO_TABLE,       "there is no such table")                                         \
    X(6,  TABLE_EXISTS,   "a table of that name exists with other settings")                \
    X(7,  CLOSED,         "the handle is closed")                                           \
    X(8,  FORKED,         "the handle belongs to the parent of this process")               \
    X(9,  IN_CALLBACK,    "waiting inside a callback is not possible")                      \
    X(10, UNSUPPORTED,    "that is not supported here")                                     \
    X(11, TOO_LARGE,      "a length is beyond its limit")                                   \
    X(12, NOT_FOUND,      "not found")                                                      \
    X(13, KEY_RANGE,      "a key is outside the table's range")                             \
    /* the request: it ended, the connection and the node live on */                        \
    X(20, AGAIN,          "a queue is full, try again")                                     \
    X(21, TIMEOUT,        "the deadline has passed")                                        \
    X(22, CANCELLED,      "the request was cancelled")                                      \
    X(23, NODE_LOST,      "a node that is needed has died")                                 \
    X(24, DATA_LOST,      "the node came back without its data")                            \
    X(25, HANDLER,        "the request handler failed")                                     \
    X(26, MOVED,          "the keys have another owner now")                                \
    X(27, BARRIER,        "the barrier cannot be released")                                 \
    X(28, NUMERIC,        "a value is not a finite number")                                 \
    /* the connection */                                                                     \
    X(40, CONNECT,        "cannot connect")                                                 \
    X(41, DISCONNECTED,   "the connection was lost")                                        \
    X(42, PROTOCOL,       "the peer broke the protocol")                                    \
    X(43, REFUSED,        "the peer refused")                                               \
    X(44, TOKEN,          "the job token does not match")                                   \
    X(45, VERSION,        "the peer speaks another version of the protocol")                \
    X(46, ADDRESS,        "the address is not valid or does not resolve")                   \
    X(47, ADDRESS_IN_USE, "the address is in use")                                          \
    X(48, CONNECTION_REFUSED, "the connection was refused: no process listens at the address") \
    /* the node */                                                                           \
    X(60, FENCED,         "this node was declared dead and must register again")             \
    X(61, SHUTDOWN,       "the cluster is shutting down")                                   \
    X(62, NO_SCHEDULER,   "the scheduler cannot be reached")                                \
    X(63, FULL,           "the cluster is full")                                            \
    X(64, MEMORY,         "out of memory")                                                  \
    X(65, SYSTEM,         "a system call failed")                                           \
    /* files */                                                                              \
    X(80, IO,             "a file cannot be read or written")                               \
    X(81, FORMAT,         "a file is not of the expected format")                           \
    X(82, CORRUPT,        "a file is damaged")                                              \
    X(83, INTERRUPTED,    "interrupted")                                                    \
    X(99, INTERNAL,       "a bug in Paramo")
/* clang-format on */

typedef enum paramo_err {
#define PARAMO_ERRORS_ENUM(number, name, text) PARAMO_E_##name = number,
    PARAMO_ERRORS(PARAMO_ERRORS_ENUM)
#undef PARAMO_ERRORS_ENUM
} paramo_err;

#define PARAMO_OK PARAMO_E_OK

/* Bytes of a message, with its zero. */
#define PARAMO_ERROR_MAX 512

#ifdef __cplusplus
}
#endif
#endif
