/*
 * SimpleApp: requests and responses of a number (head) and bytes (body), from any node to any node or group.
 *
 * A request is over when every node it went to has answered. Handles run on a thread of the app's own, one at
 * a time; the handle for requests may wait for other apps' requests; the one for responses may issue
 * requests, but not wait. A handle that throws answers with an error, which the asker's Wait throws. Tests:
 * test/ps/simple_*.cc.
 */
#ifndef PS_SIMPLE_APP_H_
#define PS_SIMPLE_APP_H_

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "ps/internal/message.h"
#include "ps/internal/postoffice.h"

namespace ps
{
/* A request or response as a handle sees it. */
struct SimpleData {
    int head;
    std::string body;
    int sender;      /* node id */
    int timestamp;   /* the asker's */
    int customer_id; /* the asker's */
};

class SimpleApp
{
  public:
    using Handle = std::function<void(const SimpleData &recved, SimpleApp *app)>;

    /* app_id is the same on both sides; customer_id is this app's among those of the process. */
    explicit SimpleApp(int app_id, int customer_id) : SimpleApp()
    {
        obj_ = new Customer(app_id, customer_id, ServingSimple());
    }
    explicit SimpleApp(int app_id) : SimpleApp(app_id, app_id)
    {
    }
    SimpleApp(const SimpleApp &) = delete;
    SimpleApp &operator=(const SimpleApp &) = delete;
    virtual ~SimpleApp()
    {
        delete obj_;
        obj_ = nullptr;
    }

    /* Sends a request to a node or group; returns its timestamp. */
    virtual int Request(int req_head, const std::string &req_body, int recv_id)
    {
        std::unique_ptr<Call> call(new Call{this, req_head, req_body});
        paramo_message message;
        paramo_message_init(&message, static_cast<uint32_t>(recv_id));
        message.head = req_head;
        message.flags = internal::FLAG_SIMPLE;
        message.seg[PARAMO_SEG_BODY].data = call->body.data();
        message.seg[PARAMO_SEG_BODY].len = call->body.size();
        int timestamp = get_customer()->Ask(&message, 1, OnReply, call.get(), 0, OnDone,
                                            Copy(response_handle_) ? 0 : PARAMO_WAITED);
        call.release(); /* OnDone deletes it */
        return timestamp;
    }

    /* Waits until a request is over: every node has answered, and each answer has been handled. Throws
     * dmlc::Error if it has failed. */
    virtual void Wait(int timestamp)
    {
        obj_->WaitRequest(timestamp);
    }

    /* Answers a request, in its handle or later, from any thread; once. */
    virtual void Response(const SimpleData &recv_req, const std::string &res_body = "")
    {
        internal::Asked asked = {recv_req.sender, recv_req.customer_id, recv_req.timestamp};
        paramo_request *request = obj_->Claim(asked).request;
        if (request == nullptr) {
            LOG(WARNING) << "app " << obj_->app_id() << ": request " << recv_req.timestamp << " of node "
                         << recv_req.sender << " has been answered already";
            return;
        }
        if (paramo_answer_body(request, res_body.data(), res_body.size()) != PARAMO_OK) {
            std::string why = paramo_last_error();
            (void)!paramo_answer_error(request, PARAMO_E_HANDLER, why.c_str());
        }
    }

    /* Without a handle, requests are answered with an empty body. */
    void set_request_handle(const Handle &request_handle)
    {
        PS_REQUIRE(request_handle) << "invalid request handle";
        {
            std::lock_guard<std::mutex> lock(simple_mu_);
            request_handle_ = std::make_shared<const Handle>(request_handle);
            simple_cond_.notify_all();
        }
        if (obj_ != nullptr) /* not while an app of the program's own is being made */
            obj_->Open();
    }
    void set_response_handle(const Handle &response_handle)
    {
        PS_REQUIRE(response_handle) << "invalid response handle";
        std::lock_guard<std::mutex> lock(simple_mu_);
        response_handle_ = std::make_shared<const Handle>(response_handle);
    }

    virtual Customer *get_customer()
    {
        return obj_;
    }

  protected:
    /* For apps that make their customer themselves. */
    SimpleApp() : obj_(nullptr), made_(std::chrono::steady_clock::now())
    {
    }

    /* What a Customer of a derived app's own hands over: messages with meta.simple_app. */
    virtual void Process(const Message &msg)
    {
        SimpleData data = {msg.meta.head, msg.meta.body, msg.meta.sender, msg.meta.timestamp,
                           msg.meta.customer_id};
        if (msg.meta.request)
            RunRequest(data);
        else
            RunResponse(data);
    }

    internal::Serving ServingSimple()
    {
        internal::Serving serving;
        serving.request = [this](const internal::Incoming &in) { OnSimpleRequest(in); };
        return serving;
    }
    void OnSimpleRequest(const internal::Incoming &in)
    {
        RunRequest({in.info->cmd, in.body(), in.asked.sender, in.asked.timestamp, in.asked.customer});
    }

    Customer *obj_;

  private:
    struct Call {
        SimpleApp *app;
        int head;
        std::string body; /* sent in place */
    };

    std::shared_ptr<const Handle> Copy(const std::shared_ptr<const Handle> &handle)
    {
        std::lock_guard<std::mutex> lock(simple_mu_);
        return handle;
    }

    /* A program sets its handle right after making the app; a request may be there in between. */
    void RunRequest(const SimpleData &data)
    {
        const auto patience =
            std::chrono::milliseconds(100); /* arbitrary; only within this time of the making */
        std::shared_ptr<const Handle> handle;
        {
            std::unique_lock<std::mutex> lock(simple_mu_);
            simple_cond_.wait_until(lock, made_ + patience, [this] { return request_handle_ != nullptr; });
            handle = request_handle_;
        }
        if (handle)
            (*handle)(data, this);
        else
            Response(data);
    }
    void RunResponse(const SimpleData &data)
    {
        std::shared_ptr<const Handle> handle = Copy(response_handle_);
        if (handle)
            (*handle)(data, this);
    }

    static void OnReply(void *arg, uint64_t ts, const paramo_reply *reply) noexcept
    {
        Call *call = static_cast<Call *>(arg);
        SimpleApp *app = call->app;
        if (!app->Copy(app->response_handle_))
            return;
        const paramo_bytes &body = reply->seg[PARAMO_SEG_BODY];
        SimpleData data = {call->head,
                           std::string(static_cast<const char *>(body.len ? body.data : ""), body.len),
                           static_cast<int>(reply->node), app->obj_->Shown(ts), app->obj_->customer_id()};
        app->obj_->HandleResponse(data.timestamp, [app, data] { app->RunResponse(data); });
    }
    static void OnDone(void *arg, uint64_t ts, paramo_err status) noexcept
    {
        std::unique_ptr<Call> call(static_cast<Call *>(arg));
        call->app->obj_->Ended(call->app->obj_->Shown(ts), status);
        call->app->obj_->IssuePutOff();
    }

    const std::chrono::steady_clock::time_point made_;
    std::mutex simple_mu_; /* guards the handles */
    std::condition_variable simple_cond_;
    std::shared_ptr<const Handle> request_handle_, response_handle_;
};
} // namespace ps
#endif
