/*
 * The options that name a live job (--scheduler, --token, --token-file), and the admin handle for it. It never knows
 * what a verb does with the handle. Tests: test/e2e/ring.sh, status.sh, migrations.sh, checkpoint.sh.
 */
#ifndef CMD_ADMIN_TARGET_H
#define CMD_ADMIN_TARGET_H

#include "cmd/options.h"
#include "cmd/token.h"
#include "paramo/admin.h"

/* The job's secret, from --token-file, --token or PARAMO_TOKEN; *token may point into secret. Returns 0, or the exit
 * code after an error is printed. */
int admin_target_token(const struct options *o, char secret[TOKEN_BYTES], const char **token);
/* Opens a handle for the job of --scheduler, with that secret. Returns -1, or the exit code after an error is
 * printed. */
int admin_target_open(const struct options *o, uint64_t wait_s, paramo_admin **admin);

#endif
