/*
 * A queue of messages between threads: the highest priority first, and among equals the oldest (in ps-lite
 * their order is lost). Tests: test/ps/unit_queue.cc.
 */
#ifndef PS_INTERNAL_THREADSAFE_PQUEUE_H_
#define PS_INTERNAL_THREADSAFE_PQUEUE_H_

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <utility>

#include "ps/internal/message.h"

namespace ps
{
class ThreadsafePQueue
{
  public:
    ThreadsafePQueue()
    {
    }
    ThreadsafePQueue(const ThreadsafePQueue &) = delete;
    ThreadsafePQueue &operator=(const ThreadsafePQueue &) = delete;

    void Push(Message value)
    {
        {
            std::lock_guard<std::mutex> lock(mu_);
            int priority = value.meta.priority;
            queue_.emplace(priority, std::move(value)); /* after its equals */
        }
        cond_.notify_one();
    }

    /* Waits until there is one. */
    void WaitAndPop(Message *value)
    {
        std::unique_lock<std::mutex> lock(mu_);
        cond_.wait(lock, [this] { return !queue_.empty(); });
        *value = std::move(queue_.begin()->second);
        queue_.erase(queue_.begin());
    }

  private:
    std::mutex mu_;
    std::condition_variable cond_;
    std::multimap<int, Message, std::greater<int>> queue_;
};
} // namespace ps
#endif
