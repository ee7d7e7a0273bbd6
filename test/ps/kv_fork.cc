// A child of fork() has no part in the job: it ends as it likes, with its own exit code, and what it inherits waits for
// nothing when it goes. The parent goes on.
#include <sys/wait.h>

#include "ps/ps.h"

using namespace ps;

static int in_child;

/* LeakSanitizer asks: a child has none of the threads whose stacks the process's memory hangs on. */
extern "C" int __lsan_is_turned_off()
{
    return in_child;
}

/* The exit code of a child that runs f and exits with 0. */
template <typename F> static int InChild(F &&f)
{
    const pid_t child = fork();
    CHECK_GE(child, 0);
    if (child == 0) {
        in_child = 1;
        f();
        exit(0);
    }
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int main()
{
    Start(0);
    std::unique_ptr<KVServer<float>> server;
    if (IsServer()) {
        server.reset(new KVServer<float>(0));
        server->set_request_handle(KVServerDefaultHandle<float>());
    }
    std::unique_ptr<KVWorker<float>> kv;
    if (IsWorker()) {
        kv.reset(new KVWorker<float>(0, 0));
        static KVWorker<float> at_exit(0, 5); /* destroyed by exit() */
        kv->Wait(kv->Push({1, kMaxKey}, {1, 1}));
    }
    CHECK_EQ(InChild([] {}), 0);
    CHECK_EQ(InChild([&] {
                 Finalize(0);
                 kv.reset();
                 server.reset();
             }),
             0);
    if (IsWorker())
        kv->Wait(kv->Push({1, kMaxKey}, {1, 1}));
    Finalize(0);
    return 0;
}
