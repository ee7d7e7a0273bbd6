/*
 * ps-lite's programming interface on Paramo: programs written for ps-lite compile against this header
 * unchanged, and link with -lparamo. docs/MIGRATING.md says what is the same, what is better and what
 * differs. Header-only C++ from C++11 on; everything stands on Paramo's public C API. Tests: test/ps.
 */
#ifndef PS_PS_H_
#define PS_PS_H_

#include <functional>

#include "ps/base.h"
#include "ps/kv_app.h"
#include "ps/simple_app.h"

namespace ps
{
/* Of these, all but MyRank are known before Start, from the environment. */
inline int NumWorkers()
{
    return Postoffice::Get()->num_workers();
}
inline int NumServers()
{
    return Postoffice::Get()->num_servers();
}
inline bool IsWorker()
{
    return Postoffice::Get()->is_worker() != 0;
}
inline bool IsServer()
{
    return Postoffice::Get()->is_server() != 0;
}
inline bool IsScheduler()
{
    return Postoffice::Get()->is_scheduler() != 0;
}
/* In the node's group: 0 up to NumWorkers() or NumServers(). */
inline int MyRank()
{
    return Postoffice::Get()->my_rank();
}

/* Joins the cluster; returns when all nodes have. Each customer of a process that is a thread of its own
 * calls it. */
inline void Start(int customer_id, const char *argv0 = nullptr)
{
    Postoffice::Get()->Start(customer_id, argv0, true);
}
inline void Start(const char *argv0 = nullptr)
{
    Start(0, argv0);
}
/* The same without the barrier at its end: as in ps-lite it returns when all nodes have registered. */
inline void StartAsync(int customer_id, const char *argv0 = nullptr)
{
    Postoffice::Get()->Start(customer_id, argv0, false);
}
inline void StartAsync(const char *argv0 = nullptr)
{
    StartAsync(0, argv0);
}

/* Ends the customer's part, and with customer 0 the process's: waits for the requests in flight and, with
 * do_barrier, for all nodes. */
inline void Finalize(int customer_id, const bool do_barrier = true)
{
    Postoffice::Get()->Finalize(customer_id, do_barrier);
}
inline void Finalize()
{
    Finalize(0);
}
/* As in ps-lite before customers had numbers. */
inline void Finalize(bool do_barrier)
{
    Finalize(0, do_barrier);
}

/* Called when Finalize(0) is done, all that were registered, in order. */
inline void RegisterExitCallback(const std::function<void()> &cb)
{
    Postoffice::Get()->RegisterExitCallback(cb);
}

/* ---- BytePS' fork of ps-lite has these ---- */

inline Node::Role GetRole(const std::string &role)
{
    PS_REQUIRE(role == "worker" || role == "server" || role == "scheduler" || role == "joint")
        << "GetRole: " << role << " is none of worker, server, scheduler, joint";
    return role == "worker"   ? Node::WORKER
           : role == "server" ? Node::SERVER
           : role == "joint"  ? Node::JOINT
                              : Node::SCHEDULER;
}
/* rank: the wanted one, which the node gets if it is free; -1: any. */
inline void StartPS(int customer_id, Node::Role role, int rank, bool do_barrier, const char *argv0 = nullptr)
{
    Postoffice::Get()->Start(customer_id, role, rank, do_barrier, argv0);
}
inline void Finalize(int customer_id, Node::Role, const bool do_barrier = true)
{
    Postoffice::Get()->Finalize(customer_id, do_barrier);
}
} // namespace ps
#endif
