// What the C++ layer costs against the C API, in one run, interleaved, both sides doing the same job:
//
//   ZPush   shares the caller's memory until the request is over: paramo_app_request from paramo_arrays of
//   which a
//           callback gives the references back
//   Push    copies: paramo_app_request with PARAMO_COPY
//   ZPull   is received in place, and says so if it is not: paramo_app_request into the caller's memory, and
//   what
//           takes the replies looks
//
// keys checked and cut by the servers' ranges on both. On the servers KVServer against a C handler that
// checks sizes, adds what is pushed, and gathers what is pulled into a buffer of its own. The difference that
// is left is the layer's: KVServer's handle gets arrays that it may keep, and may answer from any thread.
//
// ps_bench [MOST [CASE [SIDE]]] prints a line for each case, and fails if a ratio (median of 41 rounds) is
// above MOST (0: never). CASE, from 0, runs that one alone; SIDE cpp or c only that half of it (for a
// profiler). Not part of ctest: it measures time.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>

#include "paramo/array.h"
#include "paramo/paramo.h"
#include "ps/ps.h"

using namespace ps;

enum { C_APP = 50, CPP_APP = 0 };
const size_t kMost = 1 << 18;

static std::vector<float> g_store(kMost, 1.0f);

/* ---- servers ---- */

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

static paramo_err CAnswer(paramo_request *request, size_t n)
{
    const size_t bytes = n * sizeof(float), worth_it = 32768;
    paramo_err err;
    if (bytes < worth_it) {
        float *vals = static_cast<float *>(std::malloc(bytes));
        std::memcpy(vals, g_store.data(), bytes);
        err = paramo_answer(request, vals, bytes, nullptr);
        std::free(vals);
        return err;
    }
    paramo_array *seg[PARAMO_SEGS] = {};
    err = paramo_array_copy(g_store.data(), bytes, &seg[PARAMO_SEG_VALS]);
    if (err == PARAMO_OK)
        err = paramo_answer_arrays(request, seg);
    paramo_array_unref(seg[PARAMO_SEG_VALS]);
    return err;
}

static void CHandle(void *, paramo_request *request, const paramo_request_info *info)
{
    const paramo_bytes &keys = info->seg[PARAMO_SEG_KEYS], &vals = info->seg[PARAMO_SEG_VALS];
    const size_t n = keys.len / sizeof(Key), count = vals.len / sizeof(float);
    paramo_err err;
    if (keys.len % sizeof(Key) != 0 || vals.len % sizeof(float) != 0 || (count != 0 && count % n != 0)) {
        err = paramo_answer_error(request, PARAMO_E_HANDLER, "sizes do not agree");
    } else if (info->flags & 1u) {
        const float *from = static_cast<const float *>(vals.data);
        for (size_t i = 0; i < count; ++i)
            g_store[i] += from[i];
        err = paramo_answer(request, nullptr, 0, nullptr);
    } else {
        err = CAnswer(request, n);
    }
    CHECK_EQ(err, PARAMO_OK);
}

/* ---- workers ---- */

enum Kind { ZPUSH, PUSH, ZPULL };
static const char *const kNames[] = {"ZPush", "Push", "ZPull"};

struct CCall {
    paramo_array *keys, *vals;
    size_t parts, placed; /* answers that are due, and have come in place */
};

static void CReply(void *arg, uint64_t, const paramo_reply *reply)
{
    static_cast<CCall *>(arg)->placed += reply->placed != 0;
}

static void CDone(void *arg, uint64_t, paramo_err status)
{
    CCall *call = static_cast<CCall *>(arg);
    CHECK_EQ(status, PARAMO_OK) << paramo_last_error();
    CHECK_EQ(call->placed, call->parts) << "another number of values has come";
    paramo_array_unref(call->keys);
    paramo_array_unref(call->vals);
    std::free(call);
}

static void CPushed(void *, uint64_t, paramo_err status)
{
    CHECK_EQ(status, PARAMO_OK) << paramo_last_error();
}

