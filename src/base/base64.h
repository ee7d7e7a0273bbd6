/*
 * Bytes as text and back (RFC 4648, section 4, padded): for keys and values in JSON, which it never knows. Tests:
 * test/base/test_base64.c.
 */
#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include "base/cursor.h"

/* Appends to the writer, which must be one that grows. */
void base64_write(struct writer *w, const void *bytes, size_t len);
/* Appends the bytes. False: the text is not base64 in its one canonical form, or there is no memory (then
 * w has failed). */
MUST_USE bool base64_read(const char *text, size_t len, struct writer *w);

#endif
