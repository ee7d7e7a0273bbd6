/*
 * The Van as applications see it: this node's identity, and sending a Message of one's own (message.h). The
 * transports themselves are Paramo's. Tests: test/ps/raw_customer.cc.
 */
#ifndef PS_INTERNAL_VAN_H_
#define PS_INTERNAL_VAN_H_

#include <atomic>

#include "ps/internal/message.h"

namespace ps
{
class Postoffice;

class Van
{
  public:
    Van()
    {
    }
    Van(const Van &) = delete;
    Van &operator=(const Van &) = delete;

    /* Sends a request (of the customer that meta names) or the response to one; returns the bytes of its
     * data. Throws dmlc::Error if it cannot be sent. */
    int Send(const Message &msg);

    /* This node, as it is known to the cluster; after Start. */
    const Node &my_node() const
    {
        PS_REQUIRE(ready_) << "call ps::Start first";
        return my_node_;
    }
    bool IsReady() const
    {
        return ready_;
    }
    /* A number that grows with each call. */
    int GetTimestamp()
    {
        return timestamp_++;
    }

  private:
    friend class Postoffice;

    Node my_node_;
    std::atomic<bool> ready_{false};
    std::atomic<int> timestamp_{0};
};
} // namespace ps

#include "ps/internal/postoffice.h" /* the functions of Van are there */
#endif
