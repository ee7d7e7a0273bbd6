/* Runs a target over the files named, and over all files of the folders named: what was found stays found. A
 * folder that is not there is an empty one. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "harness.h"

static size_t files;

static int run_file(const char *path)
{
    FILE *file = fopen(path, "rbe");
    struct stat st;
    if (!file || fstat(fileno(file), &st)) {
        perror(path);
        return 1;
    }
    size_t len = (size_t)st.st_size;
    uint8_t *bytes = harness_alloc(len);
    int bad = fread(bytes, 1, len, file) != len;
    (void)fclose(file);
    if (bad) {
        (void)fprintf(stderr, "%s: cannot be read\n", path);
    } else {
        (void)LLVMFuzzerTestOneInput(bytes, len);
        files++;
    }
    free(bytes);
    return bad;
}

static int run_folder(const char *path)
{
    struct dirent **entries;
    int n = scandir(path, &entries, NULL, alphasort), bad = 0;
    if (n < 0 && errno == ENOENT)
        return 0;
    if (n < 0) {
        perror(path);
        return 1;
    }
    for (int i = 0; i < n; i++) {
        char name[4096];
        int len = snprintf(name, sizeof name, "%s/%s", path, entries[i]->d_name);
        struct stat st;
        if (len > 0 && (size_t)len < sizeof name && stat(name, &st) == 0 && S_ISREG(st.st_mode))
            bad |= run_file(name);
        free(entries[i]);
    }
    free(entries);
    return bad;
}

int main(int argc, char **argv)
{
    int bad = 0;
    struct stat st;
    (void)LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
    for (int i = 1; i < argc; i++)
        bad |= stat(argv[i], &st) == 0 && S_ISREG(st.st_mode) ? run_file(argv[i]) : run_folder(argv[i]);
    (void)printf("%zu inputs\n", files);
    return bad;
}
