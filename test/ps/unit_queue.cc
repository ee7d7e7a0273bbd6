#include <atomic>
#include <thread>
#include <vector>

#include "expect.h"
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

int main()
{
    Queue();
    PriorityQueue();
    OnOneStrand();
    return Failures("queues");
}
