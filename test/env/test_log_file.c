#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "env/log_file.h"

static void keep_line(void *arg, int level, const char *line)
{
    (void)snprintf(arg, 128, "%d %s", level, line);
}

/* What the file has, without times and process ids. */
static void file_says(const char *path, const char *want)
{
    char text[4096] = "", plain[4096] = "", pid[16], *out = plain;
    (void)snprintf(pid, sizeof pid, "%d", (int)getpid());
    FILE *in = fopen(path, "r");
    assert_non_null(in);
    assert_true(fread(text, 1, sizeof text - 1, in) > 0);
    assert_int_equal(fclose(in), 0);
    for (const char *at = text; *at; at++) {
        unsigned year;
        int n = 0;
        if (sscanf(at, "%4u-%*2u-%*2uT%*2u:%*2u:%*2u.%*3uZ%n", &year, &n) == 1 && n == 24) {
            assert_in_range(year, 2020, 2200);
            at += n - 1;
            *out++ = 'T';
        } else if (strncmp(at, pid, strlen(pid)) == 0) {
            at += strlen(pid) - 1;
            *out++ = 'P';
        } else {
            *out++ = *at;
        }
    }
    assert_string_equal(plain, want);
}

static void log_lines_go_to_a_file_besides(void **state)
{
    (void)state;
    char got[128] = "", dir[] = "/tmp/paramo-log-XXXXXX", text[64], json[64];
    assert_non_null(mkdtemp(dir));
    (void)snprintf(text, sizeof text, "%s/text", dir);
    (void)snprintf(json, sizeof json, "%s/json", dir);
    log_set_sink(keep_line, got);
    assert_int_equal(log_file_open(text, LOG_TEXT), 0);
    log_info("server %s", "x"); /* below the level: in the file alone */
    assert_string_equal(got, "");
    log_warn("late");
    assert_string_equal(got, "1 late");
    file_says(text, "T info P: server x\nT warning P: late\n");

    assert_int_equal(log_file_open(json, LOG_JSON), 0);
    log_error("\"a\\b\"\n\x01\xc3\xa4");
    char longest[600];
    memset(longest, '"', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    file_says(text, "T info P: server x\nT warning P: late\n"); /* nothing more goes there */
    file_says(json, "{\"time\":\"T\",\"level\":\"error\",\"pid\":P,\"message\":"
                    "\"\\\"a\\\\b\\\"\\u000a\\u0001\xc3\xa4\"}\n");
    log_info("%s", longest); /* is cut, and stays one whole object */
    FILE *in = fopen(json, "r");
    char line[2048];
    assert_non_null(in);
    assert_non_null(fgets(line, sizeof line, in));
    assert_non_null(fgets(line, sizeof line, in));
    assert_non_null(strstr(line, "\\\"\"}\n"));
    assert_null(fgets(line, sizeof line, in));
    assert_int_equal(fclose(in), 0);

    (void)snprintf(line, sizeof line, "%s/missing/file", dir);
    assert_int_equal(log_file_open(line, LOG_TEXT), PARAMO_E_IO); /* and the file before stays */
    log_warn("again");
    assert_string_equal(got, "1 again");
    assert_int_equal(log_file_open("/dev/full", LOG_TEXT), 0);
    log_warn("lost in the file, not here");
    assert_string_equal(got, "1 lost in the file, not here");
    assert_int_equal(log_file_open("/dev/null", LOG_TEXT), 0);
    log_set_sink(NULL, NULL);
    assert_int_equal(unlink(text) | unlink(json) | rmdir(dir), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(log_lines_go_to_a_file_besides)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
