/*
 * The options that say where a live job is, and the admin handle for it. Tests: test/e2e/ring.sh, status.sh,
 * migrations.sh, checkpoint.sh.
 */
#ifndef CMD_ADMIN_TARGET_H
#define CMD_ADMIN_TARGET_H

#include "cmd/options.h"
#include "cmd/token.h"
#include "paramo/admin.h"

/* The job's secret, from --token-file, --token or PARAMO_TOKEN; *token may lie in secret. 0, or the exit code after
 * one line that says what is wrong. */
int admin_target_token(const struct options *o, char secret[TOKEN_BYTES], const char **token);
/* The secret comes from --token-file, --token or PARAMO_TOKEN. -1, or the exit code after one line that says
 * what is wrong. */
int admin_target_open(const struct options *o, uint64_t wait_s, paramo_admin **admin);

#endif
