// SimpleApp made before Start on every node: requests to nodes and to all sums of groups, from the scheduler,
// a worker and a server, with bodies of no bytes and of some MiB; responses with bodies; NumResponse in their
// handle.
#include <atomic>
#include <map>

#include "ps/ps.h"

using namespace ps;

static std::atomic<int> handled{0};

static void ReqHandle(const SimpleData &req, SimpleApp *app)
{
    CHECK_GE(req.head, 1);
    if (req.head == 1)
        CHECK_EQ(req.body, "test");
    ++handled;
    if (req.head == 3)
        app->Response(req, req.body + "/" + std::to_string(Postoffice::Get()->van()->my_node().id));
    else
        app->Response(req);
}

static void Ask(SimpleApp *app, int times)
{
    std::vector<int> groups;
    for (int g = 1; g <= kScheduler + kServerGroup + kWorkerGroup; ++g)
        groups.push_back(g);
    for (int id : Postoffice::Get()->GetNodeIDs(kServerGroup + kWorkerGroup))
        groups.push_back(id);
    for (int g : groups) {
        std::vector<int> ts;
        for (int i = 0; i < times; ++i)
            ts.push_back(app->Request(1, "test", g));
        for (int t : ts) {
            app->Wait(t);
            CHECK_EQ(static_cast<size_t>(app->get_customer()->NumResponse(t)),
                     Postoffice::Get()->GetNodeIDs(g).size());
        }
    }

    app->Wait(app->Request(2, std::string(), 7)); /* no handle counts these by their body */
    const std::string large(5 << 20, 'x');
    app->Wait(app->Request(2, large, kScheduler + kServerGroup));

    static std::map<int, std::string> answers;
    static int last = -1;
    app->set_response_handle([](const SimpleData &res, SimpleApp *self) {
        answers[res.sender] = res.body;
        last = self->get_customer()->NumResponse(res.timestamp);
    });
    app->Wait(app->Request(3, "who", kServerGroup + kWorkerGroup));
    const auto &ids = Postoffice::Get()->GetNodeIDs(kServerGroup + kWorkerGroup);
    CHECK_EQ(answers.size(), ids.size());
    for (int id : ids)
        CHECK_EQ(answers[id], "who/" + std::to_string(id));
    CHECK_EQ(last, static_cast<int>(ids.size()) - 1); /* the one being handled is not counted yet */
}

int main()
{
    const int times = 20;
    SimpleApp app(0, 0);
    app.set_request_handle(ReqHandle);
    Start(0);
    int askers = 0;
    Postoffice *office = Postoffice::Get();
    if (IsScheduler())
        Ask(&app, times);
    office->Barrier(0, kScheduler + kServerGroup + kWorkerGroup);
    ++askers;
    if (IsWorker() && MyRank() == 0)
        Ask(&app, times);
    office->Barrier(0, kScheduler + kServerGroup + kWorkerGroup);
    ++askers;
    if (IsServer() && MyRank() == NumServers() - 1)
        Ask(&app, times);
    ++askers;
    Finalize(0);

    /* Four of the seven sums hold each role, and each server and worker is asked by its id, too. */
    int expected = askers * (4 * times + 1 + (IsScheduler() ? 0 : times + 1) + (IsWorker() ? 0 : 1));
    CHECK_EQ(handled, expected);
    return 0;
}
