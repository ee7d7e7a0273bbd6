#include "van/local.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <string.h>
#include <unistd.h>

static bool to_text(const struct sockaddr *sa, char text[ADDR_HOST_MAX])
{
    const void *from = sa->sa_family == AF_INET
                           ? (const void *)&((const struct sockaddr_in *)(const void *)sa)->sin_addr
                           : (const void *)&((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr;
    return (sa->sa_family == AF_INET || sa->sa_family == AF_INET6) &&
           inet_ntop(sa->sa_family, from, text, ADDR_HOST_MAX);
}

/* The port does not matter: 9 is "discard". */
static paramo_err addresses_of(const char *host, struct addr_list *list)
{
    if (!addr_literal(host, 9, &list->addr[0]))
        return addr_resolve(host, 9, list);
    list->count = 1;
    return PARAMO_OK;
}

paramo_err local_towards(const char *host, char text[ADDR_HOST_MAX])
{
    struct addr_list list;
    paramo_err err = addresses_of(host, &list);
    if (err)
        return err;
    int why = 0;
    for (unsigned i = 0; i < list.count; i++) {
        /* Connecting a datagram socket sends nothing: the kernel only chooses the route. */
        const struct addr *to = &list.addr[i];
        int fd = socket(to->sa.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        struct sockaddr_storage own = {0};
        socklen_t len = sizeof own;
        bool found = fd >= 0 && connect(fd, (const struct sockaddr *)&to->sa, to->len) == 0 &&
                     getsockname(fd, (struct sockaddr *)&own, &len) == 0 &&
                     to_text((const struct sockaddr *)&own, text);
        why = errno;
        if (fd >= 0)
            (void)close(fd);
        if (found)
            return PARAMO_OK;
    }
    return err_errno(PARAMO_E_ADDRESS, why, "no route to %s", host);
}

paramo_err local_interface(const char *name, char text[ADDR_HOST_MAX])
{
    struct ifaddrs *all = NULL;
    if (getifaddrs(&all))
        return err_errno(PARAMO_E_SYSTEM, errno, "list the network interfaces");
    bool found = false;
    static const sa_family_t families[] = {AF_INET, AF_INET6};
    for (unsigned f = 0; f < 2 && !found; f++)
        for (const struct ifaddrs *a = all; a && !found; a = a->ifa_next)
            found = a->ifa_addr && a->ifa_addr->sa_family == families[f] && strcmp(a->ifa_name, name) == 0 &&
                    to_text(a->ifa_addr, text);
    freeifaddrs(all);
    return found ? PARAMO_OK
                 : err_set(PARAMO_E_ADDRESS, "there is no network interface %s with an address", name);
}

static bool is_loopback(const struct addr *addr)
{
    if (addr->sa.ss_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)&addr->sa)->sin6_addr);
    return ntohl(((const struct sockaddr_in *)&addr->sa)->sin_addr.s_addr) >> 24 == 127;
}

bool local_loopback(const char *host)
{
    struct addr_list list;
    if (strcmp(host, "localhost") == 0)
        return true;
    if (addresses_of(host, &list))
        return false;
    bool all = list.count > 0;
    for (unsigned i = 0; i < list.count && all; i++)
        all = is_loopback(&list.addr[i]);
    return all;
}
