// Small keys all fall on server 0: the job works, and each worker says so once on its standard error (run.sh
// looks).
#include "ps/ps.h"

int main()
{
    ps::Start();
    ps::KVServer<float> *server = nullptr;
    if (ps::IsServer()) {
        server = new ps::KVServer<float>(0);
        server->set_request_handle(ps::KVServerDefaultHandle<float>());
    }
    if (ps::IsWorker()) {
        ps::KVWorker<float> kv(0); // the signatures of older programs: no customer ids
        std::vector<ps::Key> keys;
        for (ps::Key k = 0; k < 2000; ++k)
            keys.push_back(k);
        std::vector<float> vals(keys.size(), 1.0f), got;
        for (int i = 0; i < 3; ++i)
            kv.Wait(kv.Push(keys, vals));
        kv.Wait(kv.Pull(keys, &got));
        CHECK_GE(got[1999], 3.0f);
        ps::Postoffice::Get()->Barrier(ps::kWorkerGroup);
    }
    ps::Finalize(true); // as above
    delete server;
    return 0;
}
