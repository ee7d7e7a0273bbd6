/* What one thread waits for, and another one makes true. A wait that takes a minute has failed, and says for what. */
#ifndef TEST_PS_EVENT_H
#define TEST_PS_EVENT_H

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <string>

class Event
{
  public:
    explicit Event(const char *what, std::chrono::seconds limit = std::chrono::seconds(60))
        : what_(what), limit_(limit)
    {
    }
    void Set()
    {
        std::lock_guard<std::mutex> lock(mu_);
        set_ = true;
        cond_.notify_all();
    }
    void Wait()
    {
        std::unique_lock<std::mutex> lock(mu_);
        if (!cond_.wait_for(lock, limit_, [this] { return set_; }))
            throw std::runtime_error("nothing came in " + std::to_string(limit_.count()) +
                                     " s of what was waited for: " + what_);
    }

  private:
    const char *const what_;
    const std::chrono::seconds limit_;
    std::mutex mu_;
    std::condition_variable cond_;
    bool set_ = false;
};

#endif
