/*
 * Every public function of ps-lite's headers that docs/MIGRATING.md has as "same" or "better": it can be called with
 * ps-lite's arguments, and returns ps-lite's type. All of it also compiles against ps-lite itself, so the
 * list stays ps-lite's. Other tests check what the functions do. unit_env.cc includes this.
 */
#ifndef TEST_PS_API_H
#define TEST_PS_API_H

#include "ps/ps.h"

#include "ps/internal/parallel_sort.h"
#include "ps/internal/threadsafe_pqueue.h"
#include "ps/internal/threadsafe_queue.h"

namespace api
{
using namespace ps;

#define IS(type, ...) static_assert(std::is_same<decltype(__VA_ARGS__), type>::value, #__VA_ARGS__)

template <typename T> T &A(); /* one of them */
using Ints = std::vector<int>;
using Keys = std::vector<Key>;
using Floats = std::vector<float>;
using Worker = KVWorker<float>;
using Server = KVServer<float>;
using Pairs = KVPairs<float>;
using Call = std::function<void()>;

/* ps.h */
IS(int, NumWorkers());
IS(int, NumServers());
IS(bool, IsWorker());
IS(bool, IsServer());
IS(bool, IsScheduler());
IS(int, MyRank());
IS(void, Start(0));
IS(void, Start(0, "name"));
IS(void, StartAsync(0));
IS(void, StartAsync(0, "name"));
IS(void, Finalize(0));
IS(void, Finalize(0, false));
IS(void, RegisterExitCallback(A<const Call>()));

/* kv_app.h */
IS(int, A<Worker>().Push(A<const Keys>(), A<const Floats>()));
IS(int, A<Worker>().Push(A<const Keys>(), A<const Floats>(), A<const Ints>(), 0, A<const Call>(), 0));
IS(int, A<Worker>().Pull(A<const Keys>(), A<Floats *>()));
IS(int, A<Worker>().Pull(A<const Keys>(), A<Floats *>(), A<Ints *>(), 0, A<const Call>(), 0));
IS(int, A<Worker>().PushPull(A<const Keys>(), A<const Floats>(), A<Floats *>()));
IS(int, A<Worker>().PushPull(A<const Keys>(), A<const Floats>(), A<Floats *>(), A<Ints *>(), 0,
                             A<const Call>(), 0));
IS(int, A<Worker>().ZPush(A<const SArray<Key>>(), A<const SArray<float>>()));
IS(int, A<Worker>().ZPush(A<const SArray<Key>>(), A<const SArray<float>>(), A<const SArray<int>>(), 0,
                          A<const Call>(), 0));
IS(int, A<Worker>().ZPull(A<const SArray<Key>>(), A<SArray<float> *>()));
IS(int, A<Worker>().ZPull(A<const SArray<Key>>(), A<SArray<float> *>(), A<SArray<int> *>(), 0,
                          A<const Call>(), 0));
IS(int, A<Worker>().ZPushPull(A<const SArray<Key>>(), A<const SArray<float>>(), A<SArray<float> *>()));
IS(int, A<Worker>().ZPushPull(A<const SArray<Key>>(), A<const SArray<float>>(), A<SArray<float> *>(),
                              A<SArray<int> *>(), 0, A<const Call>(), 0));
IS(void, A<Worker>().Wait(0));
IS(void, A<Worker>().set_slicer(A<const Worker::Slicer>()));
IS(Worker::Callback, Call());
IS(Worker::SlicedKVs, std::vector<std::pair<bool, Pairs>>());
static_assert(std::is_constructible<Worker, int, int>::value, "KVWorker");
static_assert(std::is_constructible<Server, int>::value, "KVServer");
static_assert(std::is_base_of<SimpleApp, Worker>::value && std::is_base_of<SimpleApp, Server>::value,
              "SimpleApp");
IS(void, A<Server>().set_request_handle(A<const Server::ReqHandle>()));
IS(void, A<Server>().Response(A<const KVMeta>()));
IS(void, A<Server>().Response(A<const KVMeta>(), A<const Pairs>()));
IS(void, A<KVServerDefaultHandle<float>>()(A<const KVMeta>(), A<const Pairs>(), A<Server *>()));
IS(float &, (A<KVServerDefaultHandle<float>>().store[1]));
IS(SArray<Key> &, (A<Pairs>().keys));
IS(SArray<float> &, (A<Pairs>().vals));
IS(SArray<int> &, (A<Pairs>().lens));
IS(int &, (A<Pairs>().priority));
IS(int &, (A<KVMeta>().cmd));
IS(bool &, (A<KVMeta>().push));
IS(bool &, (A<KVMeta>().pull));
IS(int &, (A<KVMeta>().sender));
IS(int &, (A<KVMeta>().timestamp));
IS(int &, (A<KVMeta>().customer_id));

/* simple_app.h */
static_assert(std::is_constructible<SimpleApp, int, int>::value, "SimpleApp");
IS(int, A<SimpleApp>().Request(1, A<const std::string>(), kServerGroup));
IS(void, A<SimpleApp>().Wait(0));
IS(void, A<SimpleApp>().Response(A<const SimpleData>()));
IS(void, A<SimpleApp>().Response(A<const SimpleData>(), A<const std::string>()));
IS(void, A<SimpleApp>().set_request_handle(A<const SimpleApp::Handle>()));
IS(void, A<SimpleApp>().set_response_handle(A<const SimpleApp::Handle>()));
IS(Customer *, A<SimpleApp>().get_customer());
IS(int &, (A<SimpleData>().head));
IS(std::string &, (A<SimpleData>().body));
IS(int &, (A<SimpleData>().sender));
IS(int &, (A<SimpleData>().timestamp));
IS(int &, (A<SimpleData>().customer_id));

/* Apps of a program's own override these. */
struct OwnApp : public SimpleApp {
    OwnApp()
    {
        obj_ = nullptr;
    }
    int Request(int, const std::string &, int) override
    {
        return 0;
    }
    void Wait(int) override
    {
    }
    void Response(const SimpleData &, const std::string &) override
    {
    }
    Customer *get_customer() override
    {
        return obj_;
    }
    void Process(const Message &msg) override
    {
        SimpleApp::Process(msg);
    }
};

/* internal/postoffice.h */
IS(Postoffice *, Postoffice::Get());
IS(Van *, A<Postoffice>().van());
IS(void, A<Postoffice>().Start(0, "name", true));
IS(void, A<Postoffice>().Finalize(0));
IS(void, A<Postoffice>().Finalize(0, true));
IS(void, A<Postoffice>().AddCustomer(A<Customer *>()));
IS(void, A<Postoffice>().RemoveCustomer(A<Customer *>()));
IS(Customer *, A<const Postoffice>().GetCustomer(0, 0));
IS(Customer *, A<const Postoffice>().GetCustomer(0, 0, 5));
IS(const Ints &, A<const Postoffice>().GetNodeIDs(kServerGroup));
IS(const std::vector<Range> &, A<Postoffice>().GetServerKeyRanges());
IS(void, A<Postoffice>().RegisterExitCallback(A<const Call>()));
IS(int, Postoffice::WorkerRankToID(0));
IS(int, Postoffice::ServerRankToID(0));
IS(int, Postoffice::IDtoRank(8));
IS(int, A<const Postoffice>().num_workers());
IS(int, A<const Postoffice>().num_servers());
IS(int, A<const Postoffice>().my_rank());
IS(int, A<const Postoffice>().is_worker());
IS(int, A<const Postoffice>().is_server());
IS(int, A<const Postoffice>().is_scheduler());
IS(int, A<const Postoffice>().verbose());
IS(bool, A<const Postoffice>().is_recovery());
IS(void, A<Postoffice>().Barrier(0, kWorkerGroup));
IS(Ints, A<Postoffice>().GetDeadNodes());
IS(Ints, A<Postoffice>().GetDeadNodes(60));

/* internal/customer.h, internal/van.h */
static_assert(std::is_constructible<Customer, int, int, const Customer::RecvHandle &>::value, "Customer");
IS(int, A<Customer>().app_id());
IS(int, A<Customer>().customer_id());
IS(int, A<Customer>().NewRequest(kServerGroup));
IS(void, A<Customer>().WaitRequest(0));
IS(int, A<Customer>().NumResponse(0));
IS(void, A<Customer>().AddResponse(0));
IS(void, A<Customer>().AddResponse(0, 1));
IS(void, A<Customer>().Accept(A<const Message>()));
IS(int, A<Van>().Send(A<const Message>()));
IS(const Node &, A<Van>().my_node());
IS(int, A<Van>().GetTimestamp());
IS(bool, A<Van>().IsReady());

/* internal/message.h */
IS(Node::Role &, (A<Node>().role));
IS(int &, (A<Node>().id));
IS(int &, (A<Node>().customer_id));
IS(std::string &, (A<Node>().hostname));
IS(int &, (A<Node>().port));
IS(bool &, (A<Node>().is_recovery));
IS(std::string, A<const Node>().DebugString());
IS(std::string, A<const Node>().ShortDebugString());
IS(bool, A<const Control>().empty());
IS(std::string, A<const Control>().DebugString());
IS(Control::Command &, (A<Control>().cmd));
IS(std::vector<Node> &, (A<Control>().node));
IS(int &, (A<Control>().barrier_group));
IS(uint64_t &, (A<Control>().msg_sig));
IS(std::string, A<const Meta>().DebugString());
IS(std::string &, (A<Meta>().body));
IS(std::vector<DataType> &, (A<Meta>().data_type));
IS(Control &, (A<Meta>().control));
IS(int &, (A<Meta>().data_size));
IS(int &, (A<Meta>().priority));
IS(void, A<Message>().AddData(A<const SArray<float>>()));
IS(std::string, A<const Message>().DebugString());
IS(std::vector<SArray<char>> &, (A<Message>().data));
IS(DataType, GetDataType<float>());
IS(bool, (SameType<float, float>()));

/* sarray.h, range.h */
IS(void, A<SArray<float>>().CopyFrom(A<const float *>(), size_t(1)));
IS(void, A<SArray<float>>().CopyFrom(A<const SArray<float>>()));
IS(void, A<SArray<float>>().CopyFrom(A<Floats>().begin(), A<Floats>().end()));
IS(void, A<SArray<float>>().reset(A<float *>(), size_t(1), A<void (*)(float *)>()));
IS(void, A<SArray<float>>().resize(1));
IS(void, A<SArray<float>>().resize(1, 2.f));
IS(void, A<SArray<float>>().reserve(1));
IS(void, A<SArray<float>>().clear());
IS(bool, A<const SArray<float>>().empty());
IS(size_t, A<const SArray<float>>().size());
IS(size_t, A<const SArray<float>>().capacity());
IS(float *, A<SArray<float>>().begin());
IS(float *, A<SArray<float>>().end());
IS(const float *, A<const SArray<float>>().begin());
IS(const float *, A<const SArray<float>>().end());
IS(float *, A<const SArray<float>>().data());
IS(std::shared_ptr<float> &, A<SArray<float>>().ptr());
IS(float, A<const SArray<float>>().front());
IS(float, A<const SArray<float>>().back());
IS(float &, A<SArray<float>>()[0]);
IS(void, A<SArray<float>>().push_back(1.f));
IS(void, A<SArray<float>>().pop_back());
IS(void, A<SArray<float>>().append(A<const SArray<float>>()));
IS(SArray<float>, A<const SArray<float>>().segment(0, 1));
IS(Range, FindRange(A<const SArray<Key>>(), Key(0), Key(1)));
IS(std::string, DebugStr(A<const float *>(), 3));
IS(std::string, DebugStr(A<const float *>(), 3, 1));
IS(std::ostream &, A<std::ostream>() << A<const SArray<float>>());
IS(uint64_t, A<const Range>().begin());
IS(uint64_t, A<const Range>().end());
IS(uint64_t, A<const Range>().size());

/* internal/env.h, utils.h, parallel_sort.h, threadsafe_*.h */
IS(Environment *, Environment::Get());
IS(Environment *, Environment::Init(A<const std::unordered_map<std::string, std::string>>()));
IS(std::shared_ptr<Environment>, Environment::_GetSharedRef());
IS(const char *, A<Environment>().find("NAME"));
IS(int, GetEnv("NAME", 1));
IS(std::string, GetEnv("NAME", std::string()));
IS(void, ParallelSort(A<SArray<int> *>(), 2, std::less<int>()));
IS(void, A<ThreadsafeQueue<int>>().Push(1));
IS(void, A<ThreadsafeQueue<int>>().WaitAndPop(A<int *>()));
IS(void, A<ThreadsafePQueue>().Push(A<Message>()));
IS(void, A<ThreadsafePQueue>().WaitAndPop(A<Message *>()));
#undef IS
} // namespace api
#endif
