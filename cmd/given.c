#include "cmd/given.h"

#include <stdlib.h>
#include <string.h>

static const char *name_of(const struct options *o, enum option_id id)
{
    const char *heading;
    char letter;
    const paramo_option *option = option_line(o->verb, id, &heading, &letter);
    return option ? option->name : NULL;
}

int given_by_name(const struct options *o, const char *name)
{
    for (unsigned id = 0; id < OPTION_ALL; id++) {
        const char *of = name_of(o, id);
        if (of && strcmp(of, name) == 0)
            return option_given(o, id);
    }
    return 0;
}

/* Writes a word for a shell: in quotes if a character may be special. */
static void put_word(FILE *out, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,@%+";
    if (*word != '\0' && word[strspn(word, plain)] == '\0') {
        (void)fprintf(out, " %s", word);
        return;
    }
    (void)fputs(" '", out);
    for (; *word; word++)
        (void)fputs(*word == '\'' ? "'\\''" : (char[]){*word, '\0'}, out);
    (void)fputc('\'', out);
}

static void put_option(FILE *out, const struct options *o, enum option_id id)
{
    const char *heading;
    char letter;
    const paramo_option *option = option_line(o->verb, id, &heading, &letter);
    (void)fprintf(out, " --%s", option->name);
    if (option->type == PARAMO_OPTION_FLAG)
        return;
    const struct option_list *list = &o->state[id].list;
    for (size_t i = 0; i < list->n; i++)
        put_word(out, list->item[i]);
    if (list->n == 0)
        put_word(out, o->state[id].raw);
}

char *given_text(const struct options *o, const enum option_id *left_out, size_t n)
{
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    if (!out)
        return NULL;
    for (unsigned id = 0; id < OPTION_ALL; id++) {
        int skip = !name_of(o, id) || !option_given(o, id);
        for (size_t i = 0; i < n; i++)
            skip |= left_out[i] == (enum option_id)id;
        if (!skip)
            put_option(out, o, id);
    }
    const int bad = ferror(out);
    if (fclose(out) != 0 || bad) {
        free(text);
        return NULL;
    }
    return text;
}
