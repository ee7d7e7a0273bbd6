/*
 * A strand: what is run on it never runs twice at once, and what is offered while it is taken runs later, by
 * whoever has it. A Customer's handles stand on one, so that a program's handles need no locks of their own.
 * Knows nothing of Paramo. Tests: test/ps/unit_queue.cc.
 */
#ifndef PS_INTERNAL_STRAND_H_
#define PS_INTERNAL_STRAND_H_

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
        {
            std::unique_lock<std::mutex> lock(mu_);
            cond_.wait(lock, [this] { return !taken_; });
            taken_ = true;
            holder_ = std::this_thread::get_id();
        }
        f();
        Leave();
    }

    /* Runs f now, or leaves it to whoever has the strand; never waits. */
    void Offer(std::function<void()> f)
    {
        {
            std::lock_guard<std::mutex> lock(mu_);
            offered_++;
            left_.push_back(std::move(f));
            if (taken_)
                return;
            taken_ = true;
            holder_ = std::this_thread::get_id();
        }
        Leave();
    }

    /* Returns when all that was offered before has run; the holder runs it himself. */
    void Settle()
    {
        std::unique_lock<std::mutex> lock(mu_);
        const uint64_t upto = offered_;
        if (taken_ && holder_ == std::this_thread::get_id()) {
            while (!left_.empty())
                RunOne(&lock);
            return;
        }
        cond_.wait(lock, [this, upto] { return ran_ >= upto; });
    }

  private:
    void RunOne(std::unique_lock<std::mutex> *lock)
    {
        std::function<void()> f = std::move(left_.front());
        left_.pop_front();
        lock->unlock();
        f();
        f = nullptr; /* what it holds goes before anybody is told */
        lock->lock();
        ran_++;
        cond_.notify_all();
    }

    void Leave()
    {
        std::unique_lock<std::mutex> lock(mu_);
        while (!left_.empty())
            RunOne(&lock);
        taken_ = false;
        holder_ = std::thread::id();
        cond_.notify_all();
    }

    std::mutex mu_;
    std::condition_variable cond_;
    std::deque<std::function<void()>> left_;
    uint64_t offered_ = 0, ran_ = 0;
    bool taken_ = false;
    std::thread::id holder_;
};
} // namespace internal
} // namespace ps
#endif
