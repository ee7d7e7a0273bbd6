#include "van/addr.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>

paramo_err addr_split(const char *text, char host[ADDR_HOST_MAX], uint16_t *port)
{
    const char *begin = text;
    const char *end;
    const char *colon;
    if (*text == '[') {
        begin++;
        end = strchr(begin, ']');
        if (!end || end[1] != ':')
            return err_set(PARAMO_E_ADDRESS, "address \"%s\": expected [IPv6]:port", text);
        colon = end + 1;
    } else {
        colon = strrchr(text, ':');
        if (!colon)
            return err_set(PARAMO_E_ADDRESS, "address \"%s\" has no port", text);
        end = colon;
        if (memchr(text, ':', (size_t)(end - text)))
            return err_set(PARAMO_E_ADDRESS,
                           "address \"%s\": write an IPv6 address in brackets, [ADDRESS]:PORT", text);
    }
    size_t len = (size_t)(end - begin);
    if (len == 0 || len >= ADDR_HOST_MAX)
        return err_set(PARAMO_E_ADDRESS, "address \"%s\" has no host", text);
    unsigned number = 0;
    const char *p = colon + 1;
    for (; *p >= '0' && *p <= '9' && number <= UINT16_MAX; p++)
        number = number * 10 + (unsigned)(*p - '0');
    if (p == colon + 1 || *p || number > UINT16_MAX)
        return err_set(PARAMO_E_ADDRESS, "address \"%s\": the port is not a number from 0 to 65535", text);
    memcpy(host, begin, len);
    host[len] = 0;
    *port = (uint16_t)number;
    return PARAMO_OK;
}

bool addr_literal(const char *host, uint16_t port, struct addr *addr)
{
    memset(addr, 0, sizeof *addr);
    struct sockaddr_in *v4 = (struct sockaddr_in *)&addr->sa;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&addr->sa;
    if (strcmp(host, "*") == 0 || inet_pton(AF_INET, host, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET; /* "*": INADDR_ANY is zero */
        v4->sin_port = htons(port);
        addr->len = sizeof *v4;
        return true;
    }
    if (inet_pton(AF_INET6, host, &v6->sin6_addr) == 1) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons(port);
        addr->len = sizeof *v6;
        return true;
    }
    return false;
}

paramo_err addr_resolve(const char *host, uint16_t port, struct addr_list *list)
{
    char service[8];
    (void)snprintf(service, sizeof service, "%u", port);
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    int failed = getaddrinfo(host, service, &hints, &found);
    if (failed)
        return err_set(PARAMO_E_ADDRESS, "resolve %s: %s", host, gai_strerror(failed));
    list->count = 0;
    for (const struct addrinfo *a = found; a && list->count < ADDR_LIST_MAX; a = a->ai_next) {
        if (a->ai_addrlen > sizeof list->addr[0].sa)
            continue;
        struct addr *addr = &list->addr[list->count++];
        memset(addr, 0, sizeof *addr);
        memcpy(&addr->sa, a->ai_addr, a->ai_addrlen);
        addr->len = a->ai_addrlen;
    }
    freeaddrinfo(found);
    return list->count ? PARAMO_OK : err_set(PARAMO_E_ADDRESS, "resolve %s: no address", host);
}

void addr_format(const struct addr *addr, char text[ADDR_TEXT_MAX])
{
    char host[INET6_ADDRSTRLEN] = "?";
    if (addr->sa.ss_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&addr->sa;
        (void)inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof host);
        (void)snprintf(text, ADDR_TEXT_MAX, "[%s]:%u", host, ntohs(v6->sin6_port));
    } else {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)&addr->sa;
        (void)inet_ntop(AF_INET, &v4->sin_addr, host, sizeof host);
        (void)snprintf(text, ADDR_TEXT_MAX, "%s:%u", host, ntohs(v4->sin_port));
    }
}
