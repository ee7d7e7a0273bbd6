/*
 * A TCP proxy before the servers of a drill, which knows what each connection is for (the purpose in its
 * HELLO, docs/PROTOCOL.md) and treats chains, moves of partitions and clients' data apart. Server i listens
 * on 127.0.0.(2 + i) and says that it is at 127.0.0.(102 + i), where this listens, on the same port.
 *
 *     proxy PORT SERVERS < COMMANDS
 *
 * Commands, one a line; WHAT is chain, move, data or all; I a server's number or -1 for all:
 *     delay WHAT I MS    each byte to server I arrives so much later
 *     hold WHAT I MS     nothing goes either way from now until then
 *     cut WHAT I         connections are closed at once, with what is under way
 * When the sender of a connection goes, what is still under way from it is lost, as with a host that
 * vanishes. Says "ready" when it listens; ends at the end of the commands.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { SERVERS_MAX = 32, LINKS_MAX = 1024, CHUNK = 1 << 16, UNDER_WAY_MAX = 64 << 20 };
enum { PURPOSE_AT = 132, PURPOSES = 5, ALL = 0 }; /* HELLO: the frame's header, two versions, the purpose */

struct chunk {
    struct chunk *next;
    double due;
    size_t len, sent;
    char data[];
};

/* One direction. */
struct way {
    struct chunk *first, *last;
    size_t bytes;
};

/* fd[0]: the client; fd[1]: the server. way[0] goes to the server. */
struct link {
    int fd[2];
    struct way way[2];
    int server, purpose; /* 0: not known yet */
    bool open;
};

static struct link links[LINKS_MAX];
static size_t links_n;
static double delays[SERVERS_MAX][PURPOSES], held_until[SERVERS_MAX][PURPOSES];
static int servers;

static double now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void fatal(const char *what)
{
    fprintf(stderr, "proxy: %s: %s\n", what, strerror(errno));
    exit(4);
}

static struct sockaddr_in address(int host, int port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)port),
                                .sin_addr.s_addr = htonl(UINT32_C(0x7f000000) + (uint32_t)host)};
}

static int listen_at(int host, int port)
{
    struct sockaddr_in at = address(host, port);
    int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) != 0 ||
        bind(fd, (struct sockaddr *)&at, sizeof at) != 0 || listen(fd, 256) != 0)
        fatal("cannot listen");
    return fd;
}

static void link_close(struct link *l)
{
    for (int i = 0; i < 2; i++) {
        close(l->fd[i]);
        for (struct chunk *c = l->way[i].first, *next; c; c = next) {
            next = c->next;
            free(c);
        }
    }
    *l = (struct link){.open = false};
}

