#include "cmd/exitcode.h"

#include <stdio.h>

int code_fail(const char *verb, paramo_err err, const char *message)
{
    (void)fprintf(stderr, "paramo %s: %s\n", verb, message);
    switch (err) {
    case PARAMO_E_INVALID: /* a wrong setting that only the job could detect */
        return CODE_USAGE;
    case PARAMO_E_NOT_FOUND:
    case PARAMO_E_IO:
    case PARAMO_E_FORMAT:
    case PARAMO_E_CORRUPT:
        return CODE_DATA;
    case PARAMO_E_INTERRUPTED:
        return CODE_INTERRUPTED;
    case PARAMO_E_TIMEOUT:
    case PARAMO_E_NODE_LOST:
    case PARAMO_E_DATA_LOST:
    case PARAMO_E_BARRIER:
    case PARAMO_E_CONNECT:
    case PARAMO_E_CONNECTION_REFUSED:
    case PARAMO_E_DISCONNECTED:
    case PARAMO_E_PROTOCOL:
    case PARAMO_E_REFUSED:
    case PARAMO_E_TOKEN:
    case PARAMO_E_VERSION:
    case PARAMO_E_ADDRESS:
    case PARAMO_E_ADDRESS_IN_USE:
    case PARAMO_E_FENCED:
    case PARAMO_E_SHUTDOWN:
    case PARAMO_E_NO_SCHEDULER:
    case PARAMO_E_FULL:
        return CODE_CLUSTER;
    default:
        return CODE_FAILED;
    }
}
