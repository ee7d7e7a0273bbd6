// Keys in any order and repeated reach a handle as they were sent, and answers under other keys than were
// asked for are an error of the request. What MXNet sends is among them: a row-sparse push repeats its first
// key, with a length of 0; a compressed one has two keys in descending order.
// Sanitizers: address; kv_callbacks has the same threads.
#include <map>
#include <mutex>

#include "errors.h"
#include "ps/ps.h"

using namespace ps;

enum { STORE, LOG_IT, SUBSET, REORDERED, OTHERS, FEWER_LENS, WRONG_TOTAL };

/* Keeps the last row of each key, and the lists of keys that came, per sender. */
struct Keeper {
    std::map<Key, std::vector<float>> rows;
    std::map<int, std::string> log;

    void operator()(const KVMeta &meta, const KVPairs<float> &data, KVServer<float> *server)
    {
        if (meta.push) {
            size_t at = 0;
            const size_t n = data.keys.size(), each = n ? data.vals.size() / n : 0;
            for (size_t i = 0; i < n; i++) {
                const size_t len = data.lens.empty() ? each : static_cast<size_t>(data.lens[i]);
                log[meta.sender] += std::to_string(data.keys[i] % 1000) + ":" + std::to_string(len) + " ";
                std::vector<float> &row = rows[data.keys[i]];
                if (len > 0)
                    row.assign(data.vals.data() + at, data.vals.data() + at + len);
                at += len;
            }
        }
        KVPairs<float> res;
        if (meta.pull) {
            for (Key key : data.keys) {
                const std::vector<float> &row = rows[key];
                if (meta.cmd == SUBSET && row.empty())
                    continue;
                res.keys.push_back(meta.cmd == OTHERS ? key + 1 : key);
                res.lens.push_back(static_cast<int>(row.size()));
                for (float val : row)
                    res.vals.push_back(val);
            }
            if (meta.cmd == REORDERED)
                std::reverse(res.keys.begin(), res.keys.end());
            if (meta.cmd == SUBSET)
                res.lens.clear();
            if (meta.cmd == FEWER_LENS)
                res.lens.resize(1);
            if (meta.cmd == WRONG_TOTAL)
                res.lens[0]++;
        }
        server->Response(meta, res);
    }
};

