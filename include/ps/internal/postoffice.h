/*
 * The Postoffice: this process's place in the cluster, once per process. It owns Paramo's node between Start
 * and Finalize, and knows the Customers.
 *
 * Roles and numbers are known before Start, from the environment. A worker process may hold several
 * customers, that is threads that call Start(customer_id) ... Finalize(customer_id): as in ps-lite each is a
 * worker of the job, which DMLC_NUM_WORKER counts and barriers wait for, with a node of its own. Requests go
 * through the process's node: the one of the customer that came first. Every function may be called from any
 * thread. Failures throw dmlc::Error. Tests: test/ps.
 */
#ifndef PS_INTERNAL_POSTOFFICE_H_
#define PS_INTERNAL_POSTOFFICE_H_

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "paramo/paramo.h"
#include "ps/base.h"
#include "ps/range.h"

#include "ps/internal/customer.h"
#include "ps/internal/env.h"
#include "ps/internal/van.h"

#ifndef PS_VLOG
#define PS_VLOG(x) LOG_IF(INFO, x <= ::ps::Postoffice::Get()->verbose())
#endif

namespace ps
{
class Postoffice
{
  public:
    using Callback = std::function<void()>;

    /* Never destroyed: threads of customers that were not finalised may outlive main. */
    static Postoffice *Get()
    {
        static Postoffice *only = new Postoffice();
        return only;
    }

    /* Of BytePS' fork of ps-lite, where a process may have several instances of each role. Here it is one node. */
    static Postoffice *GetWorker(int instance = 0)
    {
        return Instance(instance);
    }
    static Postoffice *GetServer(int instance = 0)
    {
        return Instance(instance);
    }
    static Postoffice *GetScheduler()
    {
        return Get();
    }
    int group_size() const
    {
        return 1;
    }
    int num_worker_instances() const
    {
        return num_workers();
    }
    int num_server_instances() const
    {
        return num_servers();
    }

    Van *van()
    {
        return &van_;
    }

    /* Joins the cluster, for the first customer of the process; returns when the cluster is complete. All
     * servers, workers and the scheduler are there then, so do_barrier adds nothing. */
    void Start(int customer_id, const char *argv0, const bool do_barrier);
    /* As BytePS' fork of ps-lite has it: the role instead of DMLC_ROLE, and the rank that is wanted, -1 for
     * any. */
    void Start(int customer_id, Node::Role role, int rank, const bool do_barrier, const char *argv0);
    /* Ends the customer's part. Customer 0 ends the process's: with do_barrier when all customers of the process and
     * then all nodes have arrived here; it leaves the cluster and runs the exit callbacks. Then it throws if a
     * request has failed for which no call has waited. */
    void Finalize(const int customer_id, const bool do_barrier = true);

    void AddCustomer(Customer *customer);
    void RemoveCustomer(Customer *customer);
    /* nullptr if there is none after timeout seconds. */
    Customer *GetCustomer(int app_id, int customer_id, int timeout = 0) const;

    /* The nodes of a group (or sum of groups), or of one node. Throws if there is no such node. */
    const std::vector<int> &GetNodeIDs(int node_id) const;
    /* Which keys are which server's, by rank: contiguous, of equal size. The last one's end is kMaxKey, and
     * the key kMaxKey itself, which no range can hold, belongs to it, too. */
    const std::vector<Range> &GetServerKeyRanges();

    /* Called at the end of Finalize(0), all that are registered, in order. */
    void RegisterExitCallback(const Callback &cb)
    {
        std::lock_guard<std::mutex> lock(mu_);
        exit_callbacks_.push_back(cb);
    }

    static int WorkerRankToID(int rank)
    {
        return static_cast<int>(PARAMO_ID_WORKER(rank));
    }
    static int ServerRankToID(int rank)
    {
        return static_cast<int>(PARAMO_ID_SERVER(rank));
    }
    static int IDtoRank(int id)
    {
        return std::max((id - 8) / 2, 0);
    }

    int num_workers() const
    {
        return NumberOf("DMLC_NUM_WORKER");
    }
    int num_servers() const
    {
        return NumberOf("DMLC_NUM_SERVER");
    }
    int my_rank() const
    {
        return IDtoRank(van_.my_node().id);
    }
    int is_worker() const
    {
        return Role() == "worker";
    }
    int is_server() const
    {
        return Role() == "server";
    }
    int is_scheduler() const
    {
        return Role() == "scheduler";
    }
    std::string role_str() const
    {
        return Role();
    }
    int verbose() const
    {
        return GetEnv("PS_VERBOSE", 0);
    }
    /* This node took the place of one that died. */
    bool is_recovery() const
    {
        return van_.my_node().is_recovery;
    }

