/*
 * The Postoffice: this process's place in the cluster, once per process. It owns Paramo's node between Start
 * and Finalize, and knows the Customers.
 *
 * Roles and numbers are known before Start, from the environment. DMLC_NUM_WORKER counts worker processes;
 * each may hold several customers, that is threads that call Start(customer_id) ... Finalize(customer_id).
 * Every function may be called from any thread. Failures throw dmlc::Error. Tests: test/ps.
 */
#ifndef PS_INTERNAL_POSTOFFICE_H_
#define PS_INTERNAL_POSTOFFICE_H_

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
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

    /* Never destroyed: threads of customers that nobody finalised may outlive main. */
    static Postoffice *Get()
    {
        static Postoffice *only = new Postoffice();
        return only;
    }

    Van *van()
    {
        return &van_;
    }

    /* Joins the cluster, for the first customer of the process; returns when the cluster is complete. All
     * servers, workers and the scheduler are there then, so do_barrier adds nothing. */
    void Start(int customer_id, const char *argv0, const bool do_barrier);
    /* Ends the customer's part. Customer 0 ends the process's: with do_barrier when all customers of the
     * process and then all nodes have come here; it leaves the cluster and runs the exit callbacks. Then it
     * throws if a request has failed that nobody has waited for. */
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

    /* Waits until every node of the group has come here, this one must be of it. If the process holds several
     * customers, those of a group of workers only meet their own likes; any other barrier takes all of them.
     */
    void Barrier(int customer_id, int node_group);
    void Barrier(int node_group)
    {
        Barrier(0, node_group);
    }

    /* The nodes that have died. Paramo decides that (PS_HEARTBEAT_TIMEOUT, lost connections); t, ps-lite's
     * seconds of silence, is not used. */
    std::vector<int> GetDeadNodes(int t = 60);

    /* ---- for this layer ---- */

    /* Runs f while no customer attaches or detaches. */
    template <typename F> void Steadily(F &&f)
    {
        std::lock_guard<std::mutex> steady(start_mu_);
        f();
    }
    /* A request that only its callback would have told of has failed for good. The program has a few seconds
     * to end. */
    void Doom(const std::string &why)
    {
        if (!doomed_.exchange(true))
            std::thread(EndBy, why).detach();
    }
    size_t CustomersHere() const
    {
        std::lock_guard<std::mutex> lock(mu_);
        return customers_.size();
    }
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
            PS_FAIL() << "DMLC_ROLE is not set: worker, server or scheduler";
        return role;
    }
    int NumberOf(const char *name) const
    {
        const char *text = env_->find(name);
        if (text == nullptr)
            PS_FAIL() << name << " is not set";
        return std::atoi(text);
    }

    void Join();
    std::string Leave(bool wait_for_others);
    static std::chrono::milliseconds RecoveryPatience();
    bool WorkersOnlyDied();
    static void AtExit(int status, void *unused);
    static void EndBy(const std::string &why);
    std::vector<Customer *> Customers() const;
    std::string Meet(int customer_id, uint32_t group, bool until_over);
    void TakeUntold(Customer *customer);
    void FailIfUntold();

    const std::shared_ptr<Environment> env_;
    Van van_;

    std::mutex
        start_mu_; /* held while the process joins or leaves; the Customers attach and detach under it */
    bool joined_before_ = false; /* under start_mu_ */

    mutable std::mutex mu_; /* guards what follows; taken after start_mu_ */
    mutable std::condition_variable cond_;
    paramo_node *node_ = nullptr;
    std::map<std::pair<int, int>, Customer *> customers_;
    std::set<int> started_,
        finished_;         /* customers between Start and Finalize; those that have called Finalize */
    int arriving_ = 0;     /* customers inside Start */
    bool joining_ = false; /* one of them makes the process join, or is about to */
    std::vector<Callback> exit_callbacks_;
    mutable std::unordered_map<int, std::vector<int>> node_ids_;
    std::vector<Range> key_ranges_;
    std::atomic<bool> doomed_{false};
    std::atomic<bool> ranges_made_{false}; /* key_ranges_ stays as it is until the next Start */
    struct Gathering {
        int inside = 0;
        uint64_t round = 0;
        std::string error; /* of the round before */
    };
    size_t untold_ = 0; /* failed requests of customers that are gone, for which nobody has waited */
    std::string first_untold_;
    std::map<uint32_t, Gathering> gatherings_; /* by group: customers of this process at a barrier */
};

