/*
 * The order of MXNet's kvstore sources: dmlc-core, the macros and types that MXNet and mshadow put into the
 * global namespace, then ps/ps.h.
 */
#ifndef TEST_PS_MXNET_H
#define TEST_PS_MXNET_H
#include "dmlc.h"

#include <cstdint>

#define DMLC_USE_CXX11         1
#define DMLC_LOG_STACK_TRACE   0
#define MXNET_USE_DIST_KVSTORE 1
#define MSHADOW_DIST_PS        0
#define MSHADOW_USE_CUDA       0
#define DISALLOW_COPY_AND_ASSIGN(T)                                                                          \
    T(T const &) = delete;                                                                                   \
    T &operator=(T const &) = delete
#define CHECK_CALL(x) CHECK((x) == 0)
#endif
