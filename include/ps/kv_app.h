/*
 * KVWorker pushes and pulls keys and values; KVServer hands such requests to a program's own handle. Keys are
 * placed on servers by range (Postoffice::GetServerKeyRanges), or by the program's slicer.
 *
 * Mistakes of the caller (unsorted or repeated keys, sizes that do not agree) throw dmlc::Error from the
 * call; what goes wrong later is logged and thrown by Wait. A callback runs when the request is over, before
 * Wait returns; it may issue requests, but not wait. The callback of a request that has failed is not called.
 * Tests: test/ps/kv_*.cc.
 */
#ifndef PS_KV_APP_H_
#define PS_KV_APP_H_

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ps/base.h"
#include "ps/simple_app.h"

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

    /* app_id is the KVServer's; customer_id is this one's in the process. */
    explicit KVWorker(int app_id, int customer_id) : SimpleApp()
    {
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
        return ZPush(SArray<Key>(keys), SArray<Val>(vals), SArray<int>(lens), cmd, cb, priority);
    }
    int Pull(const std::vector<Key> &keys, std::vector<Val> *vals, std::vector<int> *lens = nullptr,
             int cmd = 0, const Callback &cb = nullptr, int priority = 0)
    {
        return Send(false, SArray<Key>(keys), SArray<Val>(), SArray<int>(), CHECK_NOTNULL(vals), lens, cmd,
                    cb, priority);
    }
    /* lens, if it is not empty, also says how long what is pushed is. */
    int PushPull(const std::vector<Key> &keys, const std::vector<Val> &vals, std::vector<Val> *outs,
                 std::vector<int> *lens = nullptr, int cmd = 0, const Callback &cb = nullptr,
                 int priority = 0)
    {
        CHECK_NOTNULL(outs);
        if (outs->empty())
            outs->resize(vals.size());
        else
            CHECK_EQ(vals.size(), outs->size());
        SArray<int> lengths;
        if (lens)
            lengths = SArray<int>(*lens);
        return Send(true, SArray<Key>(keys), SArray<Val>(vals), lengths, outs, lens, cmd, cb, priority);
    }

    int ZPush(const SArray<Key> &keys, const SArray<Val> &vals, const SArray<int> &lens = {}, int cmd = 0,
              const Callback &cb = nullptr, int priority = 0)
    {
        return Send<SArray<Val>, SArray<int>>(true, keys, vals, lens, nullptr, nullptr, cmd, cb, priority);
    }
    int ZPull(const SArray<Key> &keys, SArray<Val> *vals, SArray<int> *lens = nullptr, int cmd = 0,
              const Callback &cb = nullptr, int priority = 0)
    {
        return Send(false, keys, SArray<Val>(), SArray<int>(), CHECK_NOTNULL(vals), lens, cmd, cb, priority);
    }
    int ZPushPull(const SArray<Key> &keys, const SArray<Val> &vals, SArray<Val> *outs,
                  SArray<int> *lens = nullptr, int cmd = 0, const Callback &cb = nullptr, int priority = 0)
    {
        return Send(true, keys, vals, lens ? *lens : SArray<int>(), CHECK_NOTNULL(outs), lens, cmd, cb,
                    priority);
    }

    /* Waits until the request is over; throws dmlc::Error with the cause if it has failed. */
    void Wait(int timestamp) override
    {
        obj_->WaitRequest(timestamp);
    }

    /* Before the first request. */
    void set_slicer(const Slicer &slicer)
    {
        CHECK(slicer) << "invalid slicer";
        slicer_ = slicer;
    }

  private:
    struct Task : public internal::KVTask<Val> {
        KVWorker *worker;
    };

    /* vals and lens: where a pull goes, nullptr for a push. */
    template <typename C, typename D>
    int Send(bool push, const SArray<Key> &keys, const SArray<Val> &pushed, const SArray<int> &pushed_lens,
             C *vals, D *lens, int cmd, const Callback &cb, int priority)
    {
        internal::CheckKeys(keys);
        std::unique_ptr<Task> task(new Task());
        task->worker = this;
        task->push = push;
        task->pull = vals != nullptr;
        task->cmd = cmd;
        task->kvs.keys = keys;
        task->kvs.vals = pushed;
        task->kvs.lens = pushed_lens;
        task->kvs.priority = priority;
        task->callback = cb;
        if (vals != nullptr)
            task->target.reset(new internal::TargetOf<Val, C, D>(vals, lens));
        const std::vector<Range> &ranges = Postoffice::Get()->GetServerKeyRanges();
        if (slicer_) {
            SlicedKVs sliced;
            slicer_(task->kvs, ranges, &sliced);
            task->CutBySlices(&sliced, ranges.size());
        } else {
            task->CutByRange(ranges);
            load_.Count(task->parts, ranges.size());
        }

        const size_t few = 8;
        paramo_message on_stack[few];
        std::vector<paramo_message> on_heap(task->parts.size() > few ? task->parts.size() : 0);
        paramo_message *messages = on_heap.empty() ? on_stack : on_heap.data();
        task->FillMessages(messages);
        int timestamp = obj_->Ask(messages, task->parts.size(), task->pull ? OnReply : nullptr, task.get(),
                                  priority, OnDone);
        task.release(); /* OnDone deletes it */
        return timestamp;
    }

    static void OnReply(void *arg, uint64_t, const paramo_reply *reply) noexcept
    {
        static_cast<Task *>(arg)->Take(reply);
    }
    static void OnDone(void *arg, uint64_t ts, paramo_err status) noexcept
    {
        std::unique_ptr<Task> task(static_cast<Task *>(arg));
        std::string why = status != PARAMO_OK ? paramo_last_error() : task->Finish();
        if (status == PARAMO_E_CLOSED)
            return;
        if (status != PARAMO_OK || !why.empty())
            task->worker->obj_->Failed(internal::FoldTime(ts), why);
        else if (task->callback)
            task->callback();
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

/* The app of a server. Its handles, the SimpleApp side's too, never run twice at once. They run where the
 * request was received, as soon as set_request_handle has been called (requests that come before it wait;
 * those of SimpleApp are taken once either handle is set), and must not wait for requests; with
 * PARAMO_PS_THREADS=1 in the environment they have a thread of their own, as in ps-lite, and may. */
template <typename Val> class KVServer : public SimpleApp
{
  public:
    using SimpleApp::obj_;
    /* Answers with server->Response, now or later, from any thread. A handle that throws before it has
     * answered answers with an error, which the worker's Wait throws; the server goes on. */
    using ReqHandle =
        std::function<void(const KVMeta &req_meta, const KVPairs<Val> &req_data, KVServer *server)>;

    explicit KVServer(int app_id) : SimpleApp()
    {
        internal::Serving serving;
        serving.request = [this](const internal::Incoming &in) { OnRequest(in); };
        serving.direct = GetEnv("PARAMO_PS_THREADS", 0) == 0;
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
        CHECK(request_handle) << "invalid request handle";
        auto handle = std::make_shared<ReqHandle>(request_handle);
        obj_->RunOnStrand([this, handle] {
            handle_ = handle;
            for (const Waiting &w : waiting_)
                RunWaiting(w);
            waiting_.clear();
        });
        obj_->Open();
    }

    /* Answers a request: a pull with its values (res.keys as asked for, res.lens if their number differs), a
     * push with nothing. */
    void Response(const KVMeta &req, const KVPairs<Val> &res = KVPairs<Val>())
    {
        internal::Asked asked = {req.sender, req.customer_id, req.timestamp};
        paramo_request *request = obj_->Claim(asked);
        if (request == nullptr) {
            LOG(WARNING) << "app " << obj_->app_id() << ": request " << req.timestamp << " of node "
                         << req.sender << " has been answered already";
            return;
        }
        paramo_err err = PARAMO_OK;
        if (!req.pull) {
            err = paramo_answer(request, nullptr, 0, nullptr);
        } else if (!res.lens.empty() && res.lens.size() != res.keys.size()) {
            err = paramo_answer_error(request, PARAMO_E_HANDLER,
                                      "the handle answers another number of lens than keys");
        } else {
            err = AnswerPull(request, res);
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
        KVMeta meta = {in.info->cmd,
                       (in.flags() & internal::FLAG_PUSH) != 0,
                       (in.flags() & internal::FLAG_PULL) != 0,
                       in.asked.sender,
                       in.asked.timestamp,
                       in.asked.customer};
        KVPairs<Val> data;
        data.keys = in.array<Key>(PARAMO_SEG_KEYS, "keys");
        data.vals = in.array<Val>(PARAMO_SEG_VALS, "values");
        data.lens = in.array<int>(PARAMO_SEG_LENS, "lens");
        CHECK(data.lens.empty() || data.lens.size() == data.keys.size())
            << "another number of lens than of keys";
        std::shared_ptr<ReqHandle> handle = handle_; /* the handle may set another */
        if (handle == nullptr)
            waiting_.push_back({meta, data});
        else
            (*handle)(meta, data, this);
    }
    void RunWaiting(const Waiting &w) noexcept
    {
        std::shared_ptr<ReqHandle> handle = handle_;
        try {
            (*handle)(w.meta, w.data, this);
        } catch (const std::exception &e) {
            obj_->Refuse({w.meta.sender, w.meta.customer_id, w.meta.timestamp}, e.what());
        }
    }

    /* Memory that nobody but the answer has is sent from where it is. */
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
    std::vector<Waiting> waiting_; /* came while SimpleApp's handle was set already, and ours not yet */
};
} // namespace ps

#include "ps/internal/kv_default_handle.h"
#endif
