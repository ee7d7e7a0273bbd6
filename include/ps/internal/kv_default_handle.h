/*
 * KVServerDefaultHandle: a handle that adds what is pushed to what is there, and answers pulls with it. Part
 * of kv_app.h. Tests: test/ps/kv_lens.cc, test/ps/kv_push_pull.cc.
 */
#ifndef PS_INTERNAL_KV_DEFAULT_HANDLE_H_
#define PS_INTERNAL_KV_DEFAULT_HANDLE_H_

#include <string>
#include <unordered_map>
#include <vector>

#include "ps/kv_app.h"

namespace ps
{
/* Keys of one value are in store, those of more (or none) in rows. A key keeps the length of its first push;
 * a push of another length is refused as a whole. A key that no worker has pushed has zeros, as many as the first key
 * of the first push had values. */
template <typename Val> struct KVServerDefaultHandle {
    void operator()(const KVMeta &req_meta, const KVPairs<Val> &req_data, KVServer<Val> *server)
    {
        const size_t n = req_data.keys.size();
        KVPairs<Val> res;
        if (req_meta.push)
            Add(req_data);
        if (req_meta.pull) {
            res.keys = req_data.keys;
            if (rows.empty() && width <= 1 && req_data.lens.empty()) {
                res.vals.resize(n);
                for (size_t i = 0; i < n; i++)
                    res.vals[i] = Find(req_data.keys[i]);
            } else {
                Gather(req_data.keys, &res);
            }
        }
        server->Response(req_meta, res);
    }

    std::unordered_map<Key, Val> store;
    std::unordered_map<Key, std::vector<Val>> rows;
    size_t width = 0; /* values of a key in the first push; 0: there was none yet */

  private:
    static void AddTo(Val *sum, Val val)
    {
        *sum = static_cast<Val>(*sum + val);
    }

    Val Find(Key key) const
    {
        auto it = store.find(key);
        return it == store.end() ? Val() : it->second;
    }

    static size_t Length(const KVPairs<Val> &data, size_t i, size_t each)
    {
        return data.lens.empty() ? each : static_cast<size_t>(data.lens[i]);
    }

    void Add(const KVPairs<Val> &data)
    {
        const size_t n = data.keys.size(), each = n ? data.vals.size() / n : 0;
        if (data.lens.empty() && n > 0 && each == 1 && data.vals.size() == n && rows.empty()) {
            if (width == 0)
                width = 1;
            for (size_t i = 0; i < n; i++)
                AddTo(&store[data.keys[i]], data.vals[i]);
            return;
        }
        Check(data, each);
        size_t at = 0;
        for (size_t i = 0; i < n; i++) {
            const Key key = data.keys[i];
            const size_t length = Length(data, i, each);
            if (length == 1) {
                AddTo(&store[key], data.vals[at++]);
                continue;
            }
            std::vector<Val> &row = rows[key];
            row.resize(length);
            for (size_t j = 0; j < length; j++)
                row[j] = static_cast<Val>(row[j] + data.vals[at++]);
        }
        if (width == 0 && n > 0)
            width = Length(data, 0, each);
    }

    /* Throws before anything is changed. */
    void Check(const KVPairs<Val> &data, size_t each) const
    {
        const size_t n = data.keys.size();
        size_t total = 0;
        std::unordered_map<Key, size_t>
            here; /* keys that come here first; one that is repeated keeps its length */
        for (size_t i = 0; i < n; i++) {
            PS_REQUIRE(data.lens.empty() || data.lens[i] >= 0) << "a length is negative";
            const size_t length = Length(data, i, each);
            total += length;
            auto row = rows.find(data.keys[i]);
            const size_t before = row != rows.end()           ? row->second.size()
                                  : store.count(data.keys[i]) ? 1
                                  : data.lens.empty()         ? length
                                                      : here.emplace(data.keys[i], length).first->second;
            PS_REQUIRE(length == before)
                << "key " << data.keys[i] << " has " << before << " values, not " << length;
        }
        PS_REQUIRE(total == data.vals.size())
            << "a push of " << n << " keys has " << data.vals.size() << " values";
    }

    void Gather(const SArray<Key> &keys, KVPairs<Val> *res) const
    {
        for (Key key : keys) {
            auto row = rows.find(key);
            if (row != rows.end()) {
                res->lens.push_back(static_cast<int>(row->second.size()));
                for (const Val &val : row->second)
                    res->vals.push_back(val);
                continue;
            }
            const bool one = store.count(key) != 0;
            const size_t length = one ? 1 : width;
            res->lens.push_back(static_cast<int>(length));
            for (size_t j = 0; j < length; j++)
                res->vals.push_back(one ? Find(key) : Val());
        }
    }
};
} // namespace ps
#endif
