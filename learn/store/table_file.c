#include "learn/store/table_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define HEADER_BYTES 1024 /* with the length before it; padded with blanks */

static int write_header(FILE *f, uint64_t n, uint32_t dim)
{
    char header[HEADER_BYTES];
    const uint64_t len = HEADER_BYTES - 8, keys = 8 * n, end = keys + 4 * n * dim;
    memset(header, ' ', sizeof header);
    for (unsigned i = 0; i < 8; i++)
        header[i] = (char)(len >> (8 * i));
    const int used =
        snprintf(header + 8, sizeof header - 8,
                 "{\"keys\":{\"dtype\":\"U64\",\"shape\":[%" PRIu64 "],\"data_offsets\":[0,%" PRIu64
                 "]},\"values\":{\"dtype\":\"F32\",\"shape\":[%" PRIu64 ",%" PRIu32
                 "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}}",
                 n, keys, n, dim, keys, end);
    header[8 + used] = ' ';
    return fwrite(header, 1, sizeof header, f) == sizeof header;
}

paramo_err table_file_write(const char *path, const uint64_t *keys, const float *values, uint64_t n,
                            uint32_t dim)
{
    FILE *f = fopen(path, "we");
    if (!f)
        return paramo_error_set(PARAMO_E_IO, "%s: %s", path, strerror(errno));
    const size_t rows = (size_t)n, floats = rows * dim;
    const int done = write_header(f, n, dim) && fwrite(keys, sizeof *keys, rows, f) == rows &&
                     fwrite(values, sizeof *values, floats, f) == floats && fflush(f) == 0 &&
                     fsync(fileno(f)) == 0;
    const int why = errno;
    if (fclose(f) == 0 && done)
        return PARAMO_OK;
    (void)unlink(path);
    return paramo_error_set(PARAMO_E_IO, "%s: %s", path, strerror(done ? errno : why));
}
