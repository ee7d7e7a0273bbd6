// Sanitizers: address; it has one thread.
#include "api.h"
#include "expect.h"
#include "ps/ps.h"

int main()
{
    unsetenv("PS_TEST_A");
    setenv("PS_TEST_B", "12", 1);
    auto *env = ps::Environment::Get();
    EXPECT(env->find("PS_TEST_A") == nullptr);
    EXPECT(std::string(env->find("PS_TEST_B")) == "12");
    EXPECT(ps::GetEnv("PS_TEST_B", 3) == 12 && ps::GetEnv("PS_TEST_A", 3) == 3);
    EXPECT(ps::GetEnv("PS_TEST_A", std::string("x")) == "x");
    const char *text = ps::GetEnv("PS_TEST_A", "default"); /* as ps-lite's own van does */
    EXPECT(std::string(text) == "default" && std::string(ps::GetEnv("PS_TEST_B", "default")) == "12");
    EXPECT(ps::GetEnv("PS_TEST_A", 1.5) == 1.5 && ps::GetEnv("PS_TEST_A", true) &&
           ps::GetEnv("PS_TEST_A", 7l) == 7l);
    setenv("PS_TEST_C", "0.25", 1);
    EXPECT(ps::GetEnv("PS_TEST_C", 1.5) == 0.25 && ps::GetEnv("PS_TEST_C", 1.5f) == 0.25f);
    struct Text {
        std::string text;
        explicit Text(const char *from) : text(from)
        {
        }
    };
    EXPECT(ps::GetEnv("PS_TEST_C", Text("1")).text == "0.25");
    setenv("PS_TEST_C", "true", 1);
    EXPECT(ps::GetEnv("PS_TEST_C", false) && ps::GetEnv("PS_TEST_B", false));
    setenv("PS_TEST_C", "0", 1);
    EXPECT(!ps::GetEnv("PS_TEST_C", true));
    EXPECT(ps::Environment::Init({{"PS_TEST_B", "13"}}) == env);
    EXPECT(ps::GetEnv("PS_TEST_B", 3) == 13);

    /* Without a cluster: roles and numbers come from the environment, even after the first question. */
    EXPECT_THROW(ps::IsWorker());
    EXPECT_THROW(ps::NumServers());
    ps::Environment::Init({{"DMLC_ROLE", "server"}, {"DMLC_NUM_SERVER", "3"}, {"DMLC_NUM_WORKER", "2"}});
    EXPECT(ps::IsServer() && !ps::IsWorker() && !ps::IsScheduler());
    EXPECT(ps::NumServers() == 3 && ps::NumWorkers() == 2);
    EXPECT_THROW(ps::MyRank());
    EXPECT_THROW(ps::Start(0)); /* no address of a scheduler */
    ps::Finalize(0);            /* nothing was started */

    ps::Postoffice *office = ps::Postoffice::Get();
    EXPECT(office->GetNodeIDs(ps::kServerGroup) == std::vector<int>({8, 10, 12}));
    EXPECT(office->GetNodeIDs(ps::kWorkerGroup) == std::vector<int>({9, 11}));
    EXPECT(office->GetNodeIDs(ps::kScheduler) == std::vector<int>({1}));
    EXPECT(office->GetNodeIDs(7).size() == 6 && office->GetNodeIDs(10) == std::vector<int>({10}));
    EXPECT_THROW(office->GetNodeIDs(14));
    EXPECT(ps::Postoffice::WorkerRankToID(1) == 11 && ps::Postoffice::ServerRankToID(2) == 12);
    EXPECT(ps::Postoffice::IDtoRank(12) == 2 && ps::Postoffice::IDtoRank(9) == 0 &&
           ps::Postoffice::IDtoRank(1) == 0);
    const std::vector<ps::Range> &ranges = office->GetServerKeyRanges();
    EXPECT(ranges.size() == 3 && ranges[0].begin() == 0 && ranges[2].end() == ps::kMaxKey);
    EXPECT(ranges[0].end() == ps::kMaxKey / 3 && ranges[1].begin() == ranges[0].end());

    /* A worker without a node: pushing is a mistake that is said. */
    ps::KVWorker<float> early(0, 0);
    EXPECT_THROW(early.Push({1}, {1.0f}));
    EXPECT_THROW(ps::KVWorker<float>(0, 0)); /* app and customer are taken */
    EXPECT(office->GetCustomer(0, 0) == early.get_customer() && office->GetCustomer(0, 1) == nullptr);

    api::OwnApp own;
    ps::SimpleApp *const base = &own;
    EXPECT(base->Request(1, "", ps::kServerGroup) == 0 && base->get_customer() == nullptr);
    return Failures("environment");
}
