// Values of any length: lens in Push, Pull and PushPull, by vectors and by SArrays, sized before and not.
#include "ps/ps.h"

using namespace ps;

static void Work(KVWorker<double> &kv)
{
    const int rank = MyRank(), n = 300;
    std::vector<Key> keys;
    std::vector<int> lens;
    std::vector<double> vals;
    for (int i = 0; i < n; ++i) {
        keys.push_back(kMaxKey / n * i + 1 + rank);
        lens.push_back(i % 5);
        for (int j = 0; j < i % 5; ++j)
            vals.push_back(i + 0.5 * j);
    }
    kv.Wait(kv.Push(keys, vals, lens));
    kv.Wait(kv.ZPush(SArray<Key>(keys), SArray<double>(vals), SArray<int>(lens), 7));

    std::vector<double> twice = vals, got;
    for (auto &v : twice)
        v *= 2;
    std::vector<int> got_lens;
    kv.Wait(kv.Pull(keys, &got, &got_lens));
    CHECK(got == twice);
    CHECK(got_lens == lens);

    got.assign(got.size(), 0); /* the same sizes as before: received in place */
    kv.Wait(kv.Pull(keys, &got, &got_lens));
    CHECK(got == twice);

    SArray<double> large(twice.size() + 100, -1.0); /* with lens, more room than needed is fine */
    SArray<int> zlens;
    kv.Wait(kv.ZPull(SArray<Key>(keys), &large, &zlens));
    CHECK_EQ(zlens.size(), lens.size());
    CHECK(std::equal(twice.begin(), twice.end(), large.begin()));
    CHECK_EQ(large[twice.size()], -1.0);

    SArray<double> zgot;
    kv.Wait(kv.ZPull(SArray<Key>(keys), &zgot)); /* without lens: the values alone, as many as come */
    CHECK(zgot.size() == twice.size() && std::equal(twice.begin(), twice.end(), zgot.begin()));

    std::vector<double> outs;
    std::vector<int> out_lens = lens; /* of what is pushed, and then of what has come */
    kv.Wait(kv.PushPull(keys, vals, &outs, &out_lens));
    CHECK_EQ(outs.size(), vals.size());
    for (size_t i = 0; i < outs.size(); ++i)
        CHECK_EQ(outs[i], 3 * vals[i]);
    CHECK(out_lens == lens);

    SArray<double> in(vals), out;
    SArray<int> io_lens(lens);
    kv.Wait(kv.ZPushPull(SArray<Key>(keys), in, &out, &io_lens));
    for (size_t i = 0; i < out.size(); ++i)
        CHECK_EQ(out[i], 4 * vals[i]);
    kv.Wait(kv.ZPushPull(SArray<Key>(keys), in, &in, &io_lens)); /* into what is sent */
    for (size_t i = 0; i < in.size(); ++i)
        CHECK_EQ(in[i], 5 * vals[i]);
}

int main()
{
    Start(0);
    KVServer<double> *server = nullptr;
    if (IsServer()) {
        server = new KVServer<double>(0);
        server->set_request_handle(KVServerDefaultHandle<double>());
    }
    if (IsWorker()) {
        KVWorker<double> kv(0, 0);
        Work(kv);
    }
    Finalize(0);
    delete server;
    return 0;
}
