/* What the tests of parsers and readers share: temporary files, compressed or not, and text with its padding.
 */
#ifndef TEST_LEARN_SUPPORT_TEXT_H
#define TEST_LEARN_SUPPORT_TEXT_H

#include <stddef.h>

/* A directory of its own for this test program, removed with what is in it by text_cleanup. */
const char *text_dir(void);
/* The path of a file of that name in it; the result is overwritten by the eighth call after. */
const char *text_path(const char *name);
void text_cleanup(void);

void text_write_file(const char *path, const void *data, size_t len);
/* frames: the data is cut into that many members or frames. */
void text_write_gzip(const char *path, const void *data, size_t len, int frames);
void text_write_zstd(const char *path, const void *data, size_t len, int frames);

/* A copy of text in memory of exactly len + PARSE_PAD bytes (so that a sanitizer sees a parser go too far).
 */
char *text_padded(const char *text, size_t len);

#endif
