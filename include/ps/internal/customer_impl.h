/*
 * The functions of Customer and Van: asking through paramo_app_request, being asked through paramo_app_take or a
 * handler. Included by postoffice.h, when all three classes are declared. Tests: test/ps.
 */
#ifndef PS_INTERNAL_CUSTOMER_IMPL_H_
#define PS_INTERNAL_CUSTOMER_IMPL_H_

#include <algorithm>
#include <exception>

#include "ps/internal/postoffice.h"

namespace ps
{
inline Customer::Customer(int app_id, int customer_id, const RecvHandle &recv_handle)
    : app_id_(app_id), customer_id_(customer_id), recv_handle_(recv_handle)
{
    PS_REQUIRE(recv_handle_) << "a customer needs a handle";
    Postoffice::Get()->AddCustomer(this);
}

inline Customer::Customer(int app_id, int customer_id, internal::Serving serving)
    : app_id_(app_id), customer_id_(customer_id), serving_(std::move(serving))
{
    Postoffice::Get()->AddCustomer(this);
}

inline Customer::~Customer()
{
    if (calling() == this) { /* it would wait for that callback */
        LOG(ERROR) << "app " << app_id_ << ", customer " << customer_id_
                   << " is deleted in a callback of its own";
        std::abort();
    }
    if (Forked()) {
        if (taker_.joinable())
            taker_.detach();
        return;
    }
    Finish();
    Postoffice::Get()->RemoveCustomer(this);
}

/* True in a child of the process that has attached it: the threads that it would wait for do not exist here. */
inline bool Customer::Forked()
{
    return process_ != 0 && process_ != getpid();
}

/* ---- life ---- */

/* In ps-lite a worker looks for the customer that a message names, all others for the one whose number is the
 * app's. So a KVWorker in a server process gets no requests unless its number is the
 * app's. */
inline void Customer::Attach(paramo_node *node, bool is_worker)
{
    std::lock_guard<std::mutex> lock(serve_mu_);
    if (node_ != nullptr)
        return;
    closed_ = false;
    const uint32_t app = static_cast<uint32_t>(app_id_), customer = static_cast<uint32_t>(customer_id_);
    internal::Outside(node, [&] {
        serve_as_ = is_worker ? customer : static_cast<uint32_t>(PARAMO_ANY);
        asks_only_ = !is_worker && customer_id_ != app_id_;
        paramo_worker *opened = nullptr;
        internal::Check(paramo_customer_open(node, app, customer, &opened), "ps::Customer");
        node_ = node;
        process_ = getpid();
        last_ts_ = 1; /* the first one's */
        ForgetFailures();
        worker_.store(opened, std::memory_order_release);
        if (!serving_.late || open_)
            Serve();
    });
}

inline void Customer::Serve()
{
    if (asks_only_)
        return;
    paramo_handler handler = serving_.on == internal::Serving::DIRECT ? OnRequest : nullptr;
    internal::Check(paramo_app_serve(node_, static_cast<uint32_t>(app_id_), serve_as_, handler, this),
                    "ps::Customer");
    served_ = true;
    if (handler == nullptr)
        taker_ = std::thread([this] { TakeLoop(node_, serve_as_); });
}

inline void Customer::Open()
{
    if (!serving_.late)
        return;
    std::lock_guard<std::mutex> lock(serve_mu_);
    open_ = true;
    if (node_ != nullptr && !served_ && !closed_)
        internal::Outside(node_, [this] { Serve(); });
}

inline void Customer::RunOnStrand(std::function<void()> f)
{
    strand_.Offer(std::move(f));
}

inline void Customer::Finish()
{
    paramo_worker *w = worker_.load(std::memory_order_acquire);
    if (w == nullptr || calling() == this) /* Detach says what is left */
        return;
    internal::Outside(Postoffice::Get()->node(), [this, w] {
        while (paramo_wait_all(w, 0) == PARAMO_OK && put_off_open_.load(std::memory_order_acquire) > 0) {
        }
    });
    strand_.Settle();
}

inline void Customer::Close()
{
    paramo_node *node = nullptr;
    bool served = false;
    {
        std::lock_guard<std::mutex> lock(serve_mu_);
        node = node_;
        std::swap(served, served_);
        closed_ = true;
    }
    if (!served)
        return;
    if (taker_.get_id() == std::this_thread::get_id()) {
        LOG(ERROR) << "app " << app_id_ << " is deleted, or the process finalised, in a handle of its own";
        std::abort();
    }
    internal::Outside(node, [&] {
        (void)!paramo_app_close(node, static_cast<uint32_t>(app_id_), serve_as_);
        if (taker_.joinable())
            taker_.join();
    });
    std::unordered_map<internal::Asked, internal::Claimed, internal::AskedHash> held;
    {
        std::lock_guard<std::mutex> lock(mu_);
        held.swap(held_);
    }
    for (const auto &entry : held)
        (void)!paramo_answer_error(entry.second.request, PARAMO_E_CLOSED, "the app has been closed");
}

inline void Customer::Detach()
{
    Close();
    paramo_node *node = nullptr;
    {
        std::lock_guard<std::mutex> lock(serve_mu_);
        std::swap(node, node_);
    }
    if (node == nullptr)
        return;
    internal::Outside(node, [&] { paramo_worker_close(worker_.exchange(nullptr)); });
    strand_.Settle();
    std::lock_guard<std::mutex> lock(mu_);
    for (const Later &later : put_off_)
        own_[later.timestamp].received = 1;
    dropped_ += put_off_.size();
    put_off_.clear();
    put_off_waiting_ = put_off_open_ = 0;
    cond_.notify_all();
    if (dropped_ > 0)
        LOG(WARNING)
            << "app " << app_id_ << ", customer " << customer_id_ << ": " << dropped_
            << " requests had not ended when it was closed; what they sent may not have been delivered";
    dropped_ = 0;
}

/* ---- being asked ---- */

inline void Customer::TakeLoop(paramo_node *node, uint32_t serve_as)
{
    paramo_request *request = nullptr;
    const paramo_request_info *info = nullptr;
    paramo_err err;
    while ((err = paramo_app_take(node, static_cast<uint32_t>(app_id_), serve_as, 0, &request, &info)) ==
           PARAMO_OK)
        Handle(request, info);
    if (err != PARAMO_E_CLOSED && err != PARAMO_E_SHUTDOWN)
        LOG(ERROR) << "app " << app_id_ << " takes no more requests: " << paramo_last_error();
}

inline void Customer::OnRequest(void *arg, paramo_request *request, const paramo_request_info *info) noexcept
{
    static_cast<Customer *>(arg)->Handle(request, info);
}

/* Makes the request's arrays outlive its answer: programs keep what a handle is given. */
inline bool Customer::Keep(paramo_request *request, const paramo_request_info *info, internal::Incoming *in)
{
    size_t total = 0;
    for (unsigned i = 0; i < PARAMO_SEG_BODY; i++)
        total += (info->seg[i].len + 7) / 8 * 8;
    if (total <= internal::KeptBlock::SOME) {
        char *to = nullptr;
        if (total <= internal::KeptCopy::FEW) {
            auto copy = std::make_shared<internal::KeptCopy>();
            to = reinterpret_cast<char *>(copy->bytes);
            in->kept = std::move(copy);
        } else {
            in->kept = internal::KeptBlock::Make();
            to = static_cast<char *>(in->kept.get());
        }
        for (unsigned i = 0; i < PARAMO_SEG_BODY; i++) {
            in->seg[i].data = to;
            in->seg[i].len = info->seg[i].len;
            if (info->seg[i].len != 0)
                std::memcpy(to, info->seg[i].data, info->seg[i].len);
            to += (info->seg[i].len + 7) / 8 * 8;
        }
        return true;
    }
    auto kept = std::make_shared<internal::Kept>();
    for (unsigned i = 0; i < PARAMO_SEG_BODY; i++) {
        in->seg[i] = info->seg[i];
        if (info->seg[i].len == 0)
            continue;
        if (paramo_request_keep(request, i, &kept->seg[i]) != PARAMO_OK)
            return false;
        in->seg[i].data = paramo_array_data(kept->seg[i]);
    }
    in->kept = std::move(kept);
    return true;
}

inline void Customer::Handle(paramo_request *request, const paramo_request_info *info)
{
    internal::Incoming in;
    in.asked.sender = static_cast<int>(info->sender);
    in.asked.customer = static_cast<int>(info->customer);
    in.asked.timestamp = internal::FoldTime(info->ts);
    in.info = info;
    if (!Keep(request, info, &in)) {
        std::string why = paramo_last_error();
        (void)!paramo_answer_error(request, PARAMO_E_MEMORY, why.c_str());
        return;
    }
    strand_.Run([&] {
        in_hand_.Set(in.asked, {request, info});
        const std::string why = internal::Caught([&] {
            if (serving_.request)
                serving_.request(in);
            else
                recv_handle_(MessageOf(in));
        });
        if (!why.empty())
            Refuse(in.asked, why);
        if (in_hand_.unclaimed())
            Hold(in.asked);
    });
}

/* The request is answered later, unless it was answered just now. */
inline void Customer::Hold(const internal::Asked &asked)
{
    internal::Claimed before = {nullptr, nullptr};
    {
        std::lock_guard<std::mutex> lock(mu_); /* Claim finds it in hand or among these */
        const internal::Claimed claimed = in_hand_.End();
        if (claimed.request == nullptr)
            return;
        auto placed = held_.emplace(asked, claimed);
        if (!placed.second) {
            before = placed.first->second;
            placed.first->second = claimed;
        }
    }
    if (before.request != nullptr) /* of an earlier node with the same id */
        (void)!paramo_answer_error(before.request, PARAMO_E_CLOSED, "the asker has restarted");
}

inline internal::Claimed Customer::Claim(const internal::Asked &asked)
{
    internal::Claimed claimed = in_hand_.Claim(asked);
    if (claimed.request != nullptr)
        return claimed;
    std::lock_guard<std::mutex> lock(mu_);
    auto it = held_.find(asked);
    if (it == held_.end())
        return claimed;
    claimed = it->second;
    held_.erase(it);
    return claimed;
}

inline void Customer::Refuse(const internal::Asked &asked, const std::string &why)
{
    LOG(ERROR) << "app " << app_id_ << ": request " << asked.timestamp << " of node " << asked.sender
               << " is refused: " << why;
    const internal::Claimed claimed = Claim(asked);
    if (claimed.request != nullptr)
        (void)!paramo_answer_error(claimed.request, PARAMO_E_HANDLER, why.c_str());
}

inline void Customer::RefuseStale(const std::string &why)
{
    std::vector<internal::Claimed> refused;
    {
        std::lock_guard<std::mutex> lock(mu_);
        std::unordered_set<internal::Asked, internal::AskedHash> left;
        for (auto it = held_.begin(); it != held_.end();) {
            if (stale_.count(it->first) == 0) {
                left.insert(it->first);
                ++it;
                continue;
            }
            refused.push_back(it->second);
            it = held_.erase(it);
        }
        stale_.swap(left);
    }
    if (!refused.empty())
        LOG(ERROR) << "app " << app_id_ << ": " << refused.size()
                   << " requests have waited for their answer too long: " << why;
    for (const internal::Claimed &claimed : refused)
        (void)!paramo_answer_error(claimed.request, PARAMO_E_NODE_LOST, why.c_str());
}

inline Message Customer::MessageOf(const internal::Incoming &in)
{
    Message msg;
    msg.meta.app_id = static_cast<int>(in.info->app);
    msg.meta.customer_id = in.asked.customer;
    msg.meta.sender = in.asked.sender;
    msg.meta.recver = static_cast<int>(in.info->to);
    msg.meta.timestamp = in.asked.timestamp;
    msg.meta.head = in.info->cmd;
    msg.meta.request = true;
    msg.meta.body = in.body();
    msg.meta.push = (in.flags() & internal::FLAG_PUSH) != 0;
    msg.meta.pull = (in.flags() & internal::FLAG_PULL) != 0;
    msg.meta.simple_app = (in.flags() & internal::FLAG_SIMPLE) != 0;
    for (int i = 0; i < PARAMO_SEG_BODY; i++) {
        uint32_t type = in.flags() >> (internal::TYPES_SHIFT + internal::TYPES_BITS * i) & 15u;
        if (type == 0)
            break;
        msg.data.push_back(in.array<char>(i, "a message"));
        msg.meta.data_type.push_back(static_cast<DataType>(type - 1));
        msg.meta.data_size += static_cast<int>(msg.data.back().size());
    }
    return msg;
}

/* ---- asking ---- */

inline int Customer::Ask(const paramo_message *messages, size_t count, paramo_reply_fn on_reply, void *arg,
                         int priority, paramo_callback done, uint32_t flags)
{
    int timestamp = 0;
    internal::Check(TryAsk(messages, count, on_reply, arg, priority, done, flags, &timestamp), "a request");
    return timestamp;
}

inline paramo_err Customer::TryAsk(const paramo_message *messages, size_t count, paramo_reply_fn on_reply,
                                   void *arg, int priority, paramo_callback done, uint32_t flags,
                                   int *timestamp)
{
    paramo_request_options options;
    paramo_request_options_init(&options);
    options.flags = flags;
    options.priority = priority;
    options.callback = done;
    options.callback_arg = arg;
    uint64_t ts = 0;
    const paramo_err err = paramo_app_request(worker(), messages, count, on_reply, arg, &options, &ts);
    if (err == PARAMO_OK) {
        last_ts_.store(ts, std::memory_order_relaxed);
        *timestamp = Shown(ts);
    }
    return err;
}

inline int Customer::PutOff(std::function<bool(int)> issue)
{
    const int timestamp = NewOwn(1);
    {
        std::lock_guard<std::mutex> lock(mu_);
        put_off_.push_back({timestamp, std::move(issue)});
        put_off_waiting_++;
        put_off_open_++;
    }
    IssuePutOff(); /* all that were in flight may have ended since */
    return timestamp;
}

inline void Customer::IssuePutOff()
{
    if (put_off_waiting_.load(std::memory_order_acquire) == 0)
        return;
    std::unique_lock<std::mutex> lock(mu_);
    issue_again_ = true;
    if (issuing_)
        return;
    issuing_ = true;
    while (issue_again_ && !put_off_.empty() && worker_.load(std::memory_order_acquire) != nullptr) {
        Later later = std::move(put_off_.front());
        put_off_.pop_front();
        issue_again_ = false;
        lock.unlock();
        const bool issued = later.issue(later.timestamp);
        lock.lock();
        if (issued) {
            put_off_waiting_--;
            issue_again_ = true;
        } else {
            put_off_.push_front(std::move(later));
        }
    }
    issuing_ = false;
}

inline void Customer::EndPutOff(int timestamp)
{
    CountOwn(timestamp, 1);
    put_off_open_--;
    std::lock_guard<std::mutex> lock(mu_);
    if (((next_own_ - timestamp) & internal::TIME_MASK) > OWN_REMEMBERED) /* NewOwn has passed it */
        own_.erase(timestamp);
}

/* The request that shows this timestamp, nearest to a recent one of any thread. */
inline uint64_t Customer::UnfoldTime(int timestamp) const
{
    const uint64_t period = static_cast<uint64_t>(internal::TIME_MASK) + 1;
    const uint64_t last = last_ts_.load(std::memory_order_relaxed) - 1; /* from 0, as they are shown */
    const uint64_t ts = (last & ~(period - 1)) | static_cast<uint64_t>(timestamp & internal::TIME_MASK);
    if (ts > last + period / 2 && ts >= period)
        return ts - period + 1;
    return (ts + period / 2 < last ? ts + period : ts) + 1;
}

/* Why a request has failed, which the caller reports; empty: it has not failed. */
inline std::string Customer::Told(int timestamp)
{
    std::string why;
    if (!any_failed_.load(std::memory_order_acquire))
        return why;
    const uint64_t name = NameOf(timestamp);
    std::lock_guard<std::mutex> lock(mu_);
    const auto failed = failed_.find(name);
    if (failed == failed_.end())
        return why;
    untold_ -= failed->second.told->exchange(true) ? 0 : 1;
    return failed->second.why;
}

/* Failures of the round before: its timestamps come again. */
inline void Customer::ForgetFailures()
{
    std::lock_guard<std::mutex> lock(mu_);
    failed_.clear();
    failed_order_.clear();
}

inline void Customer::WaitRequest(int timestamp)
{
    PS_REQUIRE(timestamp >= 0) << "no request has timestamp " << timestamp;
    std::string error; /* also of a wait where none is possible: in a callback, or a KVServer's handle */
    if (!IsOwn(timestamp)) {
        const auto wait = [&] {
            const paramo_err err = paramo_wait(worker(), UnfoldTime(timestamp), 0);
            if (err == PARAMO_E_INVALID)
                error = "there is no such request";
            else if (err != PARAMO_OK)
                error = paramo_last_error();
        };
        if (calling() != nullptr && calling() != this)
            internal::Outside(Postoffice::Get()->node(), wait);
        else
            wait();
        strand_.Settle();
    } else {
        PS_REQUIRE(calling() != this) << "a callback cannot wait for a request of its own customer";
        std::unique_lock<std::mutex> lock(mu_);
        PS_REQUIRE(own_.count(timestamp) != 0 || (timestamp & internal::TIME_MASK) < next_own_)
            << "no request has timestamp " << timestamp;
        cond_.wait(lock, [this, timestamp] {
            auto it = own_.find(timestamp);
            return it == own_.end() || it->second.received >= it->second.expected;
        });
    }
    const std::string told = Told(timestamp);
    if (error.empty() && told.empty())
        return;
    const std::string text = "app " + std::to_string(app_id_) + ", customer " + std::to_string(customer_id_) +
                             ": request " + std::to_string(timestamp) +
                             " failed: " + (error.empty() ? told : error);
    if (told.empty())
        internal::Fail(text);
    internal::Throw(text); /* Failed has logged it */
}

inline int Customer::NumResponse(int timestamp)
{
    if (!IsOwn(timestamp)) {
        {
            std::lock_guard<std::mutex> lock(mu_);
            auto it = handled_.find(timestamp);
            if (it != handled_.end())
                return it->second;
        }
        uint32_t count = 0;
        internal::Check(paramo_answers(worker(), UnfoldTime(timestamp), &count), "NumResponse");
        return static_cast<int>(count);
    }
    std::lock_guard<std::mutex> lock(mu_);
    auto it = own_.find(timestamp);
    return it == own_.end() ? 0 : it->second.received;
}

inline void Customer::HandleResponse(int timestamp, std::function<void()> handle)
{
    const size_t remembered = 1024; /* arbitrary: requests whose end may still be asked for */
    {
        std::lock_guard<std::mutex> lock(mu_);
        if (handled_.emplace(timestamp, 0).second)
            handled_order_.push_back(timestamp);
        if (handled_order_.size() > remembered) {
            handled_.erase(handled_order_.front());
            handled_order_.pop_front();
        }
    }
    strand_.Offer([this, timestamp, handle] {
        std::string why;
        InCallback([&] { why = internal::Caught(handle); });
        if (!why.empty())
            Failed(timestamp, "its response handle has thrown: " + why);
        std::lock_guard<std::mutex> lock(mu_);
        auto it = handled_.find(timestamp);
        if (it != handled_.end())
            it->second++;
    });
}

inline void Customer::Failed(int timestamp, const std::string &why, bool by_callback)
{
    const size_t remembered = 65536; /* arbitrary: programs may issue many requests before they wait */
    const uint64_t name = NameOf(timestamp);
    const std::string text =
        "app " + std::to_string(app_id_) + ", request " + std::to_string(timestamp) + ": " + why;
    auto told = std::make_shared<std::atomic<bool>>(false);
    LOG(ERROR) << "app " << app_id_ << ", customer " << customer_id_ << ": request " << timestamp
               << " failed: " << why;
    {
        std::lock_guard<std::mutex> lock(mu_);
        const auto placed = failed_.emplace(name, Failure{told, why});
        if (!placed.second) { /* two nodes' answers to one request, and the handle has thrown at both */
            told = placed.first->second.told;
        } else {
            if (untold_++ == 0)
                first_untold_ = text;
            failed_order_.push_back(name);
        }
        if (failed_order_.size() > remembered) {
            failed_.erase(failed_order_.front());
            failed_order_.pop_front();
        }
        any_failed_.store(true, std::memory_order_release);
    }
    if (by_callback)
        Postoffice::Get()->Doom(customer_id_, told, text);
}

inline void Customer::Ended(int timestamp, paramo_err status, bool by_callback, const std::string &from)
{
    if (status == PARAMO_OK)
        return;
    const std::string why = from + paramo_last_error();
    std::string lost;
    if (status != PARAMO_E_CLOSED) {
        Failed(timestamp, why, by_callback);
    } else if (worker_.load(std::memory_order_acquire) == nullptr) { /* Detach ends what is in flight */
        std::lock_guard<std::mutex> lock(mu_);
        dropped_++;
    } else if (!Postoffice::JobLost(Postoffice::Get()->node(), &lost)) { /* a server closed its app */
        Failed(timestamp, why, by_callback);
    } else if (by_callback) {
        Failed(timestamp, lost, by_callback);
    } else { /* GiveUp ended it, or a wait, which throws */
        std::lock_guard<std::mutex> lock(mu_);
        dropped_++;
    }
}

inline void Customer::GiveUp()
{
    paramo_worker *w = worker_.load(std::memory_order_acquire);
    if (w != nullptr)
        (void)!paramo_wait_all(w, 1); /* cut short by the end of the node, which ends the requests */
}

inline size_t Customer::TakeUntold(std::string *first)
{
    std::lock_guard<std::mutex> lock(mu_);
    const size_t count = untold_;
    if (count > 0)
        *first = first_untold_;
    for (const auto &failed : failed_)
        *failed.second.told = true;
    untold_ = 0;
    return count;
}

/* ---- messages of the program's own ---- */

inline int Customer::NewRequest(int recver)
{
    return NewOwn(static_cast<int>(Postoffice::Get()->GetNodeIDs(recver).size()));
}

inline int Customer::NewOwn(int expected)
{
    std::lock_guard<std::mutex> lock(mu_);
    const int base = recv_handle_ ? 0 : static_cast<int>(internal::TIME_OWN); /* see Shown */
    int timestamp = base + next_own_;
    next_own_ = (next_own_ + 1) & internal::TIME_MASK;
    Own &own = own_[timestamp];
    own.expected = expected;
    own.received = 0;
    auto old = own_.find(base + ((timestamp - OWN_REMEMBERED) & internal::TIME_MASK));
    if (old != own_.end() && old->second.received >= old->second.expected)
        own_.erase(old);
    return timestamp;
}

inline void Customer::CountOwn(int timestamp, int num)
{
    std::lock_guard<std::mutex> lock(mu_);
    auto it = own_.find(timestamp);
    if (it == own_.end())
        return;
    it->second.received += num;
    cond_.notify_all();
}

inline void Customer::AddResponse(int timestamp, int num)
{
    CountOwn(timestamp, num);
}

inline void Customer::Accept(const Message &recved)
{
    PS_REQUIRE(recv_handle_) << "this customer takes no messages of a program's own";
    strand_.Offer([this, recved] {
        const std::string why = internal::Caught([&] { recv_handle_(recved); });
        if (!why.empty())
            LOG(ERROR) << "app " << app_id_ << ": the handle has thrown: " << why;
    });
}

inline void Customer::OwnReply(void *arg, uint64_t, const paramo_reply *reply) noexcept
{
    const OwnCall *call = static_cast<const OwnCall *>(arg);
    Message msg;
    msg.meta = call->message.meta;
    msg.meta.request = false;
    msg.meta.sender = static_cast<int>(reply->node);
    msg.meta.recver = Postoffice::Get()->van()->my_node().id;
    msg.meta.data_type.clear();
    msg.meta.data_size = 0;
    const paramo_bytes &body = reply->seg[PARAMO_SEG_BODY];
    msg.meta.body.assign(static_cast<const char *>(body.len ? body.data : ""), body.len);
    std::shared_ptr<internal::Kept> kept = std::make_shared<internal::Kept>();
    int arrays = 0; /* up to the last that is not empty */
    for (int i = 0; i < PARAMO_SEG_BODY; i++)
        arrays = reply->seg[i].len != 0 ? i + 1 : arrays;
    for (int i = 0; i < arrays; i++) {
        if (reply->seg[i].len != 0)
            internal::Check(paramo_reply_keep(reply, static_cast<unsigned>(i), &kept->seg[i]), "a response");
        paramo_bytes bytes = {paramo_array_data(kept->seg[i]), reply->seg[i].len};
        msg.data.push_back(internal::ShareBytes<char>(kept, bytes, "a response"));
        msg.meta.data_type.push_back(OTHER);
        msg.meta.data_size += static_cast<int>(bytes.len);
    }
    Customer *customer = call->customer;
    customer->strand_.Offer([customer, msg] {
        const std::string why = internal::Caught([&] { customer->recv_handle_(msg); });
        if (!why.empty())
            customer->Failed(msg.meta.timestamp, "the handle of its response has thrown: " + why);
        customer->CountOwn(msg.meta.timestamp, 1);
    });
}

inline void Customer::OwnDone(void *arg, uint64_t, paramo_err status) noexcept
{
    std::unique_ptr<OwnCall> call(static_cast<OwnCall *>(arg));
    if (status == PARAMO_OK)
        return;
    call->customer->Ended(call->timestamp, status, false,
                          "node " + std::to_string(call->message.meta.recver) + ": ");
    call->customer->CountOwn(call->timestamp, 1);
}

inline void Customer::SendOwn(const Message &msg)
{
    PS_REQUIRE(msg.data.size() <= static_cast<size_t>(PARAMO_SEG_BODY)) << "a message has at most 3 arrays";
    std::unique_ptr<OwnCall> call(new OwnCall{this, msg.meta.timestamp, msg});
    paramo_message m;
    paramo_message_init(&m, static_cast<uint32_t>(msg.meta.recver));
    m.head = msg.meta.head;
    m.flags = (msg.meta.push ? internal::FLAG_PUSH : 0u) | (msg.meta.pull ? internal::FLAG_PULL : 0u) |
              (msg.meta.simple_app ? internal::FLAG_SIMPLE : 0u);
    for (size_t i = 0; i < msg.data.size(); i++) {
        DataType type = i < msg.meta.data_type.size() ? msg.meta.data_type[i] : OTHER;
        m.flags |= (static_cast<uint32_t>(type) + 1u) << (internal::TYPES_SHIFT + internal::TYPES_BITS * i);
        m.seg[i].data = msg.data[i].data();
        m.seg[i].len = msg.data[i].size();
    }
    m.seg[PARAMO_SEG_BODY].data = call->message.meta.body.data();
    m.seg[PARAMO_SEG_BODY].len = call->message.meta.body.size();
    OwnCall *raw = call.release();
    try {
        Ask(&m, 1, OwnReply, raw, msg.meta.priority, OwnDone);
    } catch (...) {
        delete raw;
        throw;
    }
}

inline void Customer::AnswerOwn(const Message &msg)
{
    internal::Asked asked = {msg.meta.recver, msg.meta.customer_id, msg.meta.timestamp};
    paramo_request *request = Claim(asked).request;
    if (request == nullptr) {
        LOG(WARNING) << "no request waits for this response (any more): " << msg.DebugString();
        return;
    }
    PS_REQUIRE(msg.data.size() <= static_cast<size_t>(PARAMO_SEG_BODY)) << "a message has at most 3 arrays";
    internal::Kept out;
    paramo_err err = PARAMO_OK;
    for (size_t i = 0; i < msg.data.size() && err == PARAMO_OK; i++)
        err = paramo_array_copy(msg.data[i].data(), msg.data[i].size(), &out.seg[i]);
    if (err == PARAMO_OK && !msg.meta.body.empty())
        err = paramo_array_copy(msg.meta.body.data(), msg.meta.body.size(), &out.seg[PARAMO_SEG_BODY]);
    if (err == PARAMO_OK)
        err = paramo_answer_arrays(request, out.seg);
    if (err != PARAMO_OK)
        (void)!paramo_answer_error(request, err, paramo_last_error());
}

inline int Van::Send(const Message &msg)
{
    Customer *customer = Postoffice::Get()->GetCustomer(msg.meta.app_id, msg.meta.customer_id);
    if (!msg.meta.request &&
        customer == nullptr) /* it names the asker's customer; ours has the app's number */
        customer = Postoffice::Get()->GetCustomer(msg.meta.app_id, msg.meta.app_id);
    PS_REQUIRE(customer != nullptr) << "no customer " << msg.meta.customer_id << " of app "
                                    << msg.meta.app_id;
    if (Postoffice::Get()->verbose() >= 2)
        LOG(INFO) << msg.DebugString();
    if (msg.meta.request)
        customer->SendOwn(msg);
    else
        customer->AnswerOwn(msg);
    return msg.meta.data_size;
}
} // namespace ps
#endif
