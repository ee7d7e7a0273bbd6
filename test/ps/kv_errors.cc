// What goes wrong is said and goes no further: mistakes in a call throw from it, what the server refuses
// throws from Wait, and the server lives on.
// Sanitizers: address; kv_untold has the same threads.
#include "errors.h"
#include "ps/ps.h"

using namespace ps;

static void Strict(const KVMeta &meta, const KVPairs<float> &data, KVServer<float> *server)
{
    CHECK_EQ(data.keys.size(), data.vals.size()) << "strict";
    if (meta.cmd == 13)
        throw std::runtime_error("unlucky");
    KVPairs<float> res;
    if (meta.pull) {
        res.keys = data.keys;
        res.vals.resize(meta.cmd);
    }
    server->Response(meta, res);
    if (meta.cmd == 1)
        server->Response(meta, res); /* once too often: said, and no harm */
}

int main()
{
    Start(0);
    if (IsServer()) {
        auto adding = new KVServer<float>(0), strict = new KVServer<float>(1);
        adding->set_request_handle(KVServerDefaultHandle<float>());
        strict->set_request_handle(Strict);
        RegisterExitCallback([=]() {
            delete adding;
            delete strict;
        });
    }
    if (IsWorker()) {
        KVWorker<float> kv(0, 0), strict(1, 1);
        std::vector<float> got;
        CHECK(Has(Error([&] { kv.Push({1, 2}, {1, 2, 3}); }), "2 keys and 3 values"));
        CHECK(Has(Error([&] { kv.Push({1, 2}, {1, 2, 3}, {1, 3}); }), "add up to 4, more than the 3 values"));
        CHECK(Has(Error([&] { kv.Push({1, 2}, {1, 2}, {1}); }), "length"));
        CHECK(Has(Error([&] { kv.Push({1, 2}, {1, 2}, {3, -1}); }), "negative"));

        /* Mis-sized for what is there: refused by the default handle, whole. */
        Key mine = 10 * MyRank();
        kv.Wait(kv.Push({mine, mine + 1}, {1, 2}));
        CHECK(Has(Error([&] { kv.Wait(kv.Push({mine, mine + 5}, {1, 1, 2, 2})); }), "values"));
        kv.Wait(kv.Pull({mine, mine + 1}, &got));
        CHECK(got == std::vector<float>({1, 2}));
        got.resize(5);
        CHECK(Has(Error([&] { kv.Wait(kv.Pull({mine, mine + 1}, &got)); }), "a pull into 5 values gets 2"));

        /* Handles that throw: CHECK, and any exception. */
        CHECK(Has(Error([&] { strict.Wait(strict.Push({1}, {1, 2})); }), "strict"));
        CHECK(Has(Error([&] { strict.Wait(strict.Push({1}, {1}, {}, 13)); }), "unlucky"));
        got.clear();
        strict.Wait(strict.PushPull({1}, {1}, &got, nullptr, 1));
        CHECK_EQ(got.size(), 1u);
        /* An app without a handler is an error, too (PARAMO's handler_wait_ms); not waited for here. */
        int failing = strict.Push({1}, {1}, {}, 13);
        CHECK(Has(Error([&] { strict.Wait(failing); }), "unlucky"));
        CHECK(Error([&] { strict.Wait(strict.Push({1}, {1})); }).empty());
    }
    Finalize(0);
    return 0;
}
