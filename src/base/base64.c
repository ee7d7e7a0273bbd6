#include "base/base64.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_write(struct writer *w, const void *bytes, size_t len)
{
    const uint8_t *at = bytes;
    for (; len; at += 3) {
        size_t n = len < 3 ? len : 3;
        uint32_t three = (uint32_t)at[0] << 16;
        three |= n > 1 ? (uint32_t)at[1] << 8 : 0;
        three |= n > 2 ? at[2] : 0;
        char four[4];
        for (unsigned i = 0; i < 4; i++)
            four[i] = i > n ? '=' : digits[three >> (18 - 6 * i) & 63];
        write_bytes(w, four, sizeof four);
        len -= n;
    }
}

static int digit_of(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool base64_read(const char *text, size_t len, struct writer *w)
{
    if (len % 4)
        return false;
    for (size_t at = 0; at < len; at += 4) {
        unsigned pad = 0;
        if (at + 4 == len)
            pad = text[at + 3] != '=' ? 0 : text[at + 2] != '=' ? 1 : 2;
        uint32_t three = 0;
        for (unsigned i = 0; i < 4; i++) {
            int digit = i + pad > 3 ? 0 : digit_of(text[at + i]);
            if (digit < 0)
                return false;
            three = three << 6 | (uint32_t)digit;
        }
        if (pad && three & ((1u << 8 * pad) - 1))
            return false; /* set bits beyond the last byte */
        uint8_t bytes[3] = {(uint8_t)(three >> 16), (uint8_t)(three >> 8), (uint8_t)three};
        write_bytes(w, bytes, 3 - pad);
    }
    return !w->failed;
}
