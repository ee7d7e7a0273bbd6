#include "unit.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "env/http.h"

/* A server that takes one connection at a time, reads one request and says what it is told to. */
static struct server {
    int fd;
    uint16_t port;
    pthread_t thread;
    const char *says; /* NULL: nothing, until the other side hangs up */
    size_t most;      /* bytes that it says before it hangs up */
    char heard[8192];
} s;

static bool whole(const char *request, size_t len)
{
    const char *end = strstr(request, "\r\n\r\n"), *length = strcasestr(request, "content-length: ");
    return end && length && len >= (size_t)(end + 4 - request) + strtoul(length + 16, NULL, 10);
}

static void *serve(void *arg)
{
    (void)arg;
    int conn = accept(s.fd, NULL, NULL);
    size_t len = 0;
    ssize_t n = 1;
    while (conn >= 0 && n > 0 && !whole(s.heard, len) && len < sizeof s.heard - 1) {
        n = read(conn, s.heard + len, sizeof s.heard - 1 - len);
        len += n > 0 ? (size_t)n : 0;
        s.heard[len] = '\0';
    }
    if (s.says && s.most)
        (void)!send(conn, s.says, strlen(s.says) < s.most ? strlen(s.says) : s.most, MSG_NOSIGNAL);
    char rest[64];
    while (!s.says && read(conn, rest, sizeof rest) > 0)
        ;
    close(conn);
    return NULL;
}

static void server_on(const char *says, size_t most)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    s = (struct server){.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), .says = says, .most = most};
    assert_int_equal(bind(s.fd, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(s.fd, 1), 0);
    assert_int_equal(getsockname(s.fd, (struct sockaddr *)&address, &len), 0);
    s.port = ntohs(address.sin_port);
    assert_int_equal(pthread_create(&s.thread, NULL, serve, NULL), 0);
}

static void server_off(void)
{
    assert_int_equal(pthread_join(s.thread, NULL), 0);
    close(s.fd);
}

static struct http *http;
static struct writer answer;
static unsigned status;

static paramo_err post(uint32_t timeout_ms, size_t most)
{
    char url[64];
    struct writer body = {0};
    write_bytes(&body, "{\"a\":1}", 7);
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%u/v3/kv/txn", s.port);
    struct http_request ask = {.url = url, .body = &body, .timeout_ms = timeout_ms, .answer_max = most};
    status = 0;
    writer_fini(&answer);
    answer = (struct writer){0};
    paramo_err err = http_post(http, &ask, &status, &answer);
    writer_fini(&body);
    if (err)
        assert_non_null(strstr(err_text(), url));
    return err;
}

static const char good[] = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello";

static void asked_and_answered(void **state)
{
    (void)state;
    setenv("http_proxy", "http://127.0.0.1:1", 1); /* not for these */
    server_on(good, SIZE_MAX);
    assert_int_equal(post(60000, 5), PARAMO_OK);
    server_off();
    assert_int_equal(status, 200);
    assert_int_equal(answer.len, 5);
    assert_memory_equal(answer.data, "hello", 5);
    assert_memory_equal(s.heard, "POST /v3/kv/txn HTTP/1.1\r\n", 26);
    assert_non_null(strcasestr(s.heard, "\r\nContent-Type: application/json\r\n"));
    assert_null(strcasestr(s.heard, "Expect:"));
    assert_string_equal(strstr(s.heard, "\r\n\r\n") + 4, "{\"a\":1}");
    server_on("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 2\r\n\r\nno", SIZE_MAX);
    assert_int_equal(post(60000, 5), PARAMO_OK);
    server_off();
    assert_int_equal(status, 503);
    assert_memory_equal(answer.data, "no", 2);
}

static void bounded(void **state)
{
    (void)state;
    server_on(good, SIZE_MAX);
    assert_int_equal(post(60000, 4), PARAMO_E_TOO_LARGE);
    server_off();
    server_on(NULL, 0);
    assert_int_equal(post(50, 5), PARAMO_E_TIMEOUT);
    server_off();
}

static void broken_off(void **state)
{
    (void)state;
    for (size_t most = 0; most < sizeof good - 1; most += 9) {
        server_on(good, most);
        paramo_err err = post(60000, 5); /* libcurl takes a head that ends early for one without a body */
        assert_true(err ? err == PARAMO_E_DISCONNECTED : !answer.len);
        server_off();
    }
    server_on("this is no HTTP\r\n", SIZE_MAX);
    assert_int_equal(post(60000, 50), PARAMO_E_DISCONNECTED);
    server_off();
    assert_int_equal(post(60000, 5), PARAMO_E_CONNECT); /* no process listens there any more */
}

int main(void)
{
    if (http_create(&http)) {
        (void)fprintf(stderr, "skipped: %s\n", err_text());
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(asked_and_answered),
        cmocka_unit_test(bounded),
        cmocka_unit_test(broken_off),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    writer_fini(&answer);
    http_destroy(http);
    return failed;
}
