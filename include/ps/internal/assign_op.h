/*
 * An assignment chosen at run time: a = b, a += b and so on. Tests: test/ps/unit_parallel.cc.
 */
#ifndef PS_INTERNAL_ASSIGN_OP_H_
#define PS_INTERNAL_ASSIGN_OP_H_

#include <type_traits>

#include "ps/internal/utils.h"

namespace ps
{
enum AssignOp {
    ASSIGN, /* a = b */
    PLUS,   /* a += b */
    MINUS,  /* a -= b */
    TIMES,  /* a *= b */
    DIVIDE, /* a /= b */
    AND,    /* a &= b, integers only, as are the two below */
    OR,     /* a |= b */
    XOR     /* a ^= b */
};

/* Applies op to *right with left: *right op= left. Not for AND, OR, XOR. */
template <typename T> inline void AssignFunc(const T &left, AssignOp op, T *right)
{
    switch (op) {
    case ASSIGN:
        *right = left;
        return;
    case PLUS:
        *right = static_cast<T>(*right + left);
        return;
    case MINUS:
        *right = static_cast<T>(*right - left);
        return;
    case TIMES:
        *right = static_cast<T>(*right * left);
        return;
    case DIVIDE:
        *right = static_cast<T>(*right / left);
        return;
    case AND:
    case OR:
    case XOR:
        break;
    }
    PS_FAIL() << "AssignFunc: operation " << static_cast<int>(op) << " is for integers (AssignFuncInt)";
}

/* The same with AND, OR and XOR. */
template <typename T> inline void AssignFuncInt(const T &left, AssignOp op, T *right)
{
    static_assert(std::is_integral<T>::value, "AssignFuncInt is for integers");
    switch (op) {
    case AND:
        *right = static_cast<T>(*right & left);
        return;
    case OR:
        *right = static_cast<T>(*right | left);
        return;
    case XOR:
        *right = static_cast<T>(*right ^ left);
        return;
    case ASSIGN:
    case PLUS:
    case MINUS:
    case TIMES:
    case DIVIDE:
        break;
    }
    AssignFunc(left, op, right);
}
} // namespace ps
#endif
