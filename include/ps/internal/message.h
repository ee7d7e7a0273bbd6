/*
 * What applications see of nodes and messages: ps-lite's structs with its fields. Programs that write their
 * own app on a Customer fill in a Message and give it to Postoffice::Get()->van()->Send, and get Messages in
 * their handle. Up to three data arrays and the body travel as a Paramo message (paramo/app.h); node
 * management does not: Control is there for programs that ask whether it is empty. Tests:
 * test/ps/raw_customer.cc.
 */
#ifndef PS_INTERNAL_MESSAGE_H_
#define PS_INTERNAL_MESSAGE_H_

#include <cstdint>
#include <limits>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

#include "ps/base.h"
#include "ps/sarray.h"

namespace ps
{
enum DataType { CHAR, INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64, FLOAT, DOUBLE, OTHER };

static const char *const DataTypeName[] = {"CHAR",   "INT8",   "INT16",  "INT32", "INT64",  "UINT8",
                                           "UINT16", "UINT32", "UINT64", "FLOAT", "DOUBLE", "OTHER"};

template <typename V, typename W> inline bool SameType()
{
    return std::is_same<typename std::remove_cv<V>::type, W>::value;
}

template <typename V> DataType GetDataType()
{
    return SameType<V, int8_t>()     ? INT8
           : SameType<V, int16_t>()  ? INT16
           : SameType<V, int32_t>()  ? INT32
           : SameType<V, int64_t>()  ? INT64
           : SameType<V, uint8_t>()  ? UINT8
           : SameType<V, uint16_t>() ? UINT16
           : SameType<V, uint32_t>() ? UINT32
           : SameType<V, uint64_t>() ? UINT64
           : SameType<V, float>()    ? FLOAT
           : SameType<V, double>()   ? DOUBLE
           : SameType<V, char>()     ? CHAR
                                     : OTHER;
}

namespace internal
{
/* A constant with an address, in a header (C++14 has no inline variables). */
template <typename Unused> struct Empty {
    static const int kEmpty;
};
template <typename Unused> const int Empty<Unused>::kEmpty = std::numeric_limits<int>::max();
} // namespace internal

struct Node : public internal::Empty<void> {
    enum Role { SERVER, WORKER, SCHEDULER, JOINT }; /* JOINT: of BytePS' fork; no node is both here */

    std::string DebugString() const
    {
        std::ostringstream text;
        text << "role=" << (role == SERVER ? "server" : role == WORKER ? "worker" : "scheduler");
        if (id != kEmpty)
            text << ", id=" << id;
        text << ", ip=" << hostname << ", port=" << port << ", is_recovery=" << is_recovery;
        return text.str();
    }
    std::string ShortDebugString() const
    {
        std::string text = role == SERVER ? "S" : role == WORKER ? "W" : "H";
        return id == kEmpty ? text : text + "[" + std::to_string(id) + "]";
    }

    Role role = WORKER;
    int id = kEmpty;
    int customer_id = 0;
    std::string hostname;
    int port = kEmpty;
    bool is_recovery = false;
};

struct Control {
    enum Command { EMPTY, TERMINATE, ADD_NODE, BARRIER, ACK, HEARTBEAT };

    bool empty() const
    {
        return cmd == EMPTY;
    }
    std::string DebugString() const
    {
        return empty() ? std::string() : "cmd=" + std::to_string(static_cast<int>(cmd));
    }

    Command cmd = EMPTY;
    std::vector<Node> node;
    int barrier_group = 0;
    uint64_t msg_sig = 0;
};

struct Meta : public internal::Empty<void> {
    std::string DebugString() const
    {
        std::ostringstream text;
        if (sender == kEmpty)
            text << "?";
        else
            text << sender;
        text << " => " << recver << ". Meta: request=" << request;
        if (timestamp != kEmpty)
            text << ", timestamp=" << timestamp;
        if (control.empty())
            text << ", app_id=" << app_id << ", customer_id=" << customer_id << ", simple_app=" << simple_app
                 << ", push=" << push << ", pull=" << pull;
        else
            text << ", control={ " << control.DebugString() << " }";
        if (head != kEmpty)
            text << ", head=" << head;
        if (!body.empty())
            text << ", body=" << body;
        if (!data_type.empty()) {
            text << ", data_type={";
            for (DataType type : data_type)
                text << ' ' << DataTypeName[type];
            text << " }";
        }
        return text.str();
    }

    int head = kEmpty;
    int app_id = kEmpty;
    int customer_id = kEmpty;
    int timestamp = kEmpty;
    int sender = kEmpty;
    int recver = kEmpty;
    bool request = false;
    bool push = false;
    bool pull = false;
    bool simple_app = false;
    std::string body;
    std::vector<DataType> data_type; /* of each array of data */
    Control control;
    int data_size = 0; /* bytes in data */
    int priority = 0;
};

struct Message {
    template <typename V> void AddData(const SArray<V> &val)
    {
        PS_REQUIRE(data.size() == meta.data_type.size());
        meta.data_type.push_back(GetDataType<V>());
        data.push_back(SArray<char>(val));
        meta.data_size += static_cast<int>(data.back().size());
    }
    std::string DebugString() const
    {
        std::ostringstream text;
        text << meta.DebugString();
        if (!data.empty()) {
            text << " Body:";
            for (const auto &array : data)
                text << " data_size=" << array.size();
        }
        return text.str();
    }

    Meta meta;
    std::vector<SArray<char>> data;
};
} // namespace ps
#endif
