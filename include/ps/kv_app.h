/*
 * KVWorker pushes and pulls keys and values; KVServer hands such requests to a program's own handle. Keys are
 * placed on servers by range (Postoffice::GetServerKeyRanges), or by the program's slicer.
 *
 * Keys may come in any order and repeatedly: a server's handle gets those of its own as they were given.
 * Mistakes of the caller (sizes that do not agree) throw dmlc::Error from the call; what goes wrong later is
 * logged and thrown by Wait, or, if no call waits for it, by Finalize. A callback runs when the request is
 * over, before Wait returns; it may issue requests, but not wait. The callback of a request that has failed
 * is not called. Tests: test/ps/kv_*.cc.
 */
#ifndef PS_KV_APP_H_
#define PS_KV_APP_H_

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ps/base.h"
#include "ps/simple_app.h"

#include "ps/internal/blocks.h"
#include "ps/internal/kv_load.h"
#include "ps/internal/kv_task.h"

namespace ps
{
/* The app of a worker, or of any node that pushes and pulls. Val is a plain type (float, int64_t, char ...).
 */
template <typename Val> class KVWorker : public SimpleApp
{
  public:
    using SimpleApp::obj_;
    using Callback = std::function<void()>;
    using SlicedKVs = std::vector<std::pair<bool, KVPairs<Val>>>;
    /* Cuts send into slices: sliced[r] goes to server r unless its first is false. ranges[r] are the keys
     * that server r has by default. */
    using Slicer =
        std::function<void(const KVPairs<Val> &send, const std::vector<Range> &ranges, SlicedKVs *sliced)>;

    /* app_id is the KVServer's; customer_id is this one's in the process. instance: of BytePS' fork of
     * ps-lite; there is one here. */
    explicit KVWorker(int app_id, int customer_id, int instance = 0) : SimpleApp()
    {
        PS_REQUIRE(instance == 0) << "KVWorker: a process has one instance, and not " << instance + 1;
        obj_ = new Customer(app_id, customer_id, this->ServingSimple());
    }
    explicit KVWorker(int app_id) : KVWorker(app_id, app_id)
    {
    }
    virtual ~KVWorker()
    {
        delete obj_;
        obj_ = nullptr;
    }

    /* All of these return a timestamp at once, for Wait. Push, Pull and PushPull copy keys and what is
     * pushed; with Z... the memory is sent from where it is and shared until the request is over: leave its
     * content alone. What is pulled is there when Wait returns or the callback is called. Empty vals and lens
     * are given their size; vals that are not empty must have the size that comes (with lens: at least). cmd
     * is for the server's handle, a higher priority goes first among what has not been sent yet. Safe to call
     * from several threads. */
    int Push(const std::vector<Key> &keys, const std::vector<Val> &vals, const std::vector<int> &lens = {},
             int cmd = 0, const Callback &cb = nullptr, int priority = 0)
    {
        const internal::Given<Val> given = GivenBy(keys, vals, lens);
        if (!cb && CopiedBelow(given) && !obj_->MustPutOff()) {
            internal::KVTask<Val> task(true, given, cmd);
            int timestamp = 0;
            Cut(&task);
            const paramo_err err =
                Issue(&task, nullptr, obj_, priority, OnPushed, PARAMO_COPY | PARAMO_WAITED, &timestamp);
            if (err != PARAMO_E_AGAIN) {
                internal::Check(err, "a request");
                return timestamp;
            }
        }
        return SendCopy<std::vector<Val>, std::vector<int>>(true, keys, vals, lens, nullptr, nullptr, cmd, cb,
                                                            priority);
    }
    int Pull(const std::vector<Key> &keys, std::vector<Val> *vals, std::vector<int> *lens = nullptr,
             int cmd = 0, const Callback &cb = nullptr, int priority = 0)
    {
        return SendCopy(false, keys, std::vector<Val>(), std::vector<int>(), internal::NotNull(vals, "vals"),
                        lens, cmd, cb, priority);
    }
    /* lens, if it is not empty, also says how long what is pushed is. */
    int PushPull(const std::vector<Key> &keys, const std::vector<Val> &vals, std::vector<Val> *outs,
                 std::vector<int> *lens = nullptr, int cmd = 0, const Callback &cb = nullptr,
                 int priority = 0)
    {
        internal::NotNull(outs, "outs");
        if (outs->empty())
            outs->resize(vals.size());
        else
            PS_REQUIRE(vals.size() == outs->size());
        const std::vector<int> none;
        return SendCopy(true, keys, vals, lens ? *lens : none, outs, lens, cmd, cb, priority);
    }

    int ZPush(const SArray<Key> &keys, const SArray<Val> &vals, const SArray<int> &lens = {}, int cmd = 0,
              const Callback &cb = nullptr, int priority = 0)
    {
        return SendHeld<SArray<Val>, SArray<int>>(true, keys, vals, lens, nullptr, nullptr, cmd, cb,
                                                  priority);
    }
    int ZPull(const SArray<Key> &keys, SArray<Val> *vals, SArray<int> *lens = nullptr, int cmd = 0,
              const Callback &cb = nullptr, int priority = 0)
    {
        return SendHeld(false, keys, SArray<Val>(), SArray<int>(), internal::NotNull(vals, "vals"), lens, cmd,
                        cb, priority);
    }
    int ZPushPull(const SArray<Key> &keys, const SArray<Val> &vals, SArray<Val> *outs,
                  SArray<int> *lens = nullptr, int cmd = 0, const Callback &cb = nullptr, int priority = 0)
    {
        return SendHeld(true, keys, vals, lens ? *lens : SArray<int>(), internal::NotNull(outs, "outs"), lens,
                        cmd, cb, priority);
    }

    /* Waits until the request is over; throws dmlc::Error with the cause if it has failed. */
    void Wait(int timestamp) override
    {
        obj_->WaitRequest(timestamp);
    }

    /* Before the first request. */
    void set_slicer(const Slicer &slicer)
    {
        PS_REQUIRE(slicer) << "invalid slicer";
        slicer_ = slicer;
    }

  private:
    struct Task : public internal::KVTask<Val> {
        Task(KVWorker *by, bool pushes, const internal::Given<Val> &what, int number, const Callback &cb)
            : internal::KVTask<Val>(pushes, what, number), worker(by)
        {
            if (cb)
                this->callback = cb;
        }
        static void *operator new(size_t)
        {
            return internal::Blocks<sizeof(Task)>::Get();
        }
        static void operator delete(void *memory)
        {
            internal::Blocks<sizeof(Task)>::Put(memory);
        }
        KVWorker *worker;
        int put_off = -1; /* its timestamp if it was put off */
    };

    template <typename K, typename V, typename L>
    static internal::Given<Val> GivenBy(const K &keys, const V &vals, const L &lens)
    {
        return {keys.data(), keys.size(), vals.data(), vals.size(), lens.data(), lens.size()};
    }

    /* Small vectors are copied with the request itself (PARAMO_COPY), for which Paramo takes memory anyway.
     * Arbitrary: as many as can be in flight stay far below what Paramo copies at a time. */
    bool CopiedBelow(const internal::Given<Val> &given) const
    {
        const size_t few = 8192;
        return !slicer_ && given.bytes() <= few;
    }

    /* What is sent is shared until the request is over. to and lens_to: where a pull goes, nullptr for a
     * push.
     */
    template <typename C, typename D>
    int SendHeld(bool push, SArray<Key> keys, SArray<Val> vals, SArray<int> lens, C *to, D *lens_to, int cmd,
                 const Callback &cb, int priority)
    {
        std::unique_ptr<Task> task(new Task(this, push, GivenBy(keys, vals, lens), cmd, cb));
        task->kvs.keys = std::move(keys);
        task->kvs.vals = std::move(vals);
        task->kvs.lens = std::move(lens);
        task->kvs.priority = priority;
        if (to != nullptr)
            task->PullInto(to, lens_to);
        return Send(std::move(task), priority, 0);
    }

    /* What is sent is the caller's again on return. */
    template <typename C, typename D>
    int SendCopy(bool push, const std::vector<Key> &keys, const std::vector<Val> &vals,
                 const std::vector<int> &lens, C *to, D *lens_to, int cmd, const Callback &cb, int priority)
    {
        const internal::Given<Val> given = GivenBy(keys, vals, lens);
        if (!CopiedBelow(given))
            return SendHeld(push, SArray<Key>(keys), SArray<Val>(vals), SArray<int>(lens), to, lens_to, cmd,
                            cb, priority);
        std::unique_ptr<Task> task(new Task(this, push, given, cmd, cb));
        if (to != nullptr)
            task->PullInto(to, lens_to);
        return Send(std::move(task), priority, PARAMO_COPY);
    }

    int Send(std::unique_ptr<Task> task, int priority, uint32_t flags)
    {
        if (!task->callback)
            flags |= PARAMO_WAITED;
        Cut(task.get());
        if (!obj_->MustPutOff()) {
            int timestamp = 0;
            const paramo_err err = IssueTask(task.get(), priority, flags, &timestamp);
            if (err == PARAMO_OK)
                task.release(); /* OnDone deletes it */
            if (err != PARAMO_E_AGAIN) {
                internal::Check(err, "a request");
                return timestamp;
            }
        }
        /* In a callback, and as many requests as can be are in flight: it is issued when others have ended. No wait
         * drives it, because it has another timestamp by then. */
        if ((flags & PARAMO_COPY) != 0)
            task->Own();
        auto held = std::make_shared<std::unique_ptr<Task>>(std::move(task));
        return obj_->PutOff([this, held, priority](int shown) {
            Customer *const customer = obj_;
            int timestamp = 0;
            (*held)->put_off = shown;
            const paramo_err err = IssueTask(held->get(), priority, 0, &timestamp);
            if (err == PARAMO_OK) {
                held->release();
            } else if (err != PARAMO_E_AGAIN) {
                customer->Failed(shown, paramo_last_error(), static_cast<bool>((*held)->callback));
                customer->EndPutOff(shown);
            }
            return err != PARAMO_E_AGAIN;
        });
    }

    void Cut(internal::KVTask<Val> *task)
    {
        const std::vector<Range> &ranges = Postoffice::Get()->GetServerKeyRanges();
        if (slicer_) {
            SlicedKVs sliced;
            slicer_(task->kvs, ranges, &sliced);
            task->CutBySlices(&sliced, ranges.size());
        } else {
            task->CutByRange(ranges);
            load_.Count(task->parts, ranges.size());
        }
    }

    paramo_err IssueTask(Task *task, int priority, uint32_t flags, int *timestamp)
    {
        return Issue(task, task->pull ? OnReply : nullptr, task, priority, OnDone, flags, timestamp);
    }

    paramo_err Issue(internal::KVTask<Val> *task, paramo_reply_fn on_reply, void *arg, int priority,
                     paramo_callback done, uint32_t flags, int *timestamp)
    {
        const size_t few = 4;
        paramo_message on_stack[few];
        std::vector<paramo_message> on_heap(task->parts.size() > few ? task->parts.size() : 0);
        paramo_message *messages = on_heap.empty() ? on_stack : on_heap.data();
        task->FillMessages(messages);
        return obj_->TryAsk(messages, task->parts.size(), on_reply, arg, priority, done, flags, timestamp);
    }

    static void OnReply(void *arg, uint64_t, const paramo_reply *reply) noexcept
    {
        static_cast<Task *>(arg)->Take(reply);
    }
    static void OnDone(void *arg, uint64_t ts, paramo_err status) noexcept
    {
        std::unique_ptr<Task> task(static_cast<Task *>(arg));
        Customer *const customer = task->worker->obj_;
        const int put_off = task->put_off;
        End(task.get(), customer, put_off >= 0 ? put_off : customer->Shown(ts), status);
        task.reset();
        if (put_off >= 0)
            customer->EndPutOff(put_off);
        customer->IssuePutOff();
    }
    static void End(Task *task, Customer *customer, int shown, paramo_err status)
    {
        const bool by_callback = static_cast<bool>(task->callback);
        if (status != PARAMO_OK) {
            customer->Ended(shown, status, by_callback);
            return;
        }
        const std::string &wrong = task->Finish();
        if (!wrong.empty()) {
            customer->Failed(shown, wrong, by_callback);
            return;
        }
        std::string thrown;
        if (task->callback)
            customer->InCallback([&] { thrown = internal::Caught(task->callback); });
        if (!thrown.empty())
            customer->Failed(shown, "its callback has thrown: " + thrown);
    }
    /* Of a push without a callback, which needs no task. */
    static void OnPushed(void *arg, uint64_t ts, paramo_err status) noexcept
    {
        Customer *customer = static_cast<Customer *>(arg);
        customer->Ended(customer->Shown(ts), status);
        customer->IssuePutOff();
    }

    Slicer slicer_;
    internal::Load load_;
};

/* What a handle is told of a request besides keys and values. */
struct KVMeta {
    int cmd;
    bool push;
    bool pull;
    int sender;      /* node id */
    int timestamp;   /* the worker's */
    int customer_id; /* the worker's */
};

/* The app of a server. Its handles, the SimpleApp side's too, never run twice at once. They run as soon as
 * set_request_handle has been called (requests that come before it wait; those of SimpleApp are taken once
 * either handle is set), on a thread of this app's own, so that they may make other customers and wait for
 * their requests. PARAMO_PS_THREADS=0 in the environment: they run on the thread that receives requests, and
 * must not wait. */
template <typename Val> class KVServer : public SimpleApp
{
  public:
    using SimpleApp::obj_;
    /* Answers with server->Response, now or later, from any thread. A handle that throws before it has answered
     * answers with an error, which the worker's Wait throws; the server continues. */
    using ReqHandle =
        std::function<void(const KVMeta &req_meta, const KVPairs<Val> &req_data, KVServer *server)>;

    /* The others are of BytePS' fork of ps-lite. */
    explicit KVServer(int app_id, bool /* is_scheduler */ = false, int instance = 0) : SimpleApp()
    {
        PS_REQUIRE(instance == 0) << "KVServer: a process has one instance, and not " << instance + 1;
        internal::Serving serving;
        serving.request = [this](const internal::Incoming &in) { OnRequest(in); };
        serving.on =
            GetEnv("PARAMO_PS_THREADS", 1) == 0 ? internal::Serving::DIRECT : internal::Serving::THREAD;
        serving.late = true;
        obj_ = new Customer(app_id, app_id, serving);
    }
    virtual ~KVServer()
    {
        delete obj_;
        obj_ = nullptr;
    }

    void set_request_handle(const ReqHandle &request_handle)
    {
        PS_REQUIRE(request_handle) << "invalid request handle";
        auto handle = std::make_shared<ReqHandle>(request_handle);
        obj_->RunOnStrand([this, handle] {
            if (running_ > 0)
                retired_.push_back(handle_); /* it runs: it has set another one, and waits for that */
            handle_ = handle;
            for (const Waiting &w : waiting_)
                RunWaiting(w);
            waiting_.clear();
        });
        obj_->Open();
    }

    /* Of BytePS' fork of ps-lite. What this worker pushes from now on under this key alone is copied into vals,
     * which the handle then gets as its values. The next such push writes there again. A push of another size
     * is refused. From any thread; during a handle it takes effect when that ends. */
    void RegisterRecvBuffer(int worker_id, const SArray<Key> &keys, const SArray<Val> &vals,
                            const SArray<int> & /* lens */ = {}, int /* cmd */ = 0)
    {
        PS_REQUIRE(keys.size() == 1u)
            << "RegisterRecvBuffer: a buffer is for one key, and not for " << keys.size();
        const Key key = keys[0];
        obj_->RunOnStrand([this, worker_id, key, vals] { buffers_[worker_id][key] = vals; });
    }
    void RegisterRecvBufferWithRank(int worker_rank, const SArray<Key> &keys, const SArray<Val> &vals,
                                    const SArray<int> &lens = {}, int cmd = 0)
    {
        RegisterRecvBuffer(Postoffice::WorkerRankToID(worker_rank), keys, vals, lens, cmd);
    }

    /* Answers a request: a pull with its values (res.keys as asked for, res.lens if their number differs), a
     * push with nothing. */
    void Response(const KVMeta &req, const KVPairs<Val> &res = KVPairs<Val>())
    {
        internal::Asked asked = {req.sender, req.customer_id, req.timestamp};
        const internal::Claimed claimed = obj_->Claim(asked);
        paramo_request *const request = claimed.request;
        if (request == nullptr) {
            LOG(WARNING) << "app " << obj_->app_id() << ": request " << req.timestamp << " of node "
                         << req.sender << " has been answered already";
            return;
        }
        paramo_err err = PARAMO_OK;
        if (!req.pull) {
            err = paramo_answer(request, nullptr, 0, nullptr);
        } else {
            const std::string why = Mismatch(claimed.info->seg[PARAMO_SEG_KEYS], res);
            if (!why.empty())
                LOG(ERROR) << "app " << obj_->app_id() << ": the answer to request " << req.timestamp
                           << " of node " << req.sender << " is refused: " << why;
            err = why.empty() ? AnswerPull(request, res)
                              : paramo_answer_error(request, PARAMO_E_HANDLER, why.c_str());
        }
        if (err != PARAMO_OK) {
            std::string why = paramo_last_error();
            (void)!paramo_answer_error(request, PARAMO_E_HANDLER, why.c_str());
        }
    }
    using SimpleApp::Response;

  private:
    struct Waiting {
        KVMeta meta;
        KVPairs<Val> data;
    };

    void OnRequest(const internal::Incoming &in)
    {
        if ((in.flags() & internal::FLAG_SIMPLE) != 0) {
            this->OnSimpleRequest(in);
            return;
        }
        const KVMeta meta = {in.info->cmd,
                             (in.flags() & internal::FLAG_PUSH) != 0,
                             (in.flags() & internal::FLAG_PULL) != 0,
                             in.asked.sender,
                             in.asked.timestamp,
                             in.asked.customer};
        KVPairs<Val> data;
        data.keys = in.array<Key>(PARAMO_SEG_KEYS, "keys");
        data.vals = in.array<Val>(PARAMO_SEG_VALS, "values");
        data.lens = in.array<int>(PARAMO_SEG_LENS, "lens");
        PS_REQUIRE(data.lens.empty() || data.lens.size() == data.keys.size())
            << "another number of lens than of keys";
        if (!buffers_.empty() && meta.push && data.keys.size() == 1)
            Place(meta.sender, &data);
        if (handle_ == nullptr) {
            waiting_.push_back({meta, data});
            return;
        }
        Running running(this);
        (*handle_)(meta, data, this);
    }
    /* Puts what was pushed into the buffer for it, if there is one. */
    void Place(int sender, KVPairs<Val> *data)
    {
        const auto of_sender = buffers_.find(sender);
        if (of_sender == buffers_.end())
            return;
        const auto it = of_sender->second.find(data->keys[0]);
        if (it == of_sender->second.end())
            return;
        PS_REQUIRE(it->second.size() == data->vals.size())
            << "a push of " << data->vals.size() << " values to a buffer of " << it->second.size()
            << " (RegisterRecvBuffer)";
        if (!data->vals.empty())
            std::memcpy(it->second.data(), data->vals.data(), data->vals.size() * sizeof(Val));
        data->vals = it->second;
    }
    void RunWaiting(const Waiting &w) noexcept
    {
        Running running(this);
        const std::string why = internal::Caught([&] { (*handle_)(w.meta, w.data, this); });
        if (!why.empty())
            obj_->Refuse({w.meta.sender, w.meta.customer_id, w.meta.timestamp}, why);
    }

    /* An answer names the keys that were asked for, in their order; otherwise values would come under wrong keys. */
    static std::string Mismatch(const paramo_bytes &asked, const KVPairs<Val> &res)
    {
        const size_t n = asked.len / sizeof(Key);
        if (res.keys.size() != n)
            return "the handle answers " + std::to_string(res.keys.size()) + " keys where " +
                   std::to_string(n) + " were asked for";
        if (!res.lens.empty() && res.lens.size() != n)
            return "the handle answers " + std::to_string(res.lens.size()) + " lens for " +
                   std::to_string(n) + " keys";
        if (n > 0 && res.keys.data() != asked.data &&
            std::memcmp(res.keys.data(), asked.data, asked.len) != 0)
            return "the handle answers other keys than were asked for";
        for (int len : res.lens)
            if (len < 0)
                return "the handle answers a negative length";
        if (res.lens.empty() && n > 0 && res.vals.size() % n != 0)
            return "the handle answers " + std::to_string(res.vals.size()) + " values for " +
                   std::to_string(n) + " keys, without lens";
        return std::string();
    }

    /* Keeps handles that were replaced while any handle runs. */
    class Running
    {
      public:
        explicit Running(KVServer *server) : server_(server)
        {
            server_->running_++;
        }
        ~Running()
        {
            if (--server_->running_ == 0 && !server_->retired_.empty())
                server_->retired_.clear();
        }

      private:
        KVServer *server_;
    };

    /* Memory that only the answer holds is sent without a copy. */
    static paramo_err AnswerPull(paramo_request *request, const KVPairs<Val> &res)
    {
        const size_t worth_it = 32768; /* arbitrary: below, a copy costs less than the book-keeping */
        const size_t bytes = res.vals.size() * sizeof(Val);
        bool copy = bytes < worth_it || !res.vals.sole();
        if (copy && res.lens.empty())
            return paramo_answer(request, bytes ? res.vals.data() : nullptr, bytes, nullptr);
        internal::Kept out;
        paramo_err err = PARAMO_OK;
        if (copy) {
            err = paramo_array_copy(res.vals.data(), bytes, &out.seg[PARAMO_SEG_VALS]);
        } else {
            std::unique_ptr<SArray<Val>> held(new SArray<Val>(res.vals));
            auto release = [](void *arg, void *) { delete static_cast<SArray<Val> *>(arg); };
            err = paramo_array_wrap(held->data(), bytes, release, held.get(), &out.seg[PARAMO_SEG_VALS]);
            if (err == PARAMO_OK)
                held.release();
        }
        if (err == PARAMO_OK && !res.lens.empty())
            err =
                paramo_array_copy(res.lens.data(), res.lens.size() * sizeof(int), &out.seg[PARAMO_SEG_LENS]);
        return err != PARAMO_OK ? err : paramo_answer_arrays(request, out.seg);
    }

    /* Touched on the customer's strand only. */
    std::shared_ptr<ReqHandle> handle_;
    std::vector<std::shared_ptr<ReqHandle>> retired_;
    int running_ = 0; /* handles; more than one when a handle that waits runs what was left to it */
    std::unordered_map<int, std::unordered_map<Key, SArray<Val>>> buffers_; /* by node and key */
    std::vector<Waiting> waiting_; /* came while SimpleApp's handle was set already, and ours not yet */
};
} // namespace ps

#include "ps/internal/kv_default_handle.h"
#endif
