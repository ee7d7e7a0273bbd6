/*
 * A queue between threads: first in, first out, unbounded. Tests: test/ps/unit_queue.cc.
 */
#ifndef PS_INTERNAL_THREADSAFE_QUEUE_H_
#define PS_INTERNAL_THREADSAFE_QUEUE_H_

#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

#include "ps/base.h"

namespace ps
{
template <typename T> class ThreadsafeQueue
{
  public:
    ThreadsafeQueue()
    {
    }
    ThreadsafeQueue(const ThreadsafeQueue &) = delete;
    ThreadsafeQueue &operator=(const ThreadsafeQueue &) = delete;

    void Push(T value)
    {
        {
            std::lock_guard<std::mutex> lock(mu_);
            queue_.push_back(std::move(value));
        }
        cond_.notify_one();
    }

    /* Waits until there is one. */
    void WaitAndPop(T *value)
    {
        std::unique_lock<std::mutex> lock(mu_);
        cond_.wait(lock, [this] { return !queue_.empty(); });
        *value = std::move(queue_.front());
        queue_.pop_front();
    }

    /* False if it is empty. */
    bool TryPop(T *value)
    {
        std::lock_guard<std::mutex> lock(mu_);
        if (queue_.empty())
            return false;
        *value = std::move(queue_.front());
        queue_.pop_front();
        return true;
    }

    int Size() const
    {
        std::lock_guard<std::mutex> lock(mu_);
        return static_cast<int>(queue_.size());
    }

  private:
    mutable std::mutex mu_;
    std::condition_variable cond_;
    std::deque<T> queue_;
};
} // namespace ps
#endif
