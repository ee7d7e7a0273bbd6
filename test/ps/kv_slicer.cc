// A slicer of the program's own: keys by key % servers, so that the slices interleave; the server's rank is
// checked by its handle, and the values of a pull come back in the order of the keys.
// Sanitizers: address; kv_callbacks has the same threads.
#include <map>

#include "ps/ps.h"

using namespace ps;

static void Modulo(const KVPairs<int> &send, const std::vector<Range> &ranges,
                   KVWorker<int>::SlicedKVs *sliced)
{
    const size_t servers = ranges.size();
    CHECK_EQ(servers, static_cast<size_t>(NumServers()));
    sliced->resize(servers);
    size_t at = 0, each = send.vals.size() / std::max<size_t>(send.keys.size(), 1);
    for (size_t i = 0; i < send.keys.size(); ++i) {
        auto &slice = sliced->at(send.keys[i] % servers);
        slice.first = true;
        slice.second.keys.push_back(send.keys[i]);
        size_t length = send.lens.empty() ? each : static_cast<size_t>(send.lens[i]);
        if (!send.lens.empty())
            slice.second.lens.push_back(send.lens[i]);
        for (size_t j = 0; j < length && !send.vals.empty(); ++j)
            slice.second.vals.push_back(send.vals[at++]);
    }
}

static void Handle(const KVMeta &meta, const KVPairs<int> &data, KVServer<int> *server)
{
    static std::map<Key, std::vector<int>> store;
    size_t at = 0, each = data.vals.size() / std::max<size_t>(data.keys.size(), 1);
    KVPairs<int> res;
    for (size_t i = 0; i < data.keys.size(); ++i) {
        CHECK_EQ(data.keys[i] % NumServers(), static_cast<Key>(MyRank()));
        auto &row = store[data.keys[i]];
        if (meta.push) {
            size_t length = data.lens.size() ? static_cast<size_t>(data.lens[i]) : each;
            row.assign(data.vals.begin() + at, data.vals.begin() + at + length);
            at += length;
        }
        if (meta.pull) {
            res.keys.push_back(data.keys[i]);
            res.lens.push_back(static_cast<int>(row.size()));
            for (int v : row)
                res.vals.push_back(v);
        }
    }
    server->Response(meta, res);
}

int main()
{
    Start(0);
    if (IsServer()) {
        auto server = new KVServer<int>(0);
        server->set_request_handle(Handle);
        RegisterExitCallback([server]() { delete server; });
    }
    if (IsWorker()) {
        KVWorker<int> kv(0, 0);
        kv.set_slicer(Modulo);
        const Key base = 1000 * MyRank();
        std::vector<Key> keys;
        std::vector<int> vals, lens, got, got_lens;
        for (int i = 0; i < 100; ++i) {
            keys.push_back(base + i);
            lens.push_back(1 + i % 3);
            for (int j = 0; j <= i % 3; ++j)
                vals.push_back(10 * i + j);
        }
        kv.Wait(kv.Push(keys, vals, lens));
        kv.Wait(kv.Pull(keys, &got, &got_lens));
        CHECK(got == vals && got_lens == lens);
        std::vector<int> again(vals.size());
        kv.Wait(kv.Pull(keys, &again));
        CHECK(again == vals);

        /* Slices that do not cover the pull once are an error that is said. */
        kv.set_slicer(
            [](const KVPairs<int> &send, const std::vector<Range> &ranges, KVWorker<int>::SlicedKVs *s) {
                s->resize(ranges.size());
                for (size_t r = 0; r < ranges.size(); ++r) {
                    s->at(r).first = true;
                    s->at(r).second.keys = send.keys.segment(r, r + 1);
                }
            });
        bool thrown = false;
        try {
            std::vector<int> none;
            kv.Wait(kv.Pull({base + 2 * Key(NumServers()), base + 2 * Key(NumServers()) + 1,
                             base + 2 * Key(NumServers()) + 2, base + 2 * Key(NumServers()) + 3},
                            &none));
        } catch (const dmlc::Error &) {
            thrown = true;
        }
        CHECK(thrown);
    }
    Finalize(0);
    return 0;
}
