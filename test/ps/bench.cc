// What the C++ layer costs against the C API, in one run, interleaved: the same requests to handlers that do
// the same work, one through KVWorker and KVServer, one through paramo_ask and a C handler. Prints a line for
// each size; with an argument, fails if a ratio of the medians is above it. Not part of ctest: it measures
// time.
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "paramo/paramo.h"
#include "ps/ps.h"

using namespace ps;

enum { C_APP = 50, CPP_APP = 0 };
const size_t kMost = 1 << 18;

static std::vector<float> g_store(kMost, 1.0f);

static void CppHandle(const KVMeta &meta, const KVPairs<float> &data, KVServer<float> *server)
{
    KVPairs<float> res;
    if (meta.push)
        for (size_t i = 0; i < data.vals.size(); ++i)
            g_store[i] += data.vals[i];
    if (meta.pull) {
        res.keys = data.keys;
        res.vals.CopyFrom(g_store.data(), data.keys.size());
    }
    server->Response(meta, res);
}

static void CHandle(void *, paramo_request *request, const paramo_request_info *info)
{
    const float *vals = static_cast<const float *>(info->seg[PARAMO_SEG_VALS].data);
    paramo_err err;
    if (info->flags & 1u) {
        for (size_t i = 0; i < info->seg[PARAMO_SEG_VALS].len / sizeof(float); ++i)
            g_store[i] += vals[i];
        err = paramo_answer(request, nullptr, 0, nullptr);
    } else {
        err = paramo_answer(request, g_store.data(),
                            info->seg[PARAMO_SEG_KEYS].len / sizeof(Key) * sizeof(float), nullptr);
    }
    CHECK_EQ(err, PARAMO_OK);
}

/* One request by the C API, with the same promises: keys are checked (paramo_push does that, too), cut by the
 * servers' ranges, answers received in place. */
static uint64_t CRequest(paramo_worker *w, bool push, const std::vector<Key> &keys, std::vector<float> &vals)
{
    for (size_t i = 1; i < keys.size(); ++i)
        CHECK_LT(keys[i - 1], keys[i]);
    const auto &ranges = Postoffice::Get()->GetServerKeyRanges();
    paramo_message m[8];
    size_t count = 0, begin = 0;
    for (size_t r = 0; r < ranges.size() && r < 8; ++r) {
        size_t end = r + 1 == ranges.size()
                         ? keys.size()
                         : static_cast<size_t>(std::lower_bound(keys.begin(), keys.end(), ranges[r].end()) -
                                               keys.begin());
        if (end > begin) {
            paramo_message_init(&m[count], PARAMO_ID_SERVER(r));
            m[count].flags = push ? 1 : 2;
            m[count].seg[PARAMO_SEG_KEYS] = {keys.data() + begin, (end - begin) * sizeof(Key)};
            if (push) {
                m[count].seg[PARAMO_SEG_VALS] = {vals.data() + begin, (end - begin) * sizeof(float)};
            } else {
                m[count].into = vals.data() + begin;
                m[count].into_len = (end - begin) * sizeof(float);
            }
            count++;
        }
        begin = end;
    }
    uint64_t ts = 0;
    CHECK_EQ(paramo_ask(w, m, count, nullptr, nullptr, nullptr, &ts), PARAMO_OK) << paramo_last_error();
    return ts;
}

static double Seconds()
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

static double Median(std::vector<double> v)
{
    std::sort(v.begin(), v.end());
    return v[v.size() / 2];
}

int main(int argc, char *argv[])
{
    const double most = argc > 1 ? atof(argv[1]) : 0;
    bool fine = true;
    Start(0);
    KVServer<float> *server = nullptr;
    if (IsServer()) {
        server = new KVServer<float>(CPP_APP);
        server->set_request_handle(CppHandle);
        CHECK_EQ(paramo_app_serve(Postoffice::Get()->node(), C_APP, PARAMO_ANY, CHandle, nullptr), PARAMO_OK);
    }
    if (IsWorker()) {
        KVWorker<float> kv(CPP_APP, 0);
        paramo_worker *c = nullptr;
        CHECK_EQ(paramo_customer_open(Postoffice::Get()->node(), C_APP, 0, &c), PARAMO_OK);
        struct {
            const char *name;
            size_t keys;
            int window, requests;
        } const cases[] = {{"1 key, one after the other", 1, 1, 2000},
                           {"1 key, 64 in flight", 1, 64, 20000},
                           {"10,000 keys, 10 in flight", 10000, 10, 500},
                           {"256 Ki keys, one after the other", kMost, 1, 30}};
        for (const auto &test : cases) {
            std::vector<Key> keys(test.keys);
            std::vector<float> vals(test.keys, 1.0f);
            for (size_t i = 0; i < test.keys; ++i)
                keys[i] = kMaxKey / test.keys * i;
            SArray<Key> skeys(keys.data(), keys.size());
            SArray<float> svals(vals.data(), vals.size());
            for (bool push : {true, false}) {
                std::vector<double> cpp, capi;
                for (int round = 0; round < 11; ++round) {
                    double begin = Seconds();
                    std::vector<int> ts;
                    for (int i = 0; i < test.requests; ++i) {
                        ts.push_back(push ? kv.ZPush(skeys, svals) : kv.ZPull(skeys, &svals));
                        if (i >= test.window - 1)
                            kv.Wait(ts[i - test.window + 1]);
                    }
                    kv.Wait(ts.back());
                    cpp.push_back(Seconds() - begin);
                    begin = Seconds();
                    std::vector<uint64_t> cts;
                    for (int i = 0; i < test.requests; ++i) {
                        cts.push_back(CRequest(c, push, keys, vals));
                        if (i >= test.window - 1)
                            CHECK_EQ(paramo_wait(c, cts[i - test.window + 1], 0), PARAMO_OK);
                    }
                    CHECK_EQ(paramo_wait(c, cts.back(), 0), PARAMO_OK);
                    capi.push_back(Seconds() - begin);
                }
                double a = Median(cpp), b = Median(capi);
                std::printf("%-34s %s  C++ %8.2f us  C %8.2f us  ratio %.3f\n", test.name,
                            push ? "push" : "pull", a / test.requests * 1e6, b / test.requests * 1e6, a / b);
                std::fflush(stdout);
                fine = fine && (most <= 0 || a / b <= most);
            }
        }
        paramo_worker_close(c);
    }
    Finalize(0);
    delete server;
    return fine ? 0 : 1;
}
