// A fixed number of threads that run what they are given; Wait returns when all of it is done.
#ifndef LR_THREAD_POOL_H
#define LR_THREAD_POOL_H

#include <condition_variable>
#include <functional>
#include <mutex>
#include <queue>
#include <thread>
#include <vector>

namespace lr
{
class ThreadPool
{
  public:
    explicit ThreadPool(int threads)
    {
        for (int i = 0; i < threads; ++i)
            threads_.emplace_back([this] { Loop(); });
    }
    ~ThreadPool()
    {
        {
            std::lock_guard<std::mutex> lock(mu_);
            stop_ = true;
        }
        work_.notify_all();
        for (auto &t : threads_)
            t.join();
    }

    void Run(std::function<void()> f)
    {
        {
            std::lock_guard<std::mutex> lock(mu_);
            queue_.push(std::move(f));
            ++unfinished_;
        }
        work_.notify_one();
    }
    void Wait()
    {
        std::unique_lock<std::mutex> lock(mu_);
        idle_.wait(lock, [this] { return unfinished_ == 0; });
    }

  private:
    void Loop()
    {
        for (;;) {
            std::function<void()> f;
            {
                std::unique_lock<std::mutex> lock(mu_);
                work_.wait(lock, [this] { return stop_ || !queue_.empty(); });
                if (queue_.empty())
                    return;
                f = std::move(queue_.front());
                queue_.pop();
            }
            f();
            std::lock_guard<std::mutex> lock(mu_);
            if (--unfinished_ == 0)
                idle_.notify_all();
        }
    }

    std::mutex mu_;
    std::condition_variable work_, idle_;
    std::queue<std::function<void()>> queue_;
    std::vector<std::thread> threads_;
    int unfinished_ = 0;
    bool stop_ = false;
};
} // namespace lr
#endif