inline void Postoffice::Start(int customer_id, const char *, const bool)
{
    const auto patience = std::chrono::seconds(10); /* arbitrary; then it says what may be wrong */
    {
        std::unique_lock<std::mutex> lock(mu_);
        arriving_++; /* seen by Finalize even while this thread waits for its turn */
        if (joining_ && !cond_.wait_for(lock, patience, [this] { return !joining_; }))
            LOG(WARNING) << "customer " << customer_id << " still waits for the cluster to be complete; "
                         << "DMLC_NUM_WORKER counts worker processes, not their customers";
        joining_ = node_ == nullptr;
    }
    std::string error;
    {
        std::lock_guard<std::mutex> starting(start_mu_);
        try {
            if (node() == nullptr)
                Join();
        } catch (const dmlc::Error &e) {
            error = e.what();
        }
    }
    std::lock_guard<std::mutex> lock(mu_);
    arriving_--;
    joining_ = false;
    if (error.empty())
        started_.insert(customer_id);
    cond_.notify_all();
    if (!error.empty())
        throw dmlc::Error(error);
}

/* Under start_mu_. */
inline void Postoffice::Join()
{
    for (const auto &variable : env_->given())
        setenv(variable.first.c_str(), variable.second.c_str(), 1);
    bool worker = is_worker() != 0, server = is_server() != 0;
    PS_REQUIRE(worker || server || is_scheduler())
        << "DMLC_ROLE=" << Role() << ": not worker, server or scheduler";

    paramo_config config;
    paramo_config_init(&config);
    config.connect_timeout_ms = CLUSTER_MS;
    config.request_timeout_ms = FOREVER_MS;
    internal::Check(paramo_config_from_env(&config), "ps::Start");
    internal::NotNull(config.scheduler, "config.scheduler");
    paramo_node *joined = nullptr;
    paramo_err err;
    const auto deadline =
        std::chrono::steady_clock::now() + std::chrono::milliseconds(config.connect_timeout_ms);
    /* The cluster of the round before may not have ended everywhere: that one does not take us, the next one
     * will. */
    while ((err = paramo_start(&config, &joined)) == PARAMO_E_SHUTDOWN ||
           (err == PARAMO_E_FULL && joined_before_)) {
        if (std::chrono::steady_clock::now() >= deadline)
            break;
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    internal::Check(err, "ps::Start");
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
        started_.clear();
        finished_.clear();
        node_ids_.clear();
        ranges_made_ = false;
        key_ranges_.clear();
    }
    for (Customer *customer : Customers())
        customer->Attach(joined, worker);
    PS_VLOG(1) << me.ShortDebugString() << " has joined: " << me.DebugString();
}

/* A process that ends without ps::Finalize is a death like any other: it does not end with 0. */
inline void Postoffice::AtExit(int status, void *)
{
    Postoffice *office = Get();
    if (status != 0 || office->node() == nullptr)
        return;
    LOG(ERROR) << "node " << office->van()->my_node().ShortDebugString()
               << " ends without ps::Finalize: the job goes on without it, as if it had died";
    std::fflush(nullptr);
    _exit(1);
}

inline void Postoffice::EndBy(const std::string &why)
{
    std::this_thread::sleep_for(std::chrono::seconds(5)); /* arbitrary */
    LOG(ERROR) << "node " << Get()->van_.my_node_.ShortDebugString()
               << " cannot go on, for what it waits for will not come: " << why;
    std::fflush(nullptr);
    _exit(1);
}

