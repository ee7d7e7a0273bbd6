#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "expect.h"
#include "ps/internal/blocks.h"
#include "ps/internal/incoming.h"
#include "ps/internal/strand.h"
#include "ps/internal/threadsafe_pqueue.h"
#include "ps/internal/threadsafe_queue.h"

using namespace ps;

static void Queue()
{
    ThreadsafeQueue<int> queue;
    int got = 0;
    EXPECT(!queue.TryPop(&got));
    std::thread maker([&queue] {
        for (int i = 1; i <= 1000; i++)
            queue.Push(i);
    });
    long sum = 0;
    bool ordered = true;
    for (int i = 1; i <= 1000; i++) {
        queue.WaitAndPop(&got);
        ordered = ordered && got == i;
        sum += got;
    }
    maker.join();
    EXPECT(ordered && sum == 500500 && queue.Size() == 0);
}

static void PriorityQueue()
{
    ThreadsafePQueue queue;
    for (int i = 0; i < 6; i++) {
        Message m;
        m.meta.priority = i % 2;
        m.meta.timestamp = i;
        queue.Push(m);
    }
    std::vector<int> order;
    for (int i = 0; i < 6; i++) {
        Message m;
        queue.WaitAndPop(&m);
        order.push_back(m.meta.timestamp);
    }
    EXPECT(order == std::vector<int>({1, 3, 5, 0, 2, 4})); /* equals keep their order */
}

static void OnOneStrand()
{
    internal::Strand strand;
    int plain = 0; /* no lock but the strand */
    std::atomic<int> offered{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; t++)
        threads.emplace_back([&, t] {
            for (int i = 0; i < 1000; i++) {
                if (t % 2) {
                    strand.Run([&plain] { plain++; });
                } else {
                    strand.Offer([&plain] { plain++; });
                    offered++;
                }
            }
            strand.Settle();
        });
    for (auto &t : threads)
        t.join();
    strand.Settle();
    EXPECT(plain == 4000 && offered == 2000);

    std::vector<int> order;
    strand.Run([&] {
        strand.Offer([&order] { order.push_back(2); });
        order.push_back(1);
        strand.Settle(); /* the holder runs what was left to him */
        order.push_back(3);
        strand.Offer([&order] { order.push_back(4); });
    });
    EXPECT(order == std::vector<int>({1, 2, 3, 4}));
}

/* An address to tell requests apart by. */
static paramo_request *Numbered(int i)
{
    return reinterpret_cast<paramo_request *>(static_cast<intptr_t>(8 * i + 8));
}

static void RequestInHand()
{
    internal::InHand hand;
    const internal::Asked first = {9, 0, 1}, second = {9, 0, 2};
    paramo_request_info info;
    const internal::Claimed one = {Numbered(1), &info}, two = {Numbered(2), &info};
    EXPECT(!hand.Claim(first).request && !hand.End().request && !hand.unclaimed());
    hand.Set(first, one);
    EXPECT(hand.unclaimed() && !hand.Claim(second).request);
    const internal::Claimed got_one = hand.Claim(first);
    EXPECT(got_one.request == one.request && got_one.info == &info);
    EXPECT(!hand.unclaimed() && !hand.Claim(first).request && !hand.End().request);
    hand.Set(second, two);
    EXPECT(!hand.Claim(first).request && hand.End().request == two.request && !hand.Claim(second).request);

    /* One claim of each, by whichever thread. */
    std::atomic<int> claimed{0}, at{0};
    std::atomic<bool> right{true};
    const int requests = 20000;
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; t++)
        threads.emplace_back([&] {
            for (int i; (i = at) < requests;) {
                paramo_request *got = hand.Claim({1, 2, i}).request;
                if (got == nullptr)
                    continue;
                claimed++;
                if (got != Numbered(i))
                    right = false;
            }
        });
    int ended = 0;
    for (int i = 0; i < requests; i++) {
        at = i;
        hand.Set({1, 2, i}, {Numbered(i), &info});
        if (i % 2 == 0)
            std::this_thread::yield();
        ended += hand.unclaimed() && hand.End().request != nullptr;
    }
    at = requests;
    for (auto &t : threads)
        t.join();
    EXPECT(right && claimed + ended == requests);
}

static void BlocksOfMemory()
{
    using Blocks = internal::Blocks<40>;
    std::vector<std::thread> threads;
    std::atomic<bool> right{true};
    for (int t = 0; t < 4; t++)
        threads.emplace_back([&right, t] {
            for (int i = 0; i < 2000; i++) {
                unsigned char *mine[8];
                for (auto &block : mine) {
                    block = static_cast<unsigned char *>(Blocks::Get());
                    std::fill(block, block + 40, static_cast<unsigned char>(t));
                }
                for (auto &block : mine) {
                    if (std::count(block, block + 40, static_cast<unsigned char>(t)) != 40)
                        right = false;
                    Blocks::Put(block);
                }
            }
        });
    for (auto &t : threads)
        t.join();
    void *kept = Blocks::Get();
    Blocks::Put(kept);
    EXPECT(right && Blocks::Get() == kept);
    Blocks::Put(kept);
}

int main()
{
    Queue();
    PriorityQueue();
    OnOneStrand();
    RequestInHand();
    BlocksOfMemory();
    return Failures("queues");
}
