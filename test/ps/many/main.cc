// One program of several files, each with all headers: an app that derives from SimpleApp, and a handle of
// its own.
#include "app.h"

int Train(Progress *progress)
{
    ps::KVWorker<int> kv(2, 0);
    ps::SArray<ps::Key> keys;
    for (int i = 0; i < 500; ++i)
        keys.push_back(ps::kMaxKey - static_cast<ps::Key>(i) * (ps::kMaxKey / 501));
    ps::ParallelSort(&keys, 2);
    ps::SArray<int> vals(keys.size(), 10 + ps::MyRank()), got;
    kv.Wait(kv.ZPush(keys, vals));
    ps::Postoffice::Get()->Barrier(0, ps::kWorkerGroup);
    kv.Wait(kv.ZPull(keys, &got));
    for (int v : got)
        CHECK_EQ(v, 10 + ps::NumWorkers() - 1);
    progress->Wait(progress->Report(static_cast<int>(got.size())));
    return 0;
}

int main(int, char **argv)
{
    ps::Start(0, argv[0]);
    Serve();
    Progress progress(6);
    if (ps::IsWorker())
        Train(&progress);
    ps::Finalize(0, true);
    if (ps::IsScheduler())
        CHECK_EQ(progress.total(), 500 * ps::NumWorkers());
    return 0;
}
