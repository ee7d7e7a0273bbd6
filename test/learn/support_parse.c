#include "learn/support_parse.h"
#include "learn/support_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct parse_buffer buffer;
uint64_t bad_lines[BADS_MAX];
char bad_text[BADS_MAX][256];
int bads;

static paramo_err on_bad(void *arg, uint64_t line, const char *what)
{
    (void)arg;
    assert_true(bads < BADS_MAX);
    bad_lines[bads] = line;
    (void)snprintf(bad_text[bads++], sizeof bad_text[0], "%s", what);
    return PARAMO_OK;
}

void parse_with(const struct parse_settings *settings, const char *text, size_t len)
{
    char *t = text_padded(text, len);
    bads = 0;
    memset(bad_text, 0, sizeof bad_text);
    assert_int_equal(parse_text(settings, t, len, &buffer, on_bad, NULL), PARAMO_OK);
    free(t);
}

void bad_begins(const char *row, const char *what)
{
    if (strncmp(bad_text[0], what, strlen(what)) != 0)
        fail_msg("'%s' gives '%s', not '%s'", row, bad_text[0], what);
}

paramo_err bad_any(void *arg, uint64_t line, const char *what)
{
    (void)arg;
    (void)line;
    assert_true(what[0] != '\0');
    return PARAMO_OK;
}

struct columns *columns_of(const char *text)
{
    struct columns *c = NULL;
    if (columns_parse(text, &c) != PARAMO_OK)
        fail_msg("%s", paramo_last_error());
    return c;
}

int parse_teardown(void **state)
{
    (void)state;
    parse_buffer_free(&buffer);
    text_cleanup();
    return 0;
}
