/*
 * A strand: functions on it run one at a time. A function that is offered while the strand is taken runs later, on
 * the thread that has it. A Customer runs its handles on one, so a program's handles need no locks of their own.
 * Taking a free strand and leaving it when no thread waits is one atomic operation each: it is on the path of
 * every request. Knows nothing of Paramo. Tests: test/ps/unit_queue.cc.
 */
#ifndef PS_INTERNAL_STRAND_H_
#define PS_INTERNAL_STRAND_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace ps
{
namespace internal
{
class Strand
{
  public:
    Strand()
    {
    }
    Strand(const Strand &) = delete;
    Strand &operator=(const Strand &) = delete;

    /* Waits for its turn. f must not throw. */
    template <typename F> void Run(F &&f)
    {
        Enter();
        f();
        Leave();
    }

    /* A function runs on it at this moment. */
    bool Busy() const
    {
        return state_.load(std::memory_order_acquire) != FREE;
    }

    /* Runs f now, or leaves it to the thread that has the strand; never waits. */
    void Offer(std::function<void()> f)
    {
        {
            std::lock_guard<std::mutex> lock(mu_);
            left_.push_back(std::move(f));
            offered_.store(offered_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
            if (state_.exchange(WANTED, std::memory_order_acq_rel) != FREE)
                return; /* the holder looks before it leaves */
        }
        holder_.store(std::this_thread::get_id(), std::memory_order_relaxed);
        Leave();
    }

    /* Returns when all functions offered before have run. The holder of the strand runs them itself. */
    void Settle()
    {
        const uint64_t upto = offered_.load(std::memory_order_acquire);
        if (ran_.load(std::memory_order_acquire) >= upto)
            return;
        std::unique_lock<std::mutex> lock(mu_);
        if (holder_.load(std::memory_order_relaxed) == std::this_thread::get_id()) {
            while (!left_.empty())
                RunOne(&lock);
            return;
        }
        cond_.wait(lock, [this, upto] { return ran_.load(std::memory_order_relaxed) >= upto; });
    }

  private:
    /* WANTED: taken, and a thread waits for it or has left a function. It becomes WANTED, and ceases to be, only
     * under mu_. */
    enum State { FREE, TAKEN, WANTED };

    void Enter()
    {
        int found = FREE;
        if (!state_.compare_exchange_strong(found, TAKEN, std::memory_order_acquire,
                                            std::memory_order_relaxed)) {
            std::unique_lock<std::mutex> lock(mu_);
            while (state_.exchange(WANTED, std::memory_order_acq_rel) != FREE)
                cond_.wait(lock);
        }
        holder_.store(std::this_thread::get_id(), std::memory_order_relaxed);
    }

    void RunOne(std::unique_lock<std::mutex> *lock)
    {
        std::function<void()> f = std::move(left_.front());
        left_.pop_front();
        lock->unlock();
        f();
        f = nullptr; /* what it holds is freed before waiters are told */
        lock->lock();
        ran_.store(ran_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
        cond_.notify_all();
    }

    void Leave()
    {
        const std::thread::id me = holder_.load(std::memory_order_relaxed);
        holder_.store(std::thread::id(), std::memory_order_relaxed);
        int found = TAKEN;
        if (state_.compare_exchange_strong(found, FREE, std::memory_order_release, std::memory_order_relaxed))
            return;
        std::unique_lock<std::mutex> lock(mu_);
        holder_.store(me, std::memory_order_relaxed);
        while (!left_.empty())
            RunOne(&lock);
        holder_.store(std::thread::id(), std::memory_order_relaxed);
        state_.store(FREE, std::memory_order_release);
        cond_.notify_all();
    }

    std::atomic<int> state_{FREE};
    std::atomic<std::thread::id> holder_{std::thread::id()}; /* each thread only asks whether it is itself */
    std::mutex mu_; /* guards the fields below; the numbers are read without it */
    std::condition_variable cond_;
    std::deque<std::function<void()>> left_;
    std::atomic<uint64_t> offered_{0}, ran_{0};
};
} // namespace internal
} // namespace ps
#endif
