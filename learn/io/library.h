/*
 * Converts an error of the library into one of learn/, with its code and message.
 */
#ifndef LEARN_IO_LIBRARY_H
#define LEARN_IO_LIBRARY_H

#include "learn/io/lerr.h"

#include "paramo/paramo.h"

LEARN_MUST_USE static inline paramo_err from_library(paramo_err err)
{
    return err == PARAMO_OK ? err : lerr(err, "%s", paramo_last_error());
}

#endif