    /* Waits until every node of the group has called it. This node must be in the group; each customer of a worker
     * process counts as a node. */
    void Barrier(int customer_id, int node_group);
    void Barrier(int node_group)
    {
        Barrier(0, node_group);
    }

    /* The nodes that have died. Paramo decides that (PS_HEARTBEAT_TIMEOUT, lost connections); t, ps-lite's
     * seconds of silence, is not used. */
    std::vector<int> GetDeadNodes(int t = 60);

    /* ---- for this layer ---- */

    /* A request has failed whose callback is therefore not called. Ends the process after the grace, unless a wait
     * has `told` the failure by then, or its customer is in Finalize, which reports it. */
    void Doom(int customer_id, const std::shared_ptr<std::atomic<bool>> &told, const std::string &why);
    std::string Forgotten() const;
    void WarnOfForgotten() const;
    static bool JobLost(const paramo_node *node, std::string *why);
    paramo_node *node() const
    {
        std::lock_guard<std::mutex> lock(mu_);
        return node_;
    }

  private:
    Postoffice() : env_(Environment::_GetSharedRef())
    {
    }

    /* ps-lite has no deadlines; a job that wants them sets PARAMO_REQUEST_TIMEOUT_MS. */
    enum : uint32_t { FOREVER_MS = 7u * 24 * 3600 * 1000, CLUSTER_MS = 600u * 1000 };

    std::string Role() const
    {
        const char *role = env_->find("DMLC_ROLE");
        if (role == nullptr)
            PS_FAIL() << "DMLC_ROLE is not set: start the program by 'paramo run -s 1 -w 1 -- PROGRAM', "
                         "or set it to worker, server or scheduler";
        return role;
    }
    int NumberOf(const char *name) const
    {
        const char *text = env_->find(name);
        if (text == nullptr)
            PS_FAIL() << name << " is not set";
        return std::atoi(text);
    }

    static Postoffice *Instance(int instance)
    {
        if (instance != 0)
            PS_FAIL() << "Postoffice: a process has one instance, and not " << instance + 1;
        return Get();
    }
    static bool VanIsChosen();
    paramo_node *Join(bool process);
    void Open(paramo_node *joined);
    bool EndsWith(int by, int of) const;
    std::string Leave(bool wait_for_others);
    static std::chrono::milliseconds RecoveryPatience();
    bool WorkersOnlyDied();
    static void AtExit(int status, void *unused);
    static std::chrono::milliseconds Grace();
    void StartWatch();
    void StopWatch();
    void Watch();
    void EndIfIdle(const std::string &why, bool *said);
    void Say(const std::string &why) const;
    template <typename P, typename F> void Each(P &&pick, F &&f);
    template <typename F> void Each(F &&f);
    void FinishAll(int by);
    void Forget(Customer *customer, std::unique_lock<std::mutex> *lock);
    std::string Meet(int customer_id, uint32_t group, bool until_over);
    void TakeUntold(Customer *customer);
    void FailIfUntold();

    const std::shared_ptr<Environment> env_;
    Van van_;

    std::mutex start_mu_;        /* held while the process joins or leaves */
    bool joined_before_ = false; /* under start_mu_ */
    std::atomic<int> wanted_rank_{-1};
    std::atomic<pid_t> process_{0}; /* that has joined; a child of fork() takes no part */