int main()
{
    Start(0);
    auto keeper = std::make_shared<Keeper>();
    if (IsServer()) {
        auto server = new KVServer<float>(0);
        server->set_request_handle(
            [keeper](const KVMeta &m, const KVPairs<float> &d, KVServer<float> *s) { (*keeper)(m, d, s); });
        static_cast<SimpleApp *>(server)->set_request_handle([keeper](const SimpleData &req, SimpleApp *app) {
            app->Response(req, keeper->log[req.sender]);
            keeper->log[req.sender].clear();
        });
        RegisterExitCallback([server] { delete server; });
    }
    if (IsWorker()) {
        KVWorker<float> kv(0, 0);
        std::mutex mu;
        std::map<int, std::string> logs;
        kv.set_response_handle([&](const SimpleData &res, SimpleApp *) {
            std::lock_guard<std::mutex> lock(mu);
            logs[Postoffice::IDtoRank(res.sender)] = res.body;
        });
        auto came = [&](int rank) {
            logs.clear();
            kv.Wait(kv.Request(0, "", kServerGroup));
            return logs[rank];
        };
        const std::vector<Range> &ranges = Postoffice::Get()->GetServerKeyRanges();
        /* Each worker's keys are its own. */
        std::vector<Key> at;
        for (const Range &range : ranges)
            at.push_back((range.begin() / 1000 + 1) * 1000 + 1000000 * static_cast<Key>(MyRank()));
        const int last = NumServers() - 1;
        const Key a = at[0], b = at[static_cast<size_t>(last)];

        /* A row-sparse push and pull of MXNet's: the master key, with length 0, then rows of which one is the
         * same. */
        SArray<Key> keys({a + 5, a + 5, a + 7});
        SArray<float> vals({1, 2, 3, 4});
        kv.Wait(kv.ZPush(keys, vals, SArray<int>({0, 2, 2}), STORE));
        CHECK_EQ(came(0), "5:0 5:2 7:2 ");
        /* A compressed one: two keys, descending, the first without values. */
        kv.Wait(kv.ZPush(SArray<Key>({a + 9, a + 3}), SArray<float>({7, 8, 9}), SArray<int>({0, 3}), STORE));
        CHECK_EQ(came(0), "9:0 3:3 ");
        std::vector<float> got;
        std::vector<int> lens;
        kv.Wait(kv.Pull({a + 3, a + 7, a + 5, a + 7}, &got, &lens));
        CHECK(got == std::vector<float>({7, 8, 9, 3, 4, 1, 2, 3, 4}) &&
              lens == std::vector<int>({3, 2, 2, 2}));

        /* Over several servers, to and fro. */
        kv.Wait(kv.Push({b + 2, a + 2, b + 1, a + 2, b + 2}, {1, 2, 3, 4, 5}));
        CHECK_EQ(came(0), last == 0 ? "2:1 2:1 1:1 2:1 2:1 " : "2:1 2:1 ");
        if (last > 0)
            CHECK_EQ(came(last), "") << "it has been asked for, and cleared";
        got.clear();
        kv.Wait(kv.Pull({b + 1, a + 2, b + 2, a + 2}, &got));
        CHECK(got == std::vector<float>({3, 4, 5, 4}));
        std::vector<float> room(4, -1);
        kv.Wait(kv.Pull({b + 1, a + 2, b + 2, a + 2}, &room));
        CHECK(room == got);
        std::vector<float> out;
        kv.Wait(kv.PushPull({b + 1, a + 2}, {6, 7}, &out));
        CHECK(out == std::vector<float>({6, 7}));
        /* Large enough to be shared instead of copied. */
        const size_t many = 20000;
        std::vector<Key> large(many);
        std::vector<float> sent(many);
        for (size_t i = 0; i < many; i++) {
            large[i] = (i % 3 ? a : b) + 1000 + (many - i);
            sent[i] = static_cast<float>(i);
        }
        kv.Wait(kv.Push(large, sent));
        got.clear();
        kv.Wait(kv.Pull(large, &got));
        CHECK(got == sent);
        came(0);

        /* MXNet's compressed push hands over more values than its lens count: the others are not sent. */
        kv.Wait(kv.ZPush(SArray<Key>({a + 9, a + 3}), SArray<float>(12, 5), SArray<int>({0, 3}), STORE));
        CHECK_EQ(came(0), "9:0 3:3 ");
        kv.Wait(kv.ZPush(SArray<Key>({a + 31, b + 33}), SArray<float>({6, 7, 8, 9}), SArray<int>({1, 2})));
        kv.Wait(kv.ZPush(SArray<Key>({b + 34, a + 32}), SArray<float>({6, 7, 8, 9}), SArray<int>({1, 2})));
        got.clear();
        kv.Wait(kv.Pull({a + 3, a + 31, a + 32, b + 33, b + 34}, &got));
        CHECK(got == std::vector<float>({5, 5, 5, 6, 7, 8, 7, 8, 6})) << got.size();
        came(0);

        /* Its answers to row-sparse pulls have lens in another unit than the values: both come as they are. */
        SArray<float> rows(5);
        SArray<int> units({3, 2});
        kv.Wait(kv.ZPull(SArray<Key>({a + 3, a + 5}), &rows, &units, WRONG_TOTAL));
        CHECK(rows[2] == 5 && rows[3] == 1 && rows[4] == 2 && units[0] == 4 && units[1] == 2);
        got.clear();
        lens.clear();
        kv.Wait(kv.Pull({a + 3, b + 33}, &got, &lens, WRONG_TOTAL));
        CHECK(got == std::vector<float>({5, 5, 5, 7, 8}) && lens == std::vector<int>({4, last == 0 ? 2 : 3}));
        /* Where values of several servers must be put between each other, the lens have to say how. */
        got.clear();
        if (last > 0)
            CHECK(Has(Error([&] {
                          kv.Wait(kv.Pull({b + 33, a + 3, b + 34}, &got, nullptr, WRONG_TOTAL));
                      }),
                      "the lens of its answer do not agree with its values"));

        /* Answers that would put values under wrong keys. */
        kv.Wait(kv.Push({a + 21, a + 23}, {1, 2, 3, 4}));
        for (int cmd : {SUBSET, REORDERED, OTHERS, FEWER_LENS}) {
            got.clear();
            const std::string error = Error([&] {
                kv.Wait(kv.Pull({a + 21, a + 22, a + 23, a + 24}, &got, nullptr, cmd));
            });
            CHECK(error.find("the handle answers") != std::string::npos) << cmd << ": " << error;
            CHECK(got.empty()) << "values of a wrong answer have been taken";
        }
    }
    Finalize(0);
    return 0;
}
