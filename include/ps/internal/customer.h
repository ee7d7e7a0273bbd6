/*
 * A Customer: one end of an app in this process. It asks (a paramo customer with timestamps and waits) and it
 * is asked: a thread of its own takes requests and runs its handle, one at a time, as in ps-lite; so a handle
 * may wait for requests of other customers. (With PARAMO_PS_THREADS=0 a KVServer has no such thread:
 * internal::Serving::on.)
 * Handles for responses never run beside it either (strand.h).
 *
 * A Customer that is made before ps::Start attaches to the node when that starts. Finalize detaches it, and a
 * later Start attaches it again. Every function may be called from any thread. Tests: test/ps.
 */
#ifndef PS_INTERNAL_CUSTOMER_H_
#define PS_INTERNAL_CUSTOMER_H_

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "paramo/paramo.h"
#include "ps/internal/incoming.h"
#include "ps/internal/message.h"
#include "ps/internal/strand.h"
#include "ps/internal/threadsafe_queue.h" /* not used here: programs get it with this header */

namespace ps
{
class Postoffice;

class Customer
{
  public:
    /* Gets every message to this customer: requests, and responses to its own messages. */
    using RecvHandle = std::function<void(const Message &recved)>;

    /* For programs that write their own app on messages (van()->Send). */
    Customer(int app_id, int customer_id, const RecvHandle &recv_handle);
    /* For SimpleApp, KVWorker, KVServer. */
    Customer(int app_id, int customer_id, internal::Serving serving);
    ~Customer();
    Customer(const Customer &) = delete;
    Customer &operator=(const Customer &) = delete;

    int app_id() const
    {
        return app_id_;
    }
    int customer_id() const
    {
        return customer_id_;
    }
    int id() const
    {
        return customer_id_;
    }

    /* A timestamp for messages that the program sends itself: the request is over when every node of recver
     * (a node or group) has answered. */
    int NewRequest(int recver);
    /* Waits until the request is over; throws dmlc::Error with the cause if it has failed. */
    void WaitRequest(int timestamp);
    /* How many nodes have answered so far; in a handle for responses, without the one being handled. */
    int NumResponse(int timestamp);
    /* Counts num answers that will not come, for a request of NewRequest. */
    void AddResponse(int timestamp, int num = 1);
    /* Hands a message to the handle as if it had come in. */
    void Accept(const Message &recved);

    /* ---- for this layer ---- */

    /* The paramo customer; throws before Start. */
    paramo_worker *worker() const
    {
        paramo_worker *w = worker_.load(std::memory_order_acquire);
        if (w == nullptr)
            PS_FAIL() << "app " << app_id_ << ", customer " << customer_id_
                      << ": ps::Start has not been called yet, or ps::Finalize has";
        return w;
    }
    /* paramo_app_request, and the timestamp to show. */
    int Ask(const paramo_message *messages, size_t count, paramo_reply_fn on_reply, void *arg, int priority,
            paramo_callback done, uint32_t flags = 0);
    /* The same, without a throw. PARAMO_E_AGAIN: no more requests fit, and a callback cannot wait. */
    paramo_err TryAsk(const paramo_message *messages, size_t count, paramo_reply_fn on_reply, void *arg,
                      int priority, paramo_callback done, uint32_t flags, int *timestamp);
    /* A callback issues a request, and others are put off already, which it must not overtake. */
    bool MustPutOff() const
    {
        return put_off_waiting_.load(std::memory_order_relaxed) > 0 && calling() != nullptr;
    }
    /* For a request that TryAsk has no room for: `issue` tries it, with the timestamp that this returns, now and when
     * others have ended, until it returns true. Requests that are put off keep their order. */
    int PutOff(std::function<bool(int)> issue);
    /* A request has ended: there may be room. */
    void IssuePutOff();
    /* One that was put off is over. */
    void EndPutOff(int timestamp);
    /* Takes the request out of those that wait for their answer. Claimed without a request: it is not (or no longer)
     * among them. */
    internal::Claimed Claim(const internal::Asked &asked);
    /* Answers it with an error, if it still waits. */
    void Refuse(const internal::Asked &asked, const std::string &why);
    /* Runs the handle for a response to a request of ours on the strand, now or when it is free; NumResponse
     * counts it afterwards. */
    void HandleResponse(int timestamp, std::function<void()> handle);
    /* A request of ours has failed: logs it, and remembers it for WaitRequest, or otherwise for Finalize.
     * by_callback: it had a callback, which is not called; unless a wait reports the failure in time, it ends
     * the process (Postoffice::Doom). */
    void Failed(int timestamp, const std::string &why, bool by_callback = false);
    /* A request of ours has ended with `status`: calls Failed if that is an error. A request that this side has
     * given up (Detach, GiveUp) is only counted. from: begins the message. */
    void Ended(int timestamp, paramo_err status, bool by_callback = false, const std::string &from = "");
    /* The job is lost: ends the requests in flight. */
    void GiveUp();
    /* A handle runs at this moment. */
    bool Busy() const
    {
        return strand_.Busy();
    }
    /* The number that a program sees for a request of paramo_app_request. A customer with a handle of the
     * program's own numbers its own messages from 0, any other what it asks. */
    int Shown(uint64_t ts) const
    {
        return internal::FoldTime(ts) ^ (recv_handle_ ? internal::TIME_OWN : 0);
    }

