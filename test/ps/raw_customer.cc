// An app of the program's own on Customer, Message and Van: the way to write one's own protocol.
#include "ps/internal/customer.h"
#include "ps/internal/message.h"
#include "ps/internal/postoffice.h"
#include "ps/internal/van.h"
#include "ps/ps.h"

class Echo
{
  public:
    explicit Echo(int id) : customer_(id, id, std::bind(&Echo::Process, this, std::placeholders::_1))
    {
    }
    int Ask(int to, const std::string &body, const ps::SArray<float> &a, const ps::SArray<int64_t> &b)
    {
        int ts = customer_.NewRequest(to);
        for (int id : ps::Postoffice::Get()->GetNodeIDs(to)) {
            ps::Message msg;
            msg.meta.app_id = customer_.app_id();
            msg.meta.customer_id = customer_.customer_id();
            msg.meta.request = true;
            msg.meta.push = true;
            msg.meta.head = 77;
            msg.meta.timestamp = ts;
            msg.meta.recver = id;
            msg.meta.body = body;
            msg.AddData(a);
            msg.AddData(b);
            CHECK_EQ(ps::Postoffice::Get()->van()->Send(msg), static_cast<int>(4 * a.size() + 8 * b.size()));
        }
        return ts;
    }
    ps::Customer *customer()
    {
        return &customer_;
    }
    int sum = 0, answers = 0;

  private:
    void Process(const ps::Message &msg)
    {
        CHECK(msg.meta.control.empty());
        if (!msg.meta.request) {
            CHECK_EQ(msg.meta.body, "fine");
            ps::SArray<int64_t> back(msg.data[0]);
            sum += static_cast<int>(back[0]);
            answers++;
            return;
        }
        CHECK(msg.meta.push && !msg.meta.pull && !msg.meta.simple_app);
        CHECK_EQ(msg.meta.head, 77);
        CHECK_EQ(msg.data.size(), 2u);
        CHECK_EQ(msg.meta.data_type[0], ps::FLOAT);
        CHECK_EQ(msg.meta.data_type[1], ps::INT64);
        ps::SArray<float> a(msg.data[0]);
        ps::SArray<int64_t> b(msg.data[1]);
        ps::Message res;
        res.meta.app_id = msg.meta.app_id;
        res.meta.customer_id = msg.meta.customer_id;
        res.meta.request = false;
        res.meta.timestamp = msg.meta.timestamp;
        res.meta.recver = msg.meta.sender;
        res.meta.body = "fine";
        res.AddData(ps::SArray<int64_t>(1, static_cast<int64_t>(a.size()) + b[0]));
        ps::Postoffice::Get()->van()->Send(res);
    }
    ps::Customer customer_;
};

int main()
{
    ps::Start(0);
    Echo echo(4);
    if (!ps::IsServer()) {
        const int rounds = 20;
        std::vector<int> ts;
        for (int i = 0; i < rounds; ++i)
            ts.push_back(
                echo.Ask(ps::kServerGroup, std::string(i, 'b'), ps::SArray<float>(i), {int64_t(1000)}));
        for (int t : ts)
            echo.customer()->WaitRequest(t);
        CHECK_EQ(echo.answers, rounds * ps::NumServers());
        CHECK_EQ(echo.sum, ps::NumServers() * (1000 * rounds + rounds * (rounds - 1) / 2));
        CHECK_EQ(echo.customer()->NumResponse(ts.back()), ps::NumServers());
    }
    ps::Finalize(0);
    return 0;
}
