/*
 * The log: one line per event, to stderr or to the application's sink. A cause is logged once, where it is
 * known. This module never knows nodes: the line itself names its node. Tests: test/base/test_base.c.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

enum log_level { LOG_ERROR = 0, LOG_WARN = 1, LOG_INFO = 2, LOG_DEBUG = 3 };

void log_set_level(int level);
int log_level(void);
enum { LOG_LINE_BYTES = 512 }; /* a longer line is cut */
const char *log_level_name(int level);
/* A recorder gets all errors, warnings and infos, also those that the log's level hides. NULL: none. Several threads
 * may call it at once. */
typedef void (*log_recorder)(int level, const char *line);
void log_set_recorder(log_recorder recorder);
/* sink NULL: stderr. Several threads may call a sink at once. Set it while nothing logs. */
void log_set_sink(void (*sink)(void *arg, int level, const char *line), void *arg);
void log_line(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...) log_line(LOG_ERROR, __VA_ARGS__)
#define log_warn(...)  log_line(LOG_WARN, __VA_ARGS__)
#define log_info(...)  log_line(LOG_INFO, __VA_ARGS__)
#define log_debug(...) (log_level() >= LOG_DEBUG ? log_line(LOG_DEBUG, __VA_ARGS__) : (void)0)

#endif
