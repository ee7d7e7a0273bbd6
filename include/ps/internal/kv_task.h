/*
 * One push, pull or both on its way: what it sends is kept alive here, cut by server, and what comes back is
 * put together. Knows nothing of customers; KVWorker (kv_app.h) sends and waits. Tests: test/ps/unit_task.cc
 * and every program with a KVWorker.
 */
#ifndef PS_INTERNAL_KV_TASK_H_
#define PS_INTERNAL_KV_TASK_H_

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "paramo/paramo.h"
#include "ps/base.h"
#include "ps/sarray.h"

#include "ps/internal/incoming.h"

namespace ps
{
/* Keys and their values. Keys are ascending and unique. Without lens each key has vals.size() / keys.size()
 * values; with lens key i has lens[i]; one key's values follow the other's. */
template <typename Val> struct KVPairs {
    SArray<Key> keys;
    SArray<Val> vals;
    SArray<int> lens;
    int priority = 0;
};

namespace internal
{
/* Keys are ascending and unique, or this throws. */
inline void CheckKeys(const SArray<Key> &keys)
{
    const Key *k = keys.data();
    const size_t n = keys.size();
    size_t i = 1;
    unsigned bad = 0;
    for (; i + 4 <= n; i += 4) /* no early end, four at a time: nothing waits for what was before */
        bad |= static_cast<unsigned>(k[i - 1] >= k[i]) | static_cast<unsigned>(k[i] >= k[i + 1]) |
               static_cast<unsigned>(k[i + 1] >= k[i + 2]) | static_cast<unsigned>(k[i + 2] >= k[i + 3]);
    for (; i < n; i++)
        bad |= static_cast<unsigned>(k[i - 1] >= k[i]);
    for (i = 1; bad != 0 && i < n; i++)
        if (k[i - 1] >= k[i])
            LOG(FATAL) << (k[i - 1] == k[i] ? "a key appears twice: " : "keys are not in ascending order: ")
                       << "keys[" << i - 1 << "] = " << k[i - 1] << ", keys[" << i << "] = " << k[i];
}

/* Where the values of a pull go. */
template <typename Val> class Target
{
  public:
    virtual ~Target()
    {
    }
    /* What is there before the request. */
    virtual Val *vals(size_t *count) = 0;
    virtual const int *lens(size_t *count) = 0;
    virtual bool wants_lens() const = 0;
    /* Room for so many; nullptr if there is another number already. */
    virtual Val *place_vals(size_t count) = 0;
    virtual int *place_lens(size_t count) = 0;
};

/* Vectors or SArrays of the caller. */
template <typename Val, typename C, typename D> class TargetOf : public Target<Val>
{
  public:
    TargetOf(C *vals, D *lens) : vals_(vals), lens_(lens)
    {
    }
    Val *vals(size_t *count) override
    {
        *count = vals_->size();
        return vals_->data();
    }
    const int *lens(size_t *count) override
    {
        *count = lens_ ? lens_->size() : 0;
        return lens_ ? lens_->data() : nullptr;
    }
    bool wants_lens() const override
    {
        return lens_ != nullptr;
    }
    /* With lens, which say what is there, the room may be larger than need be. */
    Val *place_vals(size_t count) override
    {
        if (vals_->empty())
            vals_->resize(count);
        return vals_->size() == count || (lens_ && vals_->size() > count) ? vals_->data() : nullptr;
    }
    int *place_lens(size_t count) override
    {
        if (lens_->empty())
            lens_->resize(count);
        return lens_->size() == count ? lens_->data() : nullptr;
    }

  private:
    C *vals_;
    D *lens_;
};

/* One server's part. */
template <typename Val> struct Part {
    int rank;
    size_t begin, end;   /* of the request's keys, if they lie together */
    KVPairs<Val> sliced; /* what a slicer of the program's own has made of it */
    size_t got = 0;      /* values that came */
    bool placed = false; /* they are where `room` said */
    Val *room = nullptr;
    std::unique_ptr<Kept> kept; /* else they are here; and lens, if they came */
};

template <typename Val> class KVTask
{
  public:
    std::function<void()> callback;
    KVPairs<Val> kvs;
    bool push = false, pull = false, own_slices = false;
    int cmd = 0;
    std::vector<Part<Val>> parts;
    std::unique_ptr<Target<Val>> target;

    /* The default: by the servers' ranges. Throws if the sizes do not agree. */
    void CutByRange(const std::vector<Range> &ranges)
    {
        const SArray<Key> &keys = kvs.keys;
        const size_t n = keys.size();
        if (kvs.lens.empty())
            CHECK(n == 0 ? kvs.vals.empty() : kvs.vals.size() % n == 0)
                << "a push of " << n << " keys and " << kvs.vals.size()
                << " values: without lens each key has as many values";
        else
            CheckLens();
        size_t begin = 0;
        for (size_t r = 0; r < ranges.size() && begin < n; r++) {
            bool last = r + 1 == ranges.size();
            size_t end = last ? n
                              : static_cast<size_t>(std::lower_bound(keys.begin() + begin, keys.end(),
                                                                     static_cast<Key>(ranges[r].end())) -
                                                    keys.begin());
            if (end > begin)
                AddPart(static_cast<int>(r), begin, end);
            begin = end;
        }
    }

    /* By the program's own slicer: what it has put into slice r goes to server r. */
    void CutBySlices(std::vector<std::pair<bool, KVPairs<Val>>> *sliced, size_t servers)
    {
        own_slices = true;
        CHECK_LE(sliced->size(), servers) << "the slicer names more servers than there are";
        for (size_t r = 0; r < sliced->size(); r++) {
            if (!(*sliced)[r].first)
                continue;
            AddPart(static_cast<int>(r), 0, 0);
            parts.back().sliced = std::move((*sliced)[r].second);
        }
    }

    /* The messages, one for each part. They point into this task. */
    void FillMessages(paramo_message *messages)
    {
        size_t room_count = 0;
        Val *room = pull ? Room(&room_count) : nullptr;
        const size_t n = kvs.keys.size(), each = n ? kvs.vals.size() / n : 0;
        size_t val = 0, out = 0;
        for (size_t i = 0; i < parts.size(); i++) {
            Part<Val> &p = parts[i];
            paramo_message *m = &messages[i];
            paramo_message_init(m, PARAMO_ID_SERVER(p.rank));
            m->head = cmd;
            m->flags = (push ? FLAG_PUSH : 0u) | (pull ? FLAG_PULL : 0u);
            if (own_slices) {
                Segment(m, PARAMO_SEG_KEYS, p.sliced.keys.data(), p.sliced.keys.size());
                Segment(m, PARAMO_SEG_VALS, p.sliced.vals.data(), p.sliced.vals.size());
                Segment(m, PARAMO_SEG_LENS, p.sliced.lens.data(), p.sliced.lens.size());
                continue;
            }
            const size_t keys = p.end - p.begin;
            size_t vals = keys * each;
            if (!kvs.lens.empty()) {
                vals = SumLens(kvs.lens.data(), p.begin, p.end);
                Segment(m, PARAMO_SEG_LENS, kvs.lens.data() + p.begin, keys);
            }
            Segment(m, PARAMO_SEG_KEYS, kvs.keys.data() + p.begin, keys);
            if (vals > 0)
                Segment(m, PARAMO_SEG_VALS, kvs.vals.data() + val, vals);
            val += vals;
            if (room) {
                size_t count = 0;
                const int *lens = target->lens(&count);
                size_t expected = count == n ? SumLens(lens, p.begin, p.end) : room_count / n * keys;
                p.room = room + out;
                m->into = p.room;
                m->into_len = expected * sizeof(Val);
                out += expected;
            }
        }
    }

    /* One server's answer to a pull. */
    void Take(const paramo_reply *reply)
    {
        Part<Val> &p = parts[reply->message];
        const paramo_bytes &vals = reply->seg[PARAMO_SEG_VALS];
        if (vals.len % sizeof(Val) != 0)
            Mistake("an answer is no whole number of values; do both sides use the same type?");
        p.got = vals.len / sizeof(Val);
        p.placed = reply->placed != 0;
        if (!p.placed && vals.len > 0)
            Keep(reply, PARAMO_SEG_VALS, &p);
        if (reply->seg[PARAMO_SEG_LENS].len > 0)
            Keep(reply, PARAMO_SEG_LENS, &p);
    }

    /* All answers are there: fills the target. Returns what is wrong with them, or nothing. */
    std::string Finish()
    {
        if (mistake_.empty() && pull && !kvs.keys.empty())
            Assemble();
        return mistake_;
    }

  private:
    void AddPart(int rank, size_t begin, size_t end)
    {
        if (parts.capacity() == 0)
            parts.reserve(4);
        parts.emplace_back();
        parts.back().rank = rank;
        parts.back().begin = begin;
        parts.back().end = end;
    }

    template <typename T> static void Segment(paramo_message *m, int seg, const T *data, size_t count)
    {
        m->seg[seg].data = data;
        m->seg[seg].len = count * sizeof(T);
    }

    static size_t SumLens(const int *lens, size_t begin, size_t end)
    {
        size_t sum = 0;
        for (size_t i = begin; i < end; i++)
            sum += static_cast<size_t>(lens[i]);
        return sum;
    }

    void CheckLens() const
    {
        CHECK_EQ(kvs.lens.size(), kvs.keys.size()) << "a length for each key";
        for (int len : kvs.lens)
            CHECK_GE(len, 0) << "a length is negative";
        CHECK_EQ(SumLens(kvs.lens.data(), 0, kvs.lens.size()), kvs.vals.size())
            << "the lengths add up to another "
               "number of values";
    }

    /* Where answers may be received in place: the caller has said how much will come, and it is not what is
     * sent. */
    Val *Room(size_t *count)
    {
        const size_t n = kvs.keys.size();
        size_t lens = 0;
        const int *len = target->lens(&lens);
        Val *room = target->vals(count);
        const Val *sent = kvs.vals.data();
        bool aliased = sent < room + *count && room < sent + kvs.vals.size();
        if (own_slices || n == 0 || *count == 0 || aliased)
            return nullptr;
        if (lens != n)
            return *count % n == 0 ? room : nullptr;
        for (size_t i = 0; i < n; i++)
            if (len[i] < 0)
                return nullptr;
        return SumLens(len, 0, n) <= *count ? room : nullptr;
    }

    void Mistake(const std::string &what)
    {
        if (mistake_.empty())
            mistake_ = what;
    }

    void Keep(const paramo_reply *reply, unsigned seg, Part<Val> *part)
    {
        if (!part->kept)
            part->kept.reset(new Kept());
        if (paramo_reply_keep(reply, seg, &part->kept->seg[seg]) != PARAMO_OK)
            Mistake(paramo_last_error());
    }

    const Val *ValsOf(const Part<Val> &p) const
    {
        return p.placed ? p.room
               : p.kept ? static_cast<const Val *>(paramo_array_data(p.kept->seg[PARAMO_SEG_VALS]))
                        : nullptr;
    }

    size_t KeysOf(const Part<Val> &p) const
    {
        return own_slices ? p.sliced.keys.size() : p.end - p.begin;
    }

    /* How many values each key of a part has got. */
    bool LensOf(const Part<Val> &p, int *lens)
    {
        const size_t keys = KeysOf(p);
        paramo_array *sent = p.kept ? p.kept->seg[PARAMO_SEG_LENS] : nullptr;
        if (sent == nullptr) {
            if (keys == 0 || p.got % keys != 0) {
                Mistake("server " + std::to_string(p.rank) + " answers " + std::to_string(p.got) +
                        " values for " + std::to_string(keys) + " keys, without lens");
                return false;
            }
            std::fill(lens, lens + keys, static_cast<int>(p.got / keys));
            return true;
        }
        if (paramo_array_len(sent) == keys * sizeof(int)) {
            if (keys > 0)
                std::memcpy(lens, paramo_array_data(sent), keys * sizeof(int));
            size_t sum = 0;
            bool fine = true;
            for (size_t i = 0; i < keys; i++) {
                fine = fine && lens[i] >= 0;
                sum += static_cast<size_t>(lens[i]);
            }
            if (fine && sum == p.got)
                return true;
        }
        Mistake("server " + std::to_string(p.rank) + ": the lens of its answer do not agree with its values");
        return false;
    }

    void Assemble()
    {
        const size_t n = kvs.keys.size();
        size_t keys = 0, total = 0;
        bool all_placed = true;
        for (const Part<Val> &p : parts) {
            keys += KeysOf(p);
            total += p.got;
            all_placed = all_placed && p.placed;
        }
        if (keys != n) {
            Mistake("the slicer has cut a pull of " + std::to_string(n) + " keys into slices of " +
                    std::to_string(keys));
            return;
        }
        Val *vals = all_placed ? parts[0].room : target->place_vals(total);
        int *lens = target->wants_lens() ? target->place_lens(n) : nullptr;
        if (vals == nullptr && total > 0) {
            size_t room = 0;
            target->vals(&room);
            Mistake("a pull into " + std::to_string(room) + " values gets " + std::to_string(total));
        } else if (target->wants_lens() && lens == nullptr) {
            Mistake("the lens of a pull are not as many as its keys, " + std::to_string(n));
        } else if (own_slices) {
            Scatter(vals, lens, total);
        } else {
            for (const Part<Val> &p : parts)
                if (lens != nullptr && !LensOf(p, lens + p.begin))
                    return;
            if (!all_placed)
                Concatenate(vals, total);
        }
    }

    void Concatenate(Val *vals, size_t total)
    {
        /* Parts that lie in the target already may have to move over each other: never by hand. */
        bool any_placed = false;
        for (const Part<Val> &p : parts)
            any_placed = any_placed || p.placed;
        std::unique_ptr<Val[]> apart(any_placed ? new Val[total] : nullptr);
        Val *to = any_placed ? apart.get() : vals;
        for (const Part<Val> &p : parts) {
            if (p.got > 0)
                std::memcpy(to, ValsOf(p), p.got * sizeof(Val));
            to += p.got;
        }
        if (any_placed)
            std::copy(apart.get(), apart.get() + total, vals);
    }

    /* A program's own slices may interleave: each key's values go to their place in the order of the keys. */
    void Scatter(Val *vals, int *lens, size_t total)
    {
        const SArray<Key> &keys = kvs.keys;
        const size_t n = keys.size();
        struct From {
            const Val *vals;
            size_t count;
        };
        std::vector<From> from(n, From{nullptr, 0});
        std::vector<bool> seen(n, false);
        std::vector<int> part_lens;
        for (const Part<Val> &p : parts) {
            part_lens.resize(KeysOf(p));
            if (!p.sliced.keys.empty() && !LensOf(p, part_lens.data()))
                return;
            const Val *at = ValsOf(p);
            for (size_t i = 0; i < part_lens.size(); i++) {
                const Key *k = std::lower_bound(keys.begin(), keys.end(), p.sliced.keys[i]);
                size_t index = static_cast<size_t>(k - keys.begin());
                if (index == n || *k != p.sliced.keys[i] || seen[index]) {
                    Mistake("the slicer has put key " + std::to_string(p.sliced.keys[i]) +
                            " into a pull twice, or it was not asked for");
                    return;
                }
                seen[index] = true;
                from[index] = From{at, static_cast<size_t>(part_lens[i])};
                at += part_lens[i];
            }
        }
        Val *to = vals, *const end = vals + total;
        for (size_t i = 0; i < n && static_cast<size_t>(end - to) >= from[i].count; i++) {
            if (from[i].count > 0)
                std::memcpy(to, from[i].vals, from[i].count * sizeof(Val));
            to += from[i].count;
            if (lens)
                lens[i] = static_cast<int>(from[i].count);
        }
    }

    std::string mistake_;
};
} // namespace internal
} // namespace ps
#endif
