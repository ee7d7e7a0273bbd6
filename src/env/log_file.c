#include "env/log_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"

static int file = -1;
static enum log_format file_format;

/* Writes text as a JSON string, cut to what fits. Bytes above 127 stay: the log is UTF-8. */
static size_t quote(const char *text, char *out, size_t cap)
{
    size_t n = 0;
    out[n++] = '"';
    for (; *text && n + 8 < cap; text++) {
        unsigned char c = (unsigned char)*text;
        if (c < 0x20)
            n += (size_t)snprintf(out + n, cap - n, "\\u%04x", c);
        else if (c == '"' || c == '\\')
            n += (size_t)snprintf(out + n, cap - n, "\\%c", c);
        else
            out[n++] = (char)c;
    }
    out[n++] = '"';
    out[n] = '\0';
    return n;
}

/* One write for each line: lines of several threads and processes stay whole. A full disk loses lines, not the job. */
static void record(int level, const char *line)
{
    char when[40], quoted[2 * LOG_LINE_BYTES], out[3 * LOG_LINE_BYTES];
    struct timespec now;
    struct tm utc;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)gmtime_r(&now.tv_sec, &utc);
    size_t n = strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S", &utc);
    (void)snprintf(when + n, sizeof when - n, ".%03ldZ", now.tv_nsec / 1000000);
    if (file_format == LOG_JSON) {
        (void)quote(line, quoted, sizeof quoted);
        n = (size_t)snprintf(out, sizeof out,
                             "{\"time\":\"%s\",\"level\":\"%s\",\"pid\":%d,\"message\":%s}\n", when,
                             log_level_name(level), (int)getpid(), quoted);
    } else {
        n = (size_t)snprintf(out, sizeof out, "%s %s %d: %s\n", when, log_level_name(level), (int)getpid(),
                             line);
    }
    ssize_t done;
    do
        done = write(file, out, n);
    while (done < 0 && errno == EINTR);
}

paramo_err log_file_open(const char *path, enum log_format format)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0)
        return err_set(PARAMO_E_IO, "%s cannot be written: %s", path, strerror(errno));
    if (file >= 0)
        (void)close(file);
    file = fd;
    file_format = format;
    log_set_recorder(record);
    return PARAMO_OK;
}
