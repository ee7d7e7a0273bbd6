// Barriers of every group, in order, for two customers of each worker process; what the Postoffice tells.
#include <atomic>
#include <thread>

#include "ps/ps.h"

using namespace ps;

static std::atomic<int> arrived{0};

static void Meet(int customer)
{
    Postoffice *office = Postoffice::Get();
    SimpleApp app(9, customer);
    for (int round = 0; round < 20; ++round) {
        /* The scheduler counts the nodes that report before the barrier; after it all have. */
        if (!IsScheduler())
            app.Wait(app.Request(round, "", kScheduler));
        office->Barrier(customer, kScheduler + kServerGroup + kWorkerGroup);
        if (IsScheduler())
            CHECK_EQ(arrived % (NumServers() + NumWorkers()), 0);
        office->Barrier(customer, kScheduler + kServerGroup + kWorkerGroup);
        if (IsWorker())
            office->Barrier(customer, kWorkerGroup);
        if (IsServer())
            office->Barrier(customer, kServerGroup);
        if (!IsScheduler())
            office->Barrier(customer, kServerGroup + kWorkerGroup);
    }
}

int main()
{
    if (IsScheduler()) {
        Start(0);
        Postoffice *office = Postoffice::Get();
        SimpleApp app(9, 9);
        app.set_request_handle([](const SimpleData &req, SimpleApp *self) {
            arrived++;
            self->Response(req);
        });
        for (int round = 0; round < 20; ++round) {
            office->Barrier(0, 7);
            CHECK_EQ(arrived, (round + 1) * (NumServers() + NumWorkers()));
            office->Barrier(0, 7);
        }
        CHECK(office->GetDeadNodes().empty());
        CHECK(office->van()->my_node().role == Node::SCHEDULER && office->van()->my_node().id == kScheduler);
        CHECK(!office->is_recovery());
        Finalize(0);
        return 0;
    }
    auto run = [](int customer) {
        Start(customer);
        Meet(customer);
        CHECK_EQ(Postoffice::Get()->my_rank(), MyRank());
        CHECK_EQ(Postoffice::Get()->van()->my_node().id,
                 IsServer() ? Postoffice::ServerRankToID(MyRank()) : Postoffice::WorkerRankToID(MyRank()));
        CHECK_GE(MyRank(), 0);
        CHECK_LT(MyRank(), IsServer() ? NumServers() : NumWorkers());
        Finalize(customer);
    };
    if (IsServer()) {
        run(0);
        return 0;
    }
    std::thread other(run, 1);
    run(0);
    other.join();
    return 0;
}
