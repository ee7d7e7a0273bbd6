/*
 * The log in a file. Each line has the time (UTC) and the process id. It is text, or one JSON object with the
 * strings time, level and message and the number pid. Never knows what a line says. Tests: test/env/test_log_file.c.
 */
#ifndef ENV_LOG_FILE_H
#define ENV_LOG_FILE_H

#include "base/err.h"

enum log_format { LOG_TEXT = 0, LOG_JSON = 1 };
#define LOG_FORMAT_WORDS "text|json"

/* From now on errors, warnings and information go to this file, too. The file is made, or continued. IO: it cannot be
 * opened, and the file before it stays in use. No other thread may log during the call. A line that cannot be written
 * is lost, and the job continues. */
MUST_USE paramo_err log_file_open(const char *path, enum log_format format);

#endif