static uint64_t CRequest(paramo_worker *w, const std::vector<Range> &ranges, Kind kind, paramo_array *keys_in,
                         paramo_array *vals_in)
{
    const Key *keys = static_cast<const Key *>(paramo_array_data(keys_in));
    float *vals = static_cast<float *>(paramo_array_data(vals_in));
    const size_t n = paramo_array_len(keys_in) / sizeof(Key);
    PS_REQUIRE(internal::Ascending(keys, n)); /* as fast as can be */
    paramo_message m[8];
    size_t count = 0, begin = 0;
    for (size_t r = 0; r < ranges.size() && r < 8; ++r) {
        size_t end =
            r + 1 == ranges.size()
                ? n
                : static_cast<size_t>(std::lower_bound(keys + begin, keys + n, ranges[r].end()) - keys);
        if (end > begin) {
            paramo_message_init(&m[count], PARAMO_ID_SERVER(r));
            m[count].flags = kind == ZPULL ? 2 : 1;
            m[count].seg[PARAMO_SEG_KEYS] = {keys + begin, (end - begin) * sizeof(Key)};
            if (kind == ZPULL) {
                m[count].into = vals + begin;
                m[count].into_len = (end - begin) * sizeof(float);
            } else {
                m[count].seg[PARAMO_SEG_VALS] = {vals + begin, (end - begin) * sizeof(float)};
            }
            count++;
        }
        begin = end;
    }
    paramo_request_options options;
    paramo_request_options_init(&options);
    uint64_t ts = 0;
    if (kind == PUSH) {
        options.flags = PARAMO_COPY;
        options.callback = CPushed;
        CHECK_EQ(paramo_app_request(w, m, count, nullptr, nullptr, &options, &ts), PARAMO_OK)
            << paramo_last_error();
        return ts;
    }
    CCall *call = static_cast<CCall *>(std::malloc(sizeof *call));
    *call = {paramo_array_ref(keys_in), paramo_array_ref(vals_in), kind == ZPULL ? count : 0, 0};
    options.callback = CDone;
    options.callback_arg = call;
    CHECK_EQ(paramo_app_request(w, m, count, kind == ZPULL ? CReply : nullptr, call, &options, &ts),
             PARAMO_OK)
        << paramo_last_error();
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

struct Case {
    Kind kind;
    size_t keys, window, requests;
};

/* Seconds of one round of the case. */
static double Cpp(const Case &test, KVWorker<float> *kv, const std::vector<Key> &keys,
                  std::vector<float> *vals)
{
    SArray<Key> skeys(keys.data() ? const_cast<Key *>(keys.data()) : nullptr, keys.size());
    SArray<float> svals(vals->data(), vals->size());
    std::vector<int> ts(test.window);
    const double begin = Seconds();
    for (size_t i = 0; i < test.requests; ++i) {
        if (i >= test.window)
            kv->Wait(ts[i % test.window]);
        ts[i % test.window] = test.kind == ZPUSH  ? kv->ZPush(skeys, svals)
                              : test.kind == PUSH ? kv->Push(keys, *vals)
                                                  : kv->ZPull(skeys, &svals);
    }
    for (int t : ts)
        kv->Wait(t);
    return Seconds() - begin;
}

static double C(const Case &test, paramo_worker *w, paramo_array *keys, paramo_array *vals)
{
    const std::vector<Range> &ranges = Postoffice::Get()->GetServerKeyRanges();
    std::vector<uint64_t> ts(test.window);
    const double begin = Seconds();
    for (size_t i = 0; i < test.requests; ++i) {
        if (i >= test.window)
            CHECK_EQ(paramo_wait(w, ts[i % test.window], 0), PARAMO_OK);
        ts[i % test.window] = CRequest(w, ranges, test.kind, keys, vals);
    }
    for (uint64_t t : ts)
        CHECK_EQ(paramo_wait(w, t, 0), PARAMO_OK);
    return Seconds() - begin;
}

static double Compare(const Case &test, const char *side, KVWorker<float> *kv, paramo_worker *w)
{
    std::vector<Key> keys(test.keys);
    std::vector<float> vals(test.keys, 1.0f);
    for (size_t i = 0; i < test.keys; ++i)
        keys[i] = kMaxKey / test.keys * i;
    paramo_array *ckeys = nullptr, *cvals = nullptr;
    CHECK_EQ(paramo_array_copy(keys.data(), keys.size() * sizeof(Key), &ckeys), PARAMO_OK);
    CHECK_EQ(paramo_array_copy(vals.data(), vals.size() * sizeof(float), &cvals), PARAMO_OK);
    std::vector<double> cpp, c, ratios;
    for (int round = 0; round < 41; ++round) {
        cpp.push_back(strcmp(side, "c") != 0 ? Cpp(test, kv, keys, &vals) : 0);
        c.push_back(strcmp(side, "cpp") != 0 ? C(test, w, ckeys, cvals) : 0);
        ratios.push_back(cpp.back() / c.back()); /* of neighbours: what else the machine does disturbs both */
    }
    paramo_array_unref(ckeys);
    paramo_array_unref(cvals);
    const double requests = static_cast<double>(test.requests), ratio = Median(ratios);
    std::printf(
        "%-5s %7zu keys, %2zu in flight: KVWorker and KVServer %9.2f us  C API, the same job %9.2f us  "
        "ratio %.3f\n",
        kNames[test.kind], test.keys, test.window, Median(cpp) / requests * 1e6, Median(c) / requests * 1e6,
        ratio);
    std::fflush(stdout);
    return ratio;
}

int main(int argc, char *argv[])
{
    const double most = argc > 1 ? atof(argv[1]) : 0;
    const int only = argc > 2 ? atoi(argv[2]) : -1;
    const char *side = argc > 3 ? argv[3] : "";
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
        const Case cases[] = {
            {ZPUSH, 1, 1, 1000},    {PUSH, 1, 1, 1000},      {ZPULL, 1, 1, 1000},    {ZPUSH, 1, 64, 10000},
            {PUSH, 1, 64, 10000},   {ZPULL, 1, 64, 10000},   {ZPUSH, 100, 64, 5000}, {PUSH, 100, 64, 5000},
            {ZPULL, 100, 64, 5000}, {ZPUSH, 10000, 10, 100}, {PUSH, 10000, 10, 100}, {ZPULL, 10000, 10, 100},
            {ZPUSH, kMost, 1, 5},   {PUSH, kMost, 1, 5},     {ZPULL, kMost, 1, 5},
        };
        for (int i = 0; i < static_cast<int>(sizeof cases / sizeof *cases); i++) {
            if (only >= 0 && i != only)
                continue;
            const double ratio = Compare(cases[i], side, &kv, c);
            fine = fine && (most <= 0 || ratio <= most);
        }
        paramo_worker_close(c);
    }
    Finalize(0);
    delete server;
    return fine ? 0 : 1;
}
