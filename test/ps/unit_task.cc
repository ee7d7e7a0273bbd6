// How a request is cut for the servers and put together again, whatever macros came before ours (it is built
// with each of macros/, too); and how this layer fails.
// Sanitizers: address; it has one thread.
#include "ps/ps.h"

#include "expect.h"

using namespace ps;
using Task = internal::KVTask<float>;

static const std::vector<Range> kRanges = {Range(0, 100), Range(100, 200), Range(200, kMaxKey)};

struct Sent {
    std::vector<Key> keys;
    std::vector<float> vals;
    std::vector<int> lens;
};

template <typename T> static std::vector<T> Read(const paramo_bytes &bytes)
{
    const T *data = static_cast<const T *>(bytes.data);
    return std::vector<T>(data, data + bytes.len / sizeof(T));
}

/* What each server gets. */
static std::map<uint32_t, Sent> Cut(const std::vector<Key> &keys, const std::vector<float> &vals,
                                    const std::vector<int> &lens)
{
    Task task(true, {keys.data(), keys.size(), vals.data(), vals.size(), lens.data(), lens.size()}, 0);
    task.CutByRange(kRanges);
    std::vector<paramo_message> messages(task.parts.size());
    task.FillMessages(messages.data());
    std::map<uint32_t, Sent> sent;
    for (const paramo_message &m : messages)
        sent[m.to] = {Read<Key>(m.seg[PARAMO_SEG_KEYS]), Read<float>(m.seg[PARAMO_SEG_VALS]),
                      Read<int>(m.seg[PARAMO_SEG_LENS])};
    return sent;
}

static bool Is(const std::map<uint32_t, Sent> &sent, unsigned rank, const std::vector<Key> &keys,
               const std::vector<float> &vals, const std::vector<int> &lens = {})
{
    const auto it = sent.find(PARAMO_ID_SERVER(rank));
    return it != sent.end() && it->second.keys == keys && it->second.vals == vals && it->second.lens == lens;
}

static void Sizes()
{
    EXPECT(Cut({}, {}, {}).empty());
    EXPECT(Is(Cut({1, 2}, {}, {}), 0, {1, 2}, {}));
    EXPECT(Is(Cut({1, 2}, {1, 2, 3, 4}, {}), 0, {1, 2}, {1, 2, 3, 4}));
    EXPECT(Is(Cut({1, 2}, {1, 2, 3}, {1, 2}), 0, {1, 2}, {1, 2, 3}, {1, 2}));
    EXPECT_THROW(Cut({1, 2}, {1, 2, 3}, {}));
    EXPECT_THROW(Cut({1, 2}, {1, 2, 3}, {1, 3}));
    EXPECT_THROW(Cut({1, 2}, {1, 2, 3}, {3}));
    EXPECT_THROW(Cut({1, 2}, {1, 2, 3}, {4, -1}));
}

static void Orders()
{
    auto sent = Cut({1, 150, 151, 300}, {1, 2, 3, 4}, {});
    EXPECT(sent.size() == 3 && Is(sent, 0, {1}, {1}) && Is(sent, 1, {150, 151}, {2, 3}) &&
           Is(sent, 2, {300}, {4}));
    /* Descending and repeated within a server: as given, without a copy. */
    sent = Cut({9, 3, 9, 150, 150, 120}, {1, 2, 3, 4, 5, 6}, {});
    EXPECT(sent.size() == 2 && Is(sent, 0, {9, 3, 9}, {1, 2, 3}) && Is(sent, 1, {150, 150, 120}, {4, 5, 6}));
    sent = Cut({7, 7, 8}, {1, 2, 3}, {0, 1, 2});
    EXPECT(sent.size() == 1 && Is(sent, 0, {7, 7, 8}, {1, 2, 3}, {0, 1, 2}));
    /* Between those of other servers: each in its order. */
    sent = Cut({300, 1, 150, 0, 300, kMaxKey}, {1, 2, 3, 4, 5, 6}, {});
    EXPECT(sent.size() == 3 && Is(sent, 0, {1, 0}, {2, 4}) && Is(sent, 1, {150}, {3}) &&
           Is(sent, 2, {300, 300, kMaxKey}, {1, 5, 6}));
    sent = Cut({300, 1, 150, 0}, {1, 2, 3, 4, 5, 6}, {2, 0, 1, 3});
    EXPECT(sent.size() == 3 && Is(sent, 0, {1, 0}, {4, 5, 6}, {0, 3}) && Is(sent, 1, {150}, {3}, {1}) &&
           Is(sent, 2, {300}, {1, 2}, {2}));
}

static void Throwing()
{
    EXPECT(internal::Caught([] {}).empty());
    EXPECT(internal::Caught([] { throw std::runtime_error("boom"); }) == "boom");
    EXPECT(!internal::Caught([] { throw std::runtime_error(""); }).empty());
    EXPECT(!internal::Caught([] { throw 42; }).empty());
    EXPECT_THROW(PS_REQUIRE(1 > 2) << "which is so");
    bool reached = false;
    if (kRanges.empty())
        PS_REQUIRE(false) << "an else binds to the if it stands under";
    else
        reached = true;
    EXPECT(reached);
}

int main()
{
    Sizes();
    Orders();
    Throwing();
    return Failures("task");
}