inline void Postoffice::Finalize(const int customer_id, const bool do_barrier)
{
    {
        std::unique_lock<std::mutex> lock(mu_);
        if (node_ == nullptr)
            return;
        finished_.insert(customer_id);
        cond_.notify_all();
        bool last = customer_id == 0 || (started_.count(0) == 0 && finished_.size() >= started_.size());
        if (!last)
            return;
        /* The other customers of the process are still at work. */
        if (do_barrier)
            cond_.wait(lock, [this] {
                return arriving_ == 0 &&
                       std::includes(finished_.begin(), finished_.end(), started_.begin(), started_.end());
            });
    }
    const std::string wrong = Leave(do_barrier);
    std::vector<Callback> callbacks;
    {
        std::lock_guard<std::mutex> lock(mu_);
        callbacks.swap(exit_callbacks_);
    }
    for (const Callback &callback : callbacks)
        callback();
    if (!wrong.empty())
        internal::Fail("ps::Finalize: the job has not ended well: " + wrong);
    FailIfUntold();
}

/* What customers have asked for in vain without anybody having waited for it ends with the process's part. */
inline void Postoffice::FailIfUntold()
{
    for (Customer *customer : Customers())
        TakeUntold(customer);
    size_t count = 0;
    std::string first;
    {
        std::lock_guard<std::mutex> lock(mu_);
        std::swap(count, untold_);
        first.swap(first_untold_);
    }
    if (count > 0)
        internal::Fail("ps::Finalize: " + std::to_string(count) +
                       (count == 1 ? " request has failed, and nobody has waited for it: "
                                   : " requests have failed, and nobody has waited for them; the first: ") +
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

inline std::vector<Customer *> Postoffice::Customers() const
{
    std::lock_guard<std::mutex> lock(mu_);
    std::vector<Customer *> all;
    for (const auto &entry : customers_)
        all.push_back(entry.second);
    return all;
}

/* How long those that have come to a barrier wait for a dead worker's replacement. ps-lite knows replacements
 * with heartbeats only, and then waits for ever. */
inline std::chrono::milliseconds Postoffice::RecoveryPatience()
{
    const int heartbeat = GetEnv("PS_HEARTBEAT_TIMEOUT", 0);
    const int ms = heartbeat > 0 ? std::max(10000, 2000 * heartbeat) : 0;
    return std::chrono::milliseconds(GetEnv("PARAMO_PS_RECOVERY_MS", ms));
}

/* Only workers have died: others may take their places. */
inline bool Postoffice::WorkersOnlyDied()
{
    const std::vector<int> dead = GetDeadNodes();
    return std::all_of(dead.begin(), dead.end(), [](int id) { return id > kScheduler && id % 2 == 1; });
}

/* One barrier of the cluster, which dead workers hold up: whoever comes in their places enters it, too.
 * `until_over`: a server or scheduler at the end stays for the workers that are left. Returns what is wrong,
 * or nothing. */
inline std::string Postoffice::Meet(int customer_id, uint32_t group, bool until_over)
{
    paramo_node *joined = node();
    PS_REQUIRE(joined != nullptr) << "Barrier: call ps::Start first";
    auto deadline = std::chrono::steady_clock::time_point::max(), stale = deadline;
    std::string first; /* who was missed first */
    for (;;) {
        const paramo_err err = paramo_barrier(joined, group, static_cast<uint32_t>(customer_id), FOREVER_MS);
        if (err == PARAMO_OK)
            return std::string();
        const std::string why = paramo_last_error();
        if (first.empty())
            first = why;
        if (err != PARAMO_E_BARRIER || !WorkersOnlyDied())
            return err == PARAMO_E_BARRIER ? why : first;
        const auto now = std::chrono::steady_clock::now();
        if (deadline == std::chrono::steady_clock::time_point::max()) {
            deadline = stale = now + RecoveryPatience();
            if (deadline > now)
                LOG(WARNING) << "the barrier waits for a replacement: " << why;
        }
        if (!until_over && now >= deadline)
            return why;
        if (until_over &&
            now >= stale) { /* the program's handle may hold others' requests until the dead one's come */
            for (Customer *customer : Customers())
                customer->RefuseStale(why);
            stale = now + std::chrono::seconds(10); /* arbitrary: longer than a handle takes for its answer */
        }
        std::this_thread::sleep_for(
            std::chrono::milliseconds(10)); /* the barrier is refused as long as it is broken */
    }
}

/* Returns what is wrong with the job, or nothing. */
inline std::string Postoffice::Leave(bool wait_for_others)
{
    paramo_node *left = node();
    std::string wrong;
    if (wait_for_others) {
        {
            std::lock_guard<std::mutex> steady(start_mu_);
            for (Customer *customer : Customers())
                customer->Finish();
        }
        /* Meanwhile this node serves the others. */
        wrong = Meet(0, PARAMO_GROUP_ALL, !is_worker());
    }
    std::lock_guard<std::mutex> leaving(start_mu_);
    for (Customer *customer : Customers())
        customer->Detach();
    {
        std::lock_guard<std::mutex> lock(mu_);
        node_ = nullptr;
    }
    van_.ready_ = false;
    paramo_err err = wait_for_others ? paramo_stop(left) : paramo_stop_now(left);
    if (err != PARAMO_OK && wait_for_others &&
        wrong.empty()) /* who does not wait may find that the others are gone */
        wrong = paramo_last_error();
    PS_VLOG(1) << van_.my_node_.ShortDebugString() << " is stopped";
    return wrong;
}

inline void Postoffice::AddCustomer(Customer *customer)
{
    std::lock_guard<std::mutex> starting(start_mu_);
    paramo_node *joined = nullptr;
    {
        std::lock_guard<std::mutex> lock(mu_);
        std::pair<int, int> name(internal::NotNull(customer, "customer")->app_id(), customer->customer_id());
        PS_REQUIRE(customers_.emplace(name, customer).second)
            << "app " << name.first << " has a customer " << name.second << " in this process already";
        joined = node_;
        cond_.notify_all();
    }
    if (joined == nullptr)
        return;
    for (Customer *other : Customers())
        other->LeaveDirect();
    try {
        customer->Attach(joined, is_worker() != 0);
    } catch (...) {
        std::lock_guard<std::mutex> lock(mu_);
        customers_.erase(std::make_pair(customer->app_id(), customer->customer_id()));
        throw;
    }
}

inline void Postoffice::RemoveCustomer(Customer *customer)
{
    std::lock_guard<std::mutex> starting(start_mu_);
    {
        std::lock_guard<std::mutex> lock(mu_);
        auto it = customers_.find(std::make_pair(customer->app_id(), customer->customer_id()));
        if (it != customers_.end() && it->second == customer)
            customers_.erase(it);
    }
    customer->Detach();
    TakeUntold(customer);
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

    std::unique_lock<std::mutex> lock(mu_);
    if (node_group == kWorkerGroup || started_.size() <= 1) {
        lock.unlock();
        const std::string wrong = Meet(node_group == kWorkerGroup ? customer_id : 0, group, false);
        PS_REQUIRE(wrong.empty()) << "Barrier: " << wrong;
        return;
    }
    /* The others enter once per process: the last of our customers does so for all. */
    Gathering &here = gatherings_[group];
    const uint64_t round = here.round;
    if (++here.inside < static_cast<int>(started_.size())) {
        cond_.wait(lock, [&here, round] { return here.round != round; });
        if (!here.error.empty())
            PS_FAIL() << here.error;
        return;
    }
    lock.unlock();
    const std::string error = Meet(0, group, false);
    lock.lock();
    here.inside = 0;
    here.error = error;
    here.round++;
    cond_.notify_all();
    if (!error.empty())
        PS_FAIL() << error;
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
