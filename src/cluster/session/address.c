#include "cluster/session/address.h"

#include <stdio.h>
#include <string.h>

void address_join(const char *host, uint16_t port, char address[ADDRESS_MAX])
{
    snprintf(address, ADDRESS_MAX, strchr(host, ':') ? "[%s]:%u" : "%s:%u", host, (unsigned)port);
}

bool address_next(const char **list, char address[ADDRESS_MAX])
{
    size_t len = strcspn(*list, ",");
    if (!len || len >= ADDRESS_MAX)
        return false;
    memcpy(address, *list, len);
    address[len] = '\0';
    *list += len + ((*list)[len] == ',');
    return true;
}

bool address_is_loopback(const char *host)
{
    return strcmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0;
}

paramo_err address_split(const char *address, char *host, size_t host_capacity, uint16_t *port)
{
    const char *colon = strrchr(address, ':'), *begin = address, *end = colon;
    unsigned number = 0;
    const char *digit = colon ? colon + 1 : "";
    size_t digits = strlen(digit);
    for (; *digit >= '0' && *digit <= '9' && number <= UINT16_MAX; digit++)
        number = number * 10 + (unsigned)(*digit - '0');
    if (number > UINT16_MAX)
        return err_set(PARAMO_E_ADDRESS, "%s: the port is not from 1 to %d", address, UINT16_MAX);
    if (digits == 0 || *digit)
        return err_set(PARAMO_E_ADDRESS, "%s has no port", address);
    if (*begin == '[') {
        if (end == begin || end[-1] != ']')
            return err_set(PARAMO_E_ADDRESS, "%s: [ without ]", address);
        begin++;
        end--;
    } else if (memchr(begin, ':', (size_t)(end - begin))) {
        return err_set(PARAMO_E_ADDRESS, "%s: write an IPv6 address as [address]:port", address);
    }
    if (begin == end || (size_t)(end - begin) >= host_capacity)
        return err_set(PARAMO_E_ADDRESS, "%s: the host is empty or too long", address);
    memcpy(host, begin, (size_t)(end - begin));
    host[end - begin] = '\0';
    *port = (uint16_t)number;
    return PARAMO_OK;
}
