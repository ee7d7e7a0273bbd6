/*
 * One push, pull or push-pull in flight: it keeps what it sends alive, cuts it by server, and puts the answers
 * together. Knows nothing of customers; KVWorker (kv_app.h) sends and waits. Tests: every program of test/ps
 * with a KVWorker, above all kv_slicer.cc and kv_errors.cc.
 */
#ifndef PS_INTERNAL_KV_TASK_H_
#define PS_INTERNAL_KV_TASK_H_

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "paramo/paramo.h"
#include "ps/base.h"
#include "ps/sarray.h"

#include "ps/internal/incoming.h"

namespace ps
{
/* Keys and their values. Without lens each key has vals.size() / keys.size()
 * values; with lens key i has lens[i]; one key's values follow the other's. */
template <typename Val> struct KVPairs {
    SArray<Key> keys;
    SArray<Val> vals;
    SArray<int> lens;
    int priority = 0;
};

namespace internal
{
/* What the caller gives, where it lies. */
template <typename Val> struct Given {
    const Key *keys;
    size_t n;
    const Val *vals;
    size_t vals_count;
    const int *lens;
    size_t lens_count;

    size_t bytes() const
    {
        return n * sizeof(Key) + vals_count * sizeof(Val) + lens_count * sizeof(int);
    }
};

/* Are the keys ascending and unique? */
inline bool Ascending(const Key *k, size_t n)
{
    size_t i = 1;
    unsigned bad = 0;
    for (; i + 4 <= n; i += 4) /* no early end, and four at a time: no comparison waits for another */
        bad |= static_cast<unsigned>(k[i - 1] >= k[i]) | static_cast<unsigned>(k[i] >= k[i + 1]) |
               static_cast<unsigned>(k[i + 1] >= k[i + 2]) | static_cast<unsigned>(k[i + 2] >= k[i + 3]);
    for (; i < n; i++)
        bad |= static_cast<unsigned>(k[i - 1] >= k[i]);
    return bad == 0;
}

/* Where the values of a pull go. Lives in its task, and is never destroyed, because it owns nothing. */
template <typename Val> class Target
{
  public:
    /* What is there before the request. */
    virtual Val *vals(size_t *count) = 0;
    virtual const int *lens(size_t *count) = 0;
    virtual bool wants_lens() const = 0;
    /* Room for this many; nullptr if there is another number already. */
    virtual Val *place_vals(size_t count) = 0;
    virtual int *place_lens(size_t count) = 0;

  protected:
    ~Target() = default;
};

/* Vectors or SArrays of the caller. */
template <typename Val, typename C, typename D> class TargetOf final : public Target<Val>
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
    /* With lens, which say how many values came, the room may be larger than needed. */
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
    bool placed;       /* the values that came are where `room` said */
    size_t begin, end; /* of the request's keys, if they lie together */
    size_t got;        /* values that came */
    Val *room;
    paramo_array *vals, *lens; /* values that are not placed, and lens if they came; or nullptr */
};

/* Those of one request; a few need no memory of their own. */
template <typename Val> class Parts
{
  public:
    Parts()
    {
    }
    Parts(const Parts &) = delete;
    Parts &operator=(const Parts &) = delete;
    ~Parts()
    {
        for (Part<Val> &p : *this) {
            if (p.vals != nullptr)
                paramo_array_unref(p.vals);
            if (p.lens != nullptr)
                paramo_array_unref(p.lens);
        }
    }

    /* Before the first is added. */
    void Reserve(size_t most)
    {
        if (most > FEW)
            many_.reset(new Part<Val>[most]);
    }
    void Add(size_t rank, size_t begin, size_t end)
    {
        this->begin()[count_++] = {static_cast<int>(rank), false, begin, end, 0, nullptr, nullptr, nullptr};
    }
    Part<Val> *begin()
    {
        return many_ ? many_.get() : few_;
    }
    Part<Val> *end()
    {
        return begin() + count_;
    }
    Part<Val> &operator[](size_t i)
    {
        return begin()[i];
    }
    size_t size() const
    {
        return count_;
    }

  private:
    enum : size_t { FEW = 4 };

    size_t count_ = 0;
    std::unique_ptr<Part<Val>[]> many_;
    Part<Val> few_[FEW];
};

template <typename Val> class KVTask
{
  public:
    std::function<void()> callback; /* or nothing */
    KVPairs<Val> kvs; /* what is sent, if this keeps its memory; a slicer of the program's own sees this */
    Given<Val> given; /* the same, where it lies; of use until the messages have been handed over */
    bool push, pull = false;
    int cmd;
    Parts<Val> parts;
    std::vector<KVPairs<Val>> slices; /* what the program's slicer has made for each part; otherwise empty */

    KVTask(bool pushes, const Given<Val> &what, int number) : given(what), push(pushes), cmd(number)
    {
    }
    KVTask(const KVTask &) = delete;
    KVTask &operator=(const KVTask &) = delete;

    /* Keeps what is given, which was the caller's. */
    void Own()
    {
        kvs.keys.CopyFrom(given.keys, given.n);
        kvs.vals.CopyFrom(given.vals, given.vals_count);
        kvs.lens.CopyFrom(given.lens, given.lens_count);
        given.keys = kvs.keys.data();
        given.vals = kvs.vals.data();
        given.lens = kvs.lens.data();
    }

    template <typename C, typename D> void PullInto(C *vals, D *lens)
    {
        using T = TargetOf<Val, C, D>;
        static_assert(sizeof(T) <= sizeof(target_), "a target is a table of functions and two pointers");
        target_at_ = new (&target_) T(vals, lens);
        pull = true;
    }

    /* The default: by the servers' ranges. Throws if the sizes do not agree. */
    void CutByRange(const std::vector<Range> &ranges)
    {
        const size_t n = given.n;
        if (given.lens_count == 0)
            PS_REQUIRE(n == 0 ? given.vals_count == 0 : given.vals_count % n == 0)
                << "a push of " << n << " keys and " << given.vals_count
                << " values: without lens each key has as many values";
        else
            CheckLens();
        if (!Ascending(given.keys, n) && ranges.size() > 1) {
            CutByKey(ranges);
            return;
        }
        parts.Reserve(std::min(n, ranges.size()));
        const Key *const keys = given.keys, *const past = keys + n;
        size_t begin = 0;
        for (size_t r = 0; r < ranges.size() && begin < n; r++) {
            bool last = r + 1 == ranges.size();
            size_t end =
                last ? n
                     : static_cast<size_t>(
                           std::lower_bound(keys + begin, past, static_cast<Key>(ranges[r].end())) - keys);
            if (end > begin)
                parts.Add(r, begin, end);
            begin = end;
        }
    }

    /* The same for keys in any order: each server gets its own, as they were given. */
    void CutByKey(const std::vector<Range> &ranges)
    {
        const size_t n = given.n;
        std::vector<size_t> server(n), count(ranges.size(), 0);
        bool in_a_row = true;
        for (size_t i = 0; i < n; i++) {
            const auto past =
                std::upper_bound(ranges.begin() + 1, ranges.end(), given.keys[i],
                                 [](Key key, const Range &range) { return key < range.begin(); });
            server[i] = static_cast<size_t>(past - ranges.begin()) - 1;
            count[server[i]]++;
            in_a_row = in_a_row && (i == 0 || server[i - 1] <= server[i]);
        }
        parts.Reserve(std::min(n, ranges.size()));
        size_t begin = 0;
        for (size_t r = 0; r < ranges.size(); begin += count[r], r++)
            if (count[r] > 0)
                parts.Add(r, in_a_row ? begin : 0, in_a_row ? begin + count[r] : 0);
        if (!in_a_row)
            Gather(server);
    }

    /* By the program's own slicer: what it has put into slice r goes to server r. */
    void CutBySlices(std::vector<std::pair<bool, KVPairs<Val>>> *sliced, size_t servers)
    {
        own_slices_ = true;
        PS_REQUIRE(sliced->size() <= servers) << "the slicer names more servers than there are";
        parts.Reserve(sliced->size());
        for (size_t r = 0; r < sliced->size(); r++) {
            if (!(*sliced)[r].first)
                continue;
            parts.Add(r, 0, 0);
            slices.push_back(std::move((*sliced)[r].second));
        }
    }

    /* The messages, one for each part. They point to what is given, or into this task. */
    void FillMessages(paramo_message *messages)
    {
        size_t room_count = 0;
        Val *room = pull ? Room(&room_count) : nullptr;
        const size_t n = given.n, each = n ? given.vals_count / n : 0;
        size_t val = 0, out = 0;
        for (size_t i = 0; i < parts.size(); i++) {
            Part<Val> &p = parts[i];
            paramo_message *m = &messages[i];
            paramo_message_init(m, PARAMO_ID_SERVER(p.rank));
            m->head = cmd;
            m->flags = (push ? FLAG_PUSH : 0u) | (pull ? FLAG_PULL : 0u);
            if (own_slices_) {
                const KVPairs<Val> &slice = slices[i];
                Segment(m, PARAMO_SEG_KEYS, slice.keys.data(), slice.keys.size());
                Segment(m, PARAMO_SEG_VALS, slice.vals.data(), slice.vals.size());
                Segment(m, PARAMO_SEG_LENS, slice.lens.data(), slice.lens.size());
                continue;
            }
            const size_t keys = p.end - p.begin;
            size_t vals = keys * each;
            if (given.lens_count != 0) {
                vals = SumLens(given.lens, p.begin, p.end);
                Segment(m, PARAMO_SEG_LENS, given.lens + p.begin, keys);
            }
            Segment(m, PARAMO_SEG_KEYS, given.keys + p.begin, keys);
            if (vals > 0)
                Segment(m, PARAMO_SEG_VALS, given.vals + val, vals);
            val += vals;
            if (room) {
                size_t count = 0;
                const int *lens = target_at_->lens(&count);
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
            Keep(reply, PARAMO_SEG_VALS, &p.vals);
        if (reply->seg[PARAMO_SEG_LENS].len > 0)
            Keep(reply, PARAMO_SEG_LENS, &p.lens);
    }

    /* All answers are there: fills the target. Returns what is wrong with them, or nothing. */
    const std::string &Finish()
    {
        if (mistake_.empty() && pull && given.n != 0)
            Assemble();
        return mistake_;
    }

  private:
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

    /* The slices of keys that lie between those of other servers, in memory of their own. */
    void Gather(const std::vector<size_t> &server)
    {
        own_slices_ = true;
        slices.resize(parts.size());
        index_.resize(parts.size());
        std::vector<size_t> part_of(server.size() == 0 ? 0
                                                       : *std::max_element(server.begin(), server.end()) + 1);
        for (size_t p = 0; p < parts.size(); p++)
            part_of[static_cast<size_t>(parts[p].rank)] = p;
        const size_t each = given.vals_count / given.n;
        const Val *val = given.vals;
        for (size_t i = 0; i < given.n; i++) {
            const size_t p = part_of[server[i]];
            const size_t vals = given.lens_count != 0 ? static_cast<size_t>(given.lens[i]) : each;
            slices[p].keys.push_back(given.keys[i]);
            for (size_t j = 0; j < vals; j++)
                slices[p].vals.push_back(*val++);
            if (given.lens_count != 0)
                slices[p].lens.push_back(given.lens[i]);
            index_[p].push_back(i);
        }
    }

    /* For slices of the program's own: where in the request the keys of each part are. A key that is there
     * several times is found in the same order in both. False: they are not the request's keys. */
    bool FindSlices()
    {
        const SArray<Key> &keys = kvs.keys;
        std::vector<size_t> order(keys.size());
        for (size_t i = 0; i < order.size(); i++)
            order[i] = i;
        if (!Ascending(keys.data(), keys.size()))
            std::stable_sort(order.begin(), order.end(),
                             [&](size_t a, size_t b) { return keys[a] < keys[b]; });
        std::vector<size_t> taken(keys.size(), 0); /* at the first of equal keys: how many have been found */
        index_.resize(slices.size());
        for (size_t p = 0; p < slices.size(); p++)
            for (Key key : slices[p].keys) {
                const auto at = std::lower_bound(order.begin(), order.end(), key,
                                                 [&](size_t i, Key k) { return keys[i] < k; });
                const size_t first = static_cast<size_t>(at - order.begin());
                const size_t it = first == order.size() ? first : first + taken[first]++;
                if (it >= order.size() || keys[order[it]] != key) {
                    Mistake("the slicer has put key " + std::to_string(key) +
                            " into a pull more often than it was asked for");
                    return false;
                }
                index_[p].push_back(order[it]);
            }
        return true;
    }

    /* Values beyond the lengths are not sent: MXNet's compressed push hands over its whole buffer, of four
     * times the length. */
    void CheckLens() const
    {
        PS_REQUIRE(given.lens_count == given.n) << "a length for each key";
        for (size_t i = 0; i < given.n; i++)
            PS_REQUIRE(given.lens[i] >= 0) << "a length is negative";
        const size_t sum = SumLens(given.lens, 0, given.n);
        PS_REQUIRE(sum <= given.vals_count)
            << "the lengths add up to " << sum << ", more than the " << given.vals_count << " values";
    }

    /* Where answers may be received in place: the caller has said how much will come, and it is not what is
     * sent. */
    Val *Room(size_t *count)
    {
        const size_t n = given.n;
        size_t lens = 0;
        const int *len = target_at_->lens(&lens);
        Val *room = target_at_->vals(count);
        const Val *sent = given.vals;
        bool aliased = sent < room + *count && room < sent + given.vals_count;
        if (own_slices_ || n == 0 || *count == 0 || aliased)
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

    void Keep(const paramo_reply *reply, unsigned seg, paramo_array **array)
    {
        if (paramo_reply_keep(reply, seg, array) != PARAMO_OK)
            Mistake(paramo_last_error());
    }

    const Val *ValsOf(const Part<Val> &p) const
    {
        return p.placed            ? p.room
               : p.vals != nullptr ? static_cast<const Val *>(paramo_array_data(p.vals))
                                   : nullptr;
    }

    size_t KeysOf(const Part<Val> &p)
    {
        return own_slices_ ? slices[static_cast<size_t>(&p - parts.begin())].keys.size() : p.end - p.begin;
    }

    /* The lens of a part's answer. They are the handle's: MXNet's row-sparse answers count floats there, while
     * the values are bytes. So they add up to the values only where `exact` asks for it. */
    bool LensOf(const Part<Val> &p, int *lens, bool exact)
    {
        const size_t keys = KeysOf(p);
        const paramo_array *sent = p.lens;
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
            if (fine && (sum == p.got || !exact))
                return true;
        }
        Mistake("server " + std::to_string(p.rank) + ": the lens of its answer do not agree with its values");
        return false;
    }

    void Assemble()
    {
        const size_t n = given.n;
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
        Val *vals = all_placed ? parts[0].room : target_at_->place_vals(total);
        int *lens = target_at_->wants_lens() ? target_at_->place_lens(n) : nullptr;
        if (vals == nullptr && total > 0) {
            size_t room = 0;
            target_at_->vals(&room);
            Mistake("a pull into " + std::to_string(room) + " values gets " + std::to_string(total));
        } else if (target_at_->wants_lens() && lens == nullptr) {
            Mistake("the lens of a pull are not as many as its keys, " + std::to_string(n));
        } else if (own_slices_) {
            Scatter(vals, lens, total);
        } else {
            for (const Part<Val> &p : parts)
                if (lens != nullptr && !LensOf(p, lens + p.begin, false))
                    return;
            if (!all_placed)
                Concatenate(vals, total);
        }
    }

    void Concatenate(Val *vals, size_t total)
    {
        /* Parts that lie in the target already may have to move over each other: then they are joined elsewhere. */
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

    /* Slices may interleave: each key's values go to their place in the order of the keys, for which the lens
     * must be right. */
    void Scatter(Val *vals, int *lens, size_t total)
    {
        const size_t n = given.n;
        struct From {
            const Val *vals;
            size_t count;
        };
        if (index_.empty() && !FindSlices())
            return;
        std::vector<From> from(n, From{nullptr, 0});
        std::vector<int> part_lens;
        for (size_t part = 0; part < parts.size(); part++) {
            part_lens.resize(index_[part].size());
            if (!part_lens.empty() && !LensOf(parts[part], part_lens.data(), true))
                return;
            const Val *at = ValsOf(parts[part]);
            for (size_t i = 0; i < part_lens.size(); i++) {
                from[index_[part][i]] = From{at, static_cast<size_t>(part_lens[i])};
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

    bool own_slices_ = false;                /* what is sent is in `slices` */
    std::vector<std::vector<size_t>> index_; /* of each slice's keys among the request's, once it is known */
    Target<Val> *target_at_ = nullptr;       /* in target_ */
    typename std::aligned_storage<3 * sizeof(void *), alignof(void *)>::type target_;
    std::string mistake_;
};
} // namespace internal
} // namespace ps
#endif
