#include "cmd/token.h"
#include "cmd/exitcode.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int token_read(const char *verb, const char *path, char token[TOKEN_BYTES])
{
    FILE *f = fopen(path, "re");
    if (!f) {
        (void)fprintf(stderr, "paramo %s: cannot open the token file '%s': %s\n", verb, path,
                      strerror(errno));
        return CODE_DATA;
    }
    char *line = fgets(token, TOKEN_BYTES, f);
    int rest = line && !strchr(line, '\n') && fgetc(f) != EOF;
    (void)fclose(f);
    if (line)
        line[strcspn(line, "\r\n")] = '\0';
    if (!line || *line == '\0' || rest) {
        (void)fprintf(stderr,
                      "paramo %s: the token file '%s' has no token of 1 to %d bytes in its first line\n",
                      verb, path, TOKEN_BYTES - 2);
        return CODE_DATA;
    }
    return 0;
}