/* As a host does whose process has died: a reset, not an end that could be taken for an orderly one. */
static void link_reset(struct link *l)
{
    struct linger hard = {.l_onoff = 1};
    for (int i = 0; i < 2; i++)
        (void)setsockopt(l->fd[i], SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    link_close(l);
}

static void accept_one(int listener, int server, int port)
{
    int one = 1, from = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (from < 0)
        return;
    struct sockaddr_in at = address(2 + server, port);
    int to = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    size_t place = 0;
    while (place < links_n && links[place].open)
        place++;
    if (to < 0 || place == LINKS_MAX || connect(to, (struct sockaddr *)&at, sizeof at) != 0) {
        close(from); /* the server is not there: the client sees that soon */
        if (to >= 0)
            close(to);
        return;
    }
    (void)fcntl(to, F_SETFL, O_NONBLOCK);
    (void)setsockopt(from, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    (void)setsockopt(to, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    links_n += place == links_n;
    links[place] = (struct link){.fd = {from, to}, .server = server, .open = true};
}

/* The least of what is asked for one purpose, and for all. */
static double setting(double of[SERVERS_MAX][PURPOSES], const struct link *l)
{
    double own = of[l->server][l->purpose], all = of[l->server][ALL];
    return own > all ? own : all;
}

/* What has come on fd[i]; false: the link is at its end. */
static bool take(struct link *l, int i)
{
    struct way *w = &l->way[i];
    struct chunk *c = malloc(sizeof *c + CHUNK);
    if (!c)
        fatal("out of memory");
    ssize_t n = read(l->fd[i], c->data, CHUNK);
    if (n <= 0) {
        free(c);
        return n < 0 && (errno == EAGAIN || errno == EINTR);
    }
    if (i == 0 && l->purpose == 0 && n > PURPOSE_AT && !w->first) { /* a HELLO comes in one piece */
        int purpose = c->data[PURPOSE_AT];
        l->purpose = purpose > 0 && purpose < PURPOSES ? purpose : 0;
    }
    *c = (struct chunk){.due = now() + (i == 0 ? setting(delays, l) / 1e3 : 0), .len = (size_t)n};
    if (w->last && w->last->due > c->due)
        c->due = w->last->due;
    w->bytes += c->len;
    *(w->first ? &w->last->next : &w->first) = c;
    w->last = c;
    return true;
}

/* Sends what is due from fd[i] to the other; false: the other is gone. */
static bool give(struct link *l, int i, double at)
{
    struct way *w = &l->way[i];
    while (w->first && w->first->due <= at) {
        struct chunk *c = w->first;
        ssize_t n = send(l->fd[!i], c->data + c->sent, c->len - c->sent, MSG_NOSIGNAL);
        if (n < 0)
            return errno == EAGAIN || errno == EINTR;
        c->sent += (size_t)n;
        if (c->sent < c->len)
            return true;
        w->bytes -= c->len;
        w->first = c->next;
        w->last = w->first ? w->last : NULL;
        free(c);
    }
    return true;
}

static int purpose_named(const char *name)
{
    static const char *const names[PURPOSES] = {"all", "control", "data", "chain", "move"};
    for (int i = 0; i < PURPOSES; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    fprintf(stderr, "proxy: '%s' is no purpose\n", name);
    exit(2);
}

static void command(const char *line)
{
    char verb[16], what[16];
    int server, ms = 0;
    int n = sscanf(line, "%15s %15s %d %d", verb, what, &server, &ms);
    if (n < 3 || server >= servers) {
        fprintf(stderr, "proxy: '%s' is no command\n", line);
        exit(2);
    }
    int purpose = purpose_named(what);
    for (int i = 0; i < servers; i++) {
        if (server >= 0 && server != i)
            continue;
        if (strcmp(verb, "delay") == 0)
            delays[i][purpose] = ms;
        else if (strcmp(verb, "hold") == 0)
            held_until[i][purpose] = now() + ms / 1e3;
        for (size_t k = 0; k < links_n && strcmp(verb, "cut") == 0; k++)
            if (links[k].open && links[k].server == i && (purpose == ALL || links[k].purpose == purpose))
                link_reset(&links[k]);
    }
}

/* False: there will be no more commands. */
static bool take_commands(void)
{
    static char text[4096];
    static size_t len;
    ssize_t n = read(STDIN_FILENO, text + len, sizeof text - len - 1);
    if (n <= 0)
        return n < 0 && errno == EINTR;
    len += (size_t)n;
    text[len] = '\0';
    for (char *end; (end = strchr(text, '\n'));) {
        *end = '\0';
        command(text);
        len -= (size_t)(end + 1 - text);
        memmove(text, end + 1, len + 1);
    }
    return true;
}

/* Milliseconds until this link has something to send; -1: it has to wait for others. */
static int link_due(const struct link *l, double at)
{
    double due = -1;
    for (int i = 0; i < 2; i++)
        if (l->way[i].first && (due < 0 || l->way[i].first->due < due))
            due = l->way[i].first->due;
    double held = setting(held_until, l);
    if (due < 0)
        return -1;
    due = due > held ? due : held;
    return due <= at ? 0 : (int)((due - at) * 1e3) + 1;
}

static void serve_link(struct link *l, const struct pollfd fds[2], double at)
{
    bool held = setting(held_until, l) > at;
    for (int i = 0; i < 2 && l->open && !held; i++) {
        if ((fds[i].revents & (POLLIN | POLLHUP | POLLERR)) && !take(l, i))
            link_reset(l);
        else if (!give(l, i, at))
            link_reset(l);
    }
}

int main(int argc, char **argv)
{
    static struct pollfd fds[1 + SERVERS_MAX + 2 * LINKS_MAX];
    int port = argc == 3 ? atoi(argv[1]) : 0;
    servers = argc == 3 ? atoi(argv[2]) : 0;
    if (port <= 0 || servers <= 0 || servers > SERVERS_MAX) {
        fputs("usage: proxy PORT SERVERS < COMMANDS\n", stderr);
        return 2;
    }
    fds[0] = (struct pollfd){.fd = STDIN_FILENO, .events = POLLIN};
    for (int i = 0; i < servers; i++)
        fds[1 + i] = (struct pollfd){.fd = listen_at(102 + i, port), .events = POLLIN};
    puts("ready");
    fflush(stdout);
    struct pollfd *of_links = fds + 1 + servers;
    for (;;) {
        double at = now();
        int wait = -1;
        for (size_t k = 0; k < links_n; k++) {
            struct link *l = &links[k];
            bool held = l->open && setting(held_until, l) > at;
            int due = l->open ? link_due(l, at) : -1;
            for (int i = 0; i < 2; i++) {
                bool takes = l->open && !held && l->way[i].bytes < UNDER_WAY_MAX;
                bool gives = l->open && !held && l->way[!i].first && l->way[!i].first->due <= at;
                of_links[2 * k + (size_t)i] =
                    (struct pollfd){.fd = takes || gives ? l->fd[i] : -1,
                                    .events = (short)((takes ? POLLIN : 0) | (gives ? POLLOUT : 0))};
                if (held && (wait < 0 || wait > 5))
                    wait = 5; /* bytes that arrive during this are not examined */
            }
            if (due > 0 && (wait < 0 || due < wait))
                wait = due;
        }
        size_t n = links_n;
        if (poll(fds, 1 + (nfds_t)servers + 2 * n, wait) < 0 && errno != EINTR)
            fatal("poll");
        at = now();
        for (size_t k = 0; k < n; k++)
            if (links[k].open)
                serve_link(&links[k], of_links + 2 * k, at);
        for (int i = 0; i < servers; i++)
            if (fds[1 + i].revents & POLLIN)
                accept_one(fds[1 + i].fd, i, port);
        if ((fds[0].revents & (POLLIN | POLLHUP)) && !take_commands())
            return 0;
    }
}
