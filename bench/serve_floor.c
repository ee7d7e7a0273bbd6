/* The least that an answer costs: libmicrohttpd with one thread, which takes a body and answers the same bytes. */
#include <microhttpd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static char text[] = "0.123456789\n";

static enum MHD_Result answer(void *arg, struct MHD_Connection *c, const char *url, const char *method,
                              const char *version, const char *data, size_t *len, void **context)
{
    static int begun;
    (void)arg, (void)url, (void)method, (void)version, (void)data;
    if (*context == NULL) {
        *context = &begun;
        return MHD_YES;
    }
    if (*len > 0) {
        *len = 0;
        return MHD_YES;
    }
    struct MHD_Response *r = MHD_create_response_from_buffer(sizeof text - 1, text, MHD_RESPMEM_PERSISTENT);
    enum MHD_Result queued = MHD_queue_response(c, 200, r);
    MHD_destroy_response(r);
    return queued;
}

int main(void)
{
    sigset_t set;
    int sig;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    struct MHD_Daemon *d =
        MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD, 0, NULL, NULL, answer, NULL, MHD_OPTION_END);
    if (d == NULL)
        return 1;
    fprintf(stderr, "listening on port %u\n",
            (unsigned)MHD_get_daemon_info(d, MHD_DAEMON_INFO_BIND_PORT)->port);
    sigwait(&set, &sig);
    MHD_stop_daemon(d);
    return 0;
}