    /* Does nothing if it is attached. */
    void Attach(paramo_node *node, bool is_worker);
    /* Begins to take requests, if Serving::late has put that off. */
    void Open();
    /* Runs f, which must not throw, when no handle runs: now, or when the one that does has ended. */
    void RunOnStrand(std::function<void()> f);
    /* Waits for all requests that it has issued; their failures have been reported by then. */
    void Finish();
    /* Takes no more requests; on return no handle runs. May be called again. */
    void Close();
    /* Close, then ends the requests that it has issued, and logs how many they were. */
    void Detach();
    /* Refuses the requests that waited for their answer at the last call already. */
    void RefuseStale(const std::string &why);
    /* Takes over the failures for which no call has waited: how many, and the text of the first. */
    size_t TakeUntold(std::string *first);

    /* f is a callback of this customer. While f runs, the thread cannot wait for this customer's requests. */
    template <typename F> void InCallback(F &&f)
    {
        const Customer *const before = calling();
        calling() = this;
        f();
        calling() = before;
    }

  private:
    friend class Van;

    /* The customer whose callback this thread runs; nullptr: none. */
    static const Customer *&calling()
    {
        static thread_local const Customer *customer = nullptr;
        return customer;
    }

    /* A request whose messages the program sends itself. */
    struct Own {
        int expected, received;
    };
    /* How many requests that are over are remembered. */
    enum : int { OWN_REMEMBERED = 1024 };
    /* A request that is put off. */
    struct Later {
        int timestamp;
        std::function<bool(int)> issue;
    };
    struct OwnCall {
        Customer *customer;
        int timestamp;
        Message message; /* what is sent in place */
    };

    /* A request that has failed. */
    struct Failure {
        std::shared_ptr<std::atomic<bool>> told; /* thrown by a wait */
        std::string why;
    };

    bool IsOwn(int timestamp) const
    {
        return (timestamp >= internal::TIME_OWN) != static_cast<bool>(recv_handle_);
    }
    std::string Told(int timestamp);
    void ForgetFailures();
    void SendOwn(const Message &msg);
    void AnswerOwn(const Message &msg);
    static void OwnReply(void *arg, uint64_t ts, const paramo_reply *reply) noexcept;
    static void OwnDone(void *arg, uint64_t ts, paramo_err status) noexcept;
    void CountOwn(int timestamp, int num);
    int NewOwn(int expected);

    uint64_t UnfoldTime(int timestamp) const;
    /* Names a request of this round, also when its timestamp, which has 30 bits, comes again. */
    uint64_t NameOf(int timestamp) const
    {
        return IsOwn(timestamp) ? UINT64_C(1) << 63 | static_cast<uint64_t>(timestamp)
                                : UnfoldTime(timestamp);
    }
    bool Forked();
    void Serve();
    static void OnRequest(void *arg, paramo_request *request, const paramo_request_info *info) noexcept;
    void TakeLoop(paramo_node *node, uint32_t serve_as);
    static bool Keep(paramo_request *request, const paramo_request_info *info, internal::Incoming *in);
    void Hold(const internal::Asked &asked);
    void Handle(paramo_request *request, const paramo_request_info *info);
    static Message MessageOf(const internal::Incoming &in);

    const int app_id_;
    const int customer_id_;
    const RecvHandle recv_handle_;
    const internal::Serving serving_;

    std::atomic<paramo_worker *> worker_{nullptr};
    std::atomic<uint64_t> last_ts_{0}; /* of a recent request */
    std::atomic<bool> any_failed_{false};
    std::atomic<size_t> put_off_waiting_{0}; /* the length of put_off_ */
    std::atomic<size_t> put_off_open_{0};    /* requests that were put off and are not over */
    internal::Strand strand_;
    internal::InHand in_hand_; /* set on the strand */

    std::mutex mu_; /* guards the fields below */
    std::condition_variable cond_;
    std::unordered_map<internal::Asked, internal::Claimed, internal::AskedHash> held_;
    std::unordered_set<internal::Asked, internal::AskedHash> stale_; /* of held_, at the last RefuseStale */
    std::unordered_map<int, Own> own_;
    int next_own_ = 0;
    std::deque<Later> put_off_;
    bool issuing_ = false;                         /* a thread tries to issue those of put_off_ */
    bool issue_again_ = false;                     /* a request has ended since it began */
    std::unordered_map<uint64_t, Failure> failed_; /* the latest, by NameOf */
    std::deque<uint64_t> failed_order_;
    size_t untold_ = 0; /* failures for which no call has waited */
    std::string first_untold_;
    uint64_t dropped_ = 0;                 /* requests that had not ended when they were given up */
    std::unordered_map<int, int> handled_; /* responses whose handle has run, for the latest requests */
    std::deque<int> handled_order_;

    std::mutex serve_mu_; /* guards the fields below; not held while it waits for a handle or callback */
    paramo_node *node_ = nullptr;
    pid_t process_ = 0; /* that has attached it: a child of fork() has its memory, but none of its threads */
    uint32_t serve_as_ = PARAMO_ANY;
    std::thread taker_;
    bool served_ = false;
    bool asks_only_ = false;
    bool open_ = false;
    bool closed_ = false; /* since it was attached */
};
} // namespace ps

#include "ps/internal/postoffice.h" /* the functions of Customer are there */
#endif