    mutable std::mutex mu_; /* guards the fields below; taken after start_mu_ */
    mutable std::condition_variable cond_;
    paramo_node *node_ = nullptr;
    std::map<std::pair<int, int>, Customer *> customers_;
    size_t added_ = 0;                 /* customers, ever */
    std::map<Customer *, int> pinned_; /* in use by Each, for which they stay */
    size_t attaching_ = 0;             /* customers that come while the process is joined */
    size_t removing_ = 0;              /* that go; the node outlives them */
    bool closing_ = false;             /* the process leaves: no customer attaches */
    std::set<int> started_,
        finished_;               /* customers between Start and Finalize; those that have called Finalize */
    int joining_ = 0;            /* customers inside Start */
    int process_by_ = 0;         /* whose node is the process's */
    std::string process_failed_; /* why it has none */
    std::map<int, paramo_node *> others_; /* of the customers that came after it */
    std::vector<Callback> exit_callbacks_;
    mutable std::unordered_map<int, std::vector<int>> node_ids_;
    std::vector<Range> key_ranges_;
    /* A failure that only a callback would have reported, and when it ends the process. */
    struct Doomed {
        std::chrono::steady_clock::time_point at;
        int customer_id;
        std::shared_ptr<std::atomic<bool>> told;
        std::string why;
    };
    std::deque<Doomed> doomed_;
    std::set<int> finalizing_; /* customers that have called Finalize, at its beginning */
    bool leaving_ = true;      /* no watch may run */
    std::thread watch_;
    std::atomic<bool> ranges_made_{false}; /* key_ranges_ stays as it is until the next Start */
    size_t untold_ = 0; /* failed requests of customers that are gone, for which no call has waited */
    std::string first_untold_;
};

inline void Postoffice::Start(int customer_id, Node::Role role, int rank, const bool do_barrier,
                              const char *argv0)
{
    const char *const names[] = {"server", "worker", "scheduler"};
    PS_REQUIRE(role != Node::JOINT && GetEnv("DMLC_GROUP_SIZE", 1) == 1)
        << "ps::StartPS: a process is one worker or one server here; start as many processes as there are to "
           "be (the role joint and DMLC_GROUP_SIZE are of BytePS' fork of ps-lite)";
    const std::string name = names[role];
    if (env_->find("DMLC_ROLE") == nullptr)
        setenv("DMLC_ROLE", name.c_str(), 1);
    PS_REQUIRE(Role() == name) << "ps::StartPS: this is to be a " << name << ", and DMLC_ROLE is " << Role();
    wanted_rank_ = role == Node::SCHEDULER ? -1 : rank;
    Start(customer_id, argv0, do_barrier);
}

inline void Postoffice::Start(int customer_id, const char *, const bool)
{
    std::unique_lock<std::mutex> lock(mu_);
    if (joining_ == 0 && node_ == nullptr) { /* the first of a round */
        started_.clear();
        finished_.clear();
        finalizing_.clear();
        doomed_.clear();
        process_failed_.clear();
        process_by_ = customer_id;
    } else if (started_.count(customer_id) != 0) {
        return; /* it has been here */
    }
    const bool first = customer_id == process_by_;
    started_.insert(customer_id);
    joining_++;
    lock.unlock();
    paramo_node *joined = nullptr;
    const std::string error = internal::Caught([&] {
        if (first || is_worker())
            joined = Join(first);
        if (first)
            Open(joined);
    });
    lock.lock();
    if (first)
        process_failed_ = error;
    joining_--;
    cond_.notify_all();
    if (!first && error.empty()) /* its apps use the process's node */
        cond_.wait(lock, [this] { return node_ != nullptr || !process_failed_.empty() || joining_ == 0; });
    if (error.empty() && node_ != nullptr) {
        if (!first && joined != nullptr)
            others_[customer_id] = joined;
        return;
    }
    const std::string why = error.empty() ? process_failed_ : error;
    started_.erase(customer_id);
    lock.unlock();
    if (joined != nullptr && !first)
        (void)paramo_stop_now(joined);
    throw dmlc::Error(why);
}

/* True if the environment names a transport. ps-lite's zmq, p3 and 0 are its TCP, which is the default here: programs
 * on this interface learn by callbacks that small requests are over, and over TCP those come sooner and for less
 * processor time than by UCX's shared memory (bench/pslite.sh, docs/MIGRATING.md). */
inline bool Postoffice::VanIsChosen()
{
    std::string type = GetEnv("DMLC_PS_VAN_TYPE", std::string());
    for (char &letter : type)
        letter = letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
    return Environment::Get()->find("PARAMO_VAN") != nullptr ||
           !(type.empty() || type == "zmq" || type == "p3" || type == "0");
}

/* A node of the job: the process's, or one for another customer of it. Returns when the cluster is complete.
 */
inline paramo_node *Postoffice::Join(bool process)
{
    {
        std::lock_guard<std::mutex> starting(start_mu_);
        for (const auto &variable : env_->given())
            setenv(variable.first.c_str(), variable.second.c_str(), 1);
    }
    const bool worker = is_worker() != 0, server = is_server() != 0;
    PS_REQUIRE(worker || server || is_scheduler())
        << "DMLC_ROLE=" << Role() << ": not worker, server or scheduler";

    paramo_config config;
    paramo_config_init(&config);
    config.connect_timeout_ms = CLUSTER_MS;
    config.request_timeout_ms = FOREVER_MS;
    internal::Check(paramo_config_from_env(&config), "ps::Start");
    internal::NotNull(config.scheduler, "config.scheduler");
    if (!VanIsChosen())
        config.van = "tcp";
    else if (std::string(config.van) == "ucx")
        config.van = "auto"; /* UCX does not pay off on a connection that carries little */
    config.retry_ms =
        0; /* PS_RESEND_TIMEOUT is a guess of ps-lite's users; the time that answers take is measured */
    if (config.recovery_ms == 0)
        config.recovery_ms = static_cast<uint32_t>(RecoveryPatience().count());
    if (wanted_rank_ >= 0)
        config.rank = wanted_rank_;
    if (!process) { /* the process's rank, name and port are those of its first node */
        config.rank = -1;
        config.name = nullptr;
        config.port = 0;
    }
    paramo_node *joined = nullptr;
    paramo_err err;
    const auto deadline =
        std::chrono::steady_clock::now() + std::chrono::milliseconds(config.connect_timeout_ms);
    /* The cluster of the round before may not have ended everywhere: it refuses this node, and the next one
     * accepts it. */
    while ((err = paramo_start(&config, &joined)) == PARAMO_E_SHUTDOWN ||
           (err == PARAMO_E_FULL && joined_before_)) {
        if (std::chrono::steady_clock::now() >= deadline)
            break;
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    internal::Check(err, "ps::Start");
    return joined;
}

/* The process's node has joined: its customers use it from now on. */
inline void Postoffice::Open(paramo_node *joined)
{
    std::lock_guard<std::mutex> starting(start_mu_);
    paramo_config config; /* for the address that it shows */
    paramo_config_init(&config);
    internal::Check(paramo_config_from_env(&config), "ps::Start");
    const bool worker = is_worker() != 0, server = is_server() != 0;
    if (!joined_before_)
        (void)on_exit(AtExit, nullptr);
    joined_before_ = true;

    Node me;
    me.role = worker ? Node::WORKER : server ? Node::SERVER : Node::SCHEDULER;
    me.id = static_cast<int>(paramo_node_id(joined));
    me.port = paramo_node_port(joined);
    me.hostname = config.advertise ? config.advertise : config.listen ? config.listen : "127.0.0.1";
    me.is_recovery = paramo_is_recovery(joined) != 0;
    van_.my_node_ = me;
    van_.ready_ = true;

    {
        std::lock_guard<std::mutex> lock(mu_);
        node_ = joined;
        process_ = getpid();
        closing_ = false;
        node_ids_.clear();
        ranges_made_ = false;
        key_ranges_.clear();
        leaving_ = false;
        StartWatch();
    }
    Each([&](Customer *customer) { customer->Attach(joined, worker); });
    PS_VLOG(1) << me.ShortDebugString() << " has joined: " << me.DebugString();
}

/* A process that ends without ps::Finalize counts as dead: its exit status is not 0. */
inline void Postoffice::AtExit(int status, void *)
{
    Postoffice *office = Get();
    if (status != 0 || office->process_ != getpid() || office->node() == nullptr)
        return;
    LOG(ERROR) << "node " << office->van()->my_node().ShortDebugString()
               << " ends without ps::Finalize: the job goes on without it, as if it had died";
    std::fflush(nullptr);
    _exit(1);
}

/* ---- failures that the program does not see ----
 * A program may wait in code of its own for a callback, or for a worker's command, that will not come. A
 * thread therefore looks whether the job is lost. After the grace it ends a server or scheduler, and a worker's
 * requests in flight. It also ends a process in which only a callback would have reported a failure. */

/* How long the program has to end by itself. */
inline std::chrono::milliseconds Postoffice::Grace()
{
    return std::chrono::milliseconds(std::max(0, GetEnv("PARAMO_PS_GRACE_MS", 5000))); /* arbitrary */
}

/* Under mu_. */
inline void Postoffice::StartWatch()
{
    if (!watch_.joinable())
        watch_ = std::thread([this] { Watch(); });
}

inline void Postoffice::StopWatch()
{
    std::thread ending;
    {
        std::lock_guard<std::mutex> lock(mu_);
        leaving_ = true;
        cond_.notify_all();
        ending.swap(watch_);
    }
    if (ending.joinable())
        ending.join();
}

inline void Postoffice::Doom(int customer_id, const std::shared_ptr<std::atomic<bool>> &told,
                             const std::string &why)
{
    std::lock_guard<std::mutex> lock(mu_);
    doomed_.push_back({std::chrono::steady_clock::now() + Grace(), customer_id, told, why});
}

/* The membership has ended, and not by the job's normal end. */
inline bool Postoffice::JobLost(const paramo_node *node, std::string *why)
{
    const paramo_err err = node != nullptr ? paramo_job_status(node) : PARAMO_OK;
    if (err == PARAMO_OK || err == PARAMO_E_SHUTDOWN || err == PARAMO_E_CLOSED)
        return false;
    *why = std::string(paramo_last_error()) + " (" + paramo_err_name(err) + ")";
    return true;
}

inline void Postoffice::Say(const std::string &why) const
{
    LOG(ERROR) << "node " << van_.my_node_.ShortDebugString() << " ends: " << why;
    std::fflush(nullptr);
}

/* The process ends unless a handle runs. */
inline void Postoffice::EndIfIdle(const std::string &why, bool *said)
{
    std::lock_guard<std::mutex> lock(mu_);
    const auto idle = [this] {
        return std::none_of(customers_.begin(), customers_.end(),
                            [](const std::pair<const std::pair<int, int>, Customer *> &entry) {
                                return entry.second->Busy();
                            });
    };
    if (!finalizing_.empty())
        return;
    if (!*said)
        Say("the job is lost: " + why + (idle() ? "" : "; a handle still runs, and may finish"));
    *said = true;
    std::fflush(nullptr);
    if (idle())
        _exit(1);
}

/* The customers that have been started and have not called Finalize, although the customer that waits for them has.
 * Under mu_. */
inline std::string Postoffice::Forgotten() const
{
    std::string names;
    if (finalizing_.empty() || (started_.count(0) != 0 && finalizing_.count(0) == 0))
        return names;
    for (const int id : started_)
        if (finalizing_.count(id) == 0)
            names += (names.empty() ? "customer " : ", customer ") + std::to_string(id);
    return names;
}

inline void Postoffice::WarnOfForgotten() const
{
    const std::string names = Forgotten();
    if (!names.empty())
        LOG(WARNING) << "node " << van_.my_node_.ShortDebugString() << " is in ps::Finalize, which " << names
                     << " of this process has not called";
}

inline void Postoffice::Watch()
{
    /* Each look wakes a thread of an idle process, so it looks no more often than the grace needs. */
    const auto period =
        std::max(std::chrono::milliseconds(200), std::min(Grace() * 2 / 5, std::chrono::milliseconds(2000)));
    const auto never = std::chrono::steady_clock::time_point::max();
    auto lost_until = never; /* the end of a lost job's grace */
    std::string lost;
    bool said = false, warned = false;
    auto forgotten_at = never; /* when a customer without Finalize is worth a line */
    const bool worker = is_worker() != 0;
    const auto reported = [this](const Doomed &doomed) {
        return *doomed.told || std::any_of(finalizing_.begin(), finalizing_.end(),
                                           [&](int by) { return EndsWith(by, doomed.customer_id); });
    };
    std::unique_lock<std::mutex> lock(mu_);
    while (!leaving_) {
        const auto now = std::chrono::steady_clock::now();
        doomed_.erase(std::remove_if(doomed_.begin(), doomed_.end(), reported), doomed_.end());
        if (!doomed_.empty() && now >= doomed_.front().at) {
            Say("it waits for the callback of a request that has failed: " + doomed_.front().why);
            _exit(1);
        }
        if (forgotten_at == never && !Forgotten().empty())
            forgotten_at = now + Grace();
        if (!warned && now >= forgotten_at) {
            WarnOfForgotten();
            warned = true;
        }
        if (lost_until == never && JobLost(node_, &lost))
            lost_until = now + Grace();
        if (now >= lost_until) {
            lock.unlock();
            if (!worker)
                EndIfIdle(lost, &said);
            else
                Each([](Customer *customer) { customer->GiveUp(); });
            lock.lock();
        }
        auto next = now + period;
        if (!doomed_.empty())
            next = std::min(next, doomed_.front().at);
        for (const auto &at : {lost_until, warned ? never : forgotten_at})
            if (at > now)
                next = std::min(next, at);
        /* Other waits use cond_, too; when it wakes for them, this one waits on. */
        cond_.wait_until(lock, next, [this] { return leaving_; });
    }
}

inline void Postoffice::Finalize(const int customer_id, const bool do_barrier)
{
    if (process_ != getpid())
        return;
    {
        std::lock_guard<std::mutex> lock(mu_);
        if (node_ == nullptr)
            return;
        finalizing_.insert(customer_id);
    }
    std::string wrong;
    if (do_barrier) {
        FinishAll(customer_id);
        /* During that time the process's node serves the others. */
        wrong = Meet(customer_id, PARAMO_GROUP_ALL, !is_worker());
    }
    std::unique_lock<std::mutex> lock(mu_);
    finished_.insert(customer_id);
    cond_.notify_all();
    const auto all_finished = [this] {
        return joining_ == 0 &&
               std::includes(finished_.begin(), finished_.end(), started_.begin(), started_.end());
    };
    const bool last = customer_id == 0 || (started_.count(0) == 0 && all_finished());
    if (!last) {
        lock.unlock();
        if (!wrong.empty())
            internal::Fail("ps::Finalize: the job has not ended well: " + wrong);
        return;
    }
    if (do_barrier) /* the other customers of the process are at their ends, too */
        cond_.wait(lock, all_finished);
    else
        WarnOfForgotten();
    lock.unlock();
    const std::string left = Leave(do_barrier);
    if (wrong.empty())
        wrong = left;
    std::vector<Callback> callbacks;
    {
        std::lock_guard<std::mutex> relock(mu_);
        callbacks.swap(exit_callbacks_);
    }
    for (const Callback &callback : callbacks)
        callback();
    if (!wrong.empty())
        internal::Fail("ps::Finalize: the job has not ended well: " + wrong);
    FailIfUntold();
}

/* True if customer `by` finalises customer `of`. Customers that were not started end with the process. Under
 * mu_. */
inline bool Postoffice::EndsWith(int by, int of) const
{
    return of == by || (started_.count(of) == 0 && (by == 0 || started_.count(0) == 0));
}

/* Runs f for each customer that pick chooses; pick is called under mu_. f may wait: its customer stays until f returns,
 * and others may come and go. */
template <typename P, typename F> void Postoffice::Each(P &&pick, F &&f)
{
    std::unique_lock<std::mutex> lock(mu_);
    for (auto it = customers_.begin(); it != customers_.end();) {
        const std::pair<int, int> name = it->first;
        Customer *const customer = it->second;
        if (pick(customer)) {
            std::exception_ptr failed;
            pinned_[customer]++;
            lock.unlock();
            try {
                f(customer);
            } catch (...) {
                failed = std::current_exception();
            }
            lock.lock();
            if (--pinned_[customer] == 0)
                pinned_.erase(customer);
            cond_.notify_all();
            if (failed != nullptr)
                std::rethrow_exception(failed);
        }
        it = customers_.upper_bound(name);
    }
}
template <typename F> void Postoffice::Each(F &&f)
{
    Each([](Customer *) { return true; }, f);
}

/* Waits for the requests of the customers that `by` finalises, and of the customers that their callbacks make. */
inline void Postoffice::FinishAll(int by)
{
    const auto added = [this] {
        std::lock_guard<std::mutex> lock(mu_);
        return added_;
    };
    size_t before;
    do {
        before = added();
        Each([this, by](Customer *customer) { return EndsWith(by, customer->customer_id()); },
             [](Customer *customer) { customer->Finish(); });
    } while (added() != before);
}

/* Reports the failed requests of all customers for which no call has waited. */
inline void Postoffice::FailIfUntold()
{
    Each([this](Customer *customer) { TakeUntold(customer); });
    size_t count = 0;
    std::string first;
    {
        std::lock_guard<std::mutex> lock(mu_);
        std::swap(count, untold_);
        first.swap(first_untold_);
    }
    if (count > 0)
        internal::Fail("ps::Finalize: " + std::to_string(count) +
                       (count == 1 ? " request has failed, and no call has waited for it: "
                                   : " requests have failed, and no call has waited for them; the first: ") +
                       first);
}

inline void Postoffice::TakeUntold(Customer *customer)
{
    std::string first;
    const size_t count = customer->TakeUntold(&first);
    std::lock_guard<std::mutex> lock(mu_);
    if (count > 0 && untold_ == 0)
        first_untold_ = first;
    untold_ += count;
}

/* How long nodes wait in a barrier for a dead worker's replacement. ps-lite knows replacements only with heartbeats,
 * and then waits forever. */
inline std::chrono::milliseconds Postoffice::RecoveryPatience()
{
    const int heartbeat = GetEnv("PS_HEARTBEAT_TIMEOUT", 0);
    const int ms = heartbeat > 0 ? std::max(10000, 2000 * heartbeat) : 0;
    return std::chrono::milliseconds(std::max(0, GetEnv("PARAMO_PS_RECOVERY_MS", ms)));
}

/* True if only workers have died: others may take their places. */
inline bool Postoffice::WorkersOnlyDied()
{
    const std::vector<int> dead = GetDeadNodes();
    return std::all_of(dead.begin(), dead.end(), [](int id) { return id > kScheduler && id % 2 == 1; });
}

/* One barrier of the cluster, which dead workers hold up: workers that take their places enter it, too. `until_over`:
 * a server or scheduler at the end stays for the workers that are left, even if nodes have died. If it closed its
 * apps, their requests to it would wait forever. Returns what is wrong, or nothing. */
inline std::string Postoffice::Meet(int customer_id, uint32_t group, bool until_over)
{
    paramo_node *joined = nullptr;
    {
        std::lock_guard<std::mutex> lock(mu_);
        const auto other = others_.find(customer_id);
        joined = other != others_.end() ? other->second : node_;
    }
    PS_REQUIRE(joined != nullptr) << "Barrier: call ps::Start first";
    auto deadline = std::chrono::steady_clock::time_point::max(), stale = deadline;
    std::string first; /* the node that was missed first */
    for (;;) {
        const paramo_err err = paramo_barrier(joined, group, 0, FOREVER_MS);
        if (err == PARAMO_OK)
            return std::string();
        const std::string why = paramo_last_error();
        if (first.empty())
            first = why;
        if (err != PARAMO_E_BARRIER)
            return first;
        const bool replaceable = WorkersOnlyDied();
        if (!until_over && !replaceable)
            return why;
        const auto now = std::chrono::steady_clock::now();
        if (deadline == std::chrono::steady_clock::time_point::max()) {
            deadline = stale = now + (replaceable ? RecoveryPatience() : std::chrono::milliseconds(0));
            if (deadline > now)
                LOG(WARNING) << "the barrier waits for a replacement: " << why;
        }
        if (!until_over && now >= deadline)
            return why;
        if (until_over &&
            now >= stale) { /* a handle may hold requests of others until those of the dead worker come */
            Each([&why](Customer *customer) { customer->RefuseStale(why); });
            stale = now + std::chrono::seconds(10); /* arbitrary: longer than a handle takes for its answer */
        }
        std::this_thread::sleep_for(
            std::chrono::milliseconds(10)); /* the barrier is refused as long as it is broken */
    }
}

/* Returns what is wrong with the job, or nothing. */
inline std::string Postoffice::Leave(bool wait_for_others)
{
    StopWatch();
    std::lock_guard<std::mutex> leaving(start_mu_);
    { /* handles still run, and may make customers: those do not attach */
        std::unique_lock<std::mutex> lock(mu_);
        closing_ = true;
        cond_.wait(lock, [this] { return attaching_ == 0; });
    }
    Each([](Customer *customer) { customer->Close(); });
    Each([](Customer *customer) { customer->Detach(); });
    std::map<int, paramo_node *> others;
    paramo_node *left;
    {
        std::unique_lock<std::mutex> lock(mu_);
        cond_.wait(lock, [this] { return removing_ == 0; });
        left = node_;
        node_ = nullptr;
        others.swap(others_);
    }
    van_.ready_ = false;
    std::string wrong;
    for (const auto &other : others)
        if ((wait_for_others ? paramo_stop(other.second) : paramo_stop_now(other.second)) != PARAMO_OK &&
            wait_for_others)
            wrong = paramo_last_error();
    paramo_err err = wait_for_others ? paramo_stop(left) : paramo_stop_now(left);
    if (err != PARAMO_OK && wait_for_others) /* a node that does not wait may find that the others are gone */
        wrong = paramo_last_error();
    PS_VLOG(1) << van_.my_node_.ShortDebugString() << " is stopped";
    return wrong;
}

inline void Postoffice::AddCustomer(Customer *customer)
{
    paramo_node *joined = nullptr;
    std::unique_lock<std::mutex> lock(mu_);
    const std::pair<int, int> name(internal::NotNull(customer, "customer")->app_id(),
                                   customer->customer_id());
    PS_REQUIRE(customers_.emplace(name, customer).second)
        << "app " << name.first << " has a customer " << name.second << " in this process already";
    added_++;
    if (!closing_)
        joined = node_;
    if (joined != nullptr)
        attaching_++;
    cond_.notify_all();
    if (joined == nullptr)
        return;
    lock.unlock();
    std::exception_ptr failed;
    try {
        customer->Attach(joined, is_worker() != 0);
    } catch (...) {
        failed = std::current_exception();
    }
    lock.lock();
    attaching_--;
    cond_.notify_all();
    if (failed == nullptr)
        return;
    Forget(customer, &lock);
    std::rethrow_exception(failed);
}

/* On return the Postoffice no longer uses the customer. */
inline void Postoffice::Forget(Customer *customer, std::unique_lock<std::mutex> *lock)
{
    const auto it = customers_.find(std::make_pair(customer->app_id(), customer->customer_id()));
    if (it != customers_.end() && it->second == customer)
        customers_.erase(it);
    cond_.wait(*lock, [this, customer] { return pinned_.count(customer) == 0; });
}

inline void Postoffice::RemoveCustomer(Customer *customer)
{
    {
        std::unique_lock<std::mutex> lock(mu_);
        removing_++;
        Forget(customer, &lock);
    }
    customer->Detach();
    TakeUntold(customer);
    std::lock_guard<std::mutex> lock(mu_);
    removing_--;
    cond_.notify_all();
}

inline Customer *Postoffice::GetCustomer(int app_id, int customer_id, int timeout) const
{
    std::unique_lock<std::mutex> lock(mu_);
    Customer *found = nullptr;
    cond_.wait_for(lock, std::chrono::seconds(timeout), [&] {
        auto it = customers_.find(std::make_pair(app_id, customer_id));
        found = it == customers_.end() ? nullptr : it->second;
        return found != nullptr;
    });
    return found;
}

inline const std::vector<int> &Postoffice::GetNodeIDs(int node_id) const
{
    const int workers = num_workers(), servers = num_servers();
    std::lock_guard<std::mutex> lock(mu_);
    if (node_ids_.empty()) {
        for (int g = 1; g <= kScheduler + kServerGroup + kWorkerGroup; g++) {
            std::vector<int> &ids = node_ids_[g];
            for (int i = 0; (g & kWorkerGroup) != 0 && i < workers; i++)
                ids.push_back(WorkerRankToID(i));
            for (int i = 0; (g & kServerGroup) != 0 && i < servers; i++)
                ids.push_back(ServerRankToID(i));
            if ((g & kScheduler) != 0)
                ids.push_back(kScheduler);
        }
        for (int id : std::vector<int>(node_ids_[kServerGroup + kWorkerGroup]))
            node_ids_[id].assign(1, id);
    }
    auto it = node_ids_.find(node_id);
    PS_REQUIRE(it != node_ids_.end()) << "node " << node_id << " doesn't exist";
    return it->second;
}

inline const std::vector<Range> &Postoffice::GetServerKeyRanges()
{
    if (ranges_made_.load(std::memory_order_acquire)) /* on the path of every request */
        return key_ranges_;
    const int servers = num_servers();
    std::lock_guard<std::mutex> lock(mu_);
    if (key_ranges_.empty()) {
        const uint64_t count = static_cast<uint64_t>(std::max(servers, 1)), share = kMaxKey / count;
        for (uint64_t i = 0; i < count; i++)
            key_ranges_.push_back(Range(share * i, i + 1 == count ? kMaxKey : share * (i + 1)));
    }
    ranges_made_.store(node_ != nullptr, std::memory_order_release); /* before Start they may change */
    return key_ranges_;
}

inline void Postoffice::Barrier(int customer_id, int node_group)
{
    if (GetNodeIDs(node_group).size() <= 1)
        return;
    const int mine = is_worker() ? kWorkerGroup : is_server() ? kServerGroup : kScheduler;
    PS_REQUIRE(node_group < 8) << "Barrier: " << node_group << " is a node, not a group";
    PS_REQUIRE((node_group & mine) != 0) << "Barrier: this " << Role() << " is not of group " << node_group;
    const uint32_t group = static_cast<uint32_t>(node_group);

    const std::string wrong = Meet(customer_id, group, false);
    PS_REQUIRE(wrong.empty()) << "Barrier: " << wrong;
}

inline std::vector<int> Postoffice::GetDeadNodes(int)
{
    std::vector<int> dead;
    paramo_node *joined = node();
    if (joined == nullptr)
        return dead;
    std::vector<uint32_t> ids(paramo_dead_nodes(joined, nullptr, 0));
    size_t there = paramo_dead_nodes(joined, ids.data(), ids.size());
    for (size_t i = 0; i < ids.size() && i < there; i++)
        dead.push_back(static_cast<int>(ids[i]));
    return dead;
}
} // namespace ps

#include "ps/internal/customer_impl.h"
#endif
