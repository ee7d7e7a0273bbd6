#include "cmd/admin_target.h"
#include "cmd/exitcode.h"
#include "cmd/token.h"

#include <stdlib.h>

int admin_target_open(const char *verb, const struct admin_target *where, uint64_t wait_s,
                      paramo_admin **admin)
{
    char secret[TOKEN_BYTES];
    paramo_admin_options options;
    paramo_admin_options_init(&options);
    options.scheduler = where->scheduler;
    options.token = where->token ? where->token : getenv("PARAMO_TOKEN");
    options.timeout_ms = (uint32_t)wait_s * 1000;
    if (where->token_file) {
        int code = token_read(verb, where->token_file, secret);
        if (code)
            return code;
        options.token = secret;
    }
    paramo_err err = paramo_admin_open(&options, admin);
    return err ? code_fail(verb, err, paramo_last_error()) : -1;
}
