#include "cmd/admin_target.h"
#include "cmd/exitcode.h"
#include "cmd/token.h"

int admin_target_open(const struct options *o, uint64_t wait_s, paramo_admin **admin)
{
    char secret[TOKEN_BYTES];
    const char *verb = verb_name(o->verb), *token_file = option_text(o, OPT_TOKEN_FILE);
    paramo_admin_options options;
    paramo_admin_options_init(&options);
    options.scheduler = option_text(o, OPT_ADMIN_SCHEDULER);
    options.token = option_text(o, OPT_ADMIN_TOKEN);
    options.timeout_ms = (uint32_t)wait_s * 1000;
    if (token_file) {
        int code = token_read(verb, token_file, secret);
        if (code)
            return code;
        options.token = secret;
    }
    paramo_err err = paramo_admin_open(&options, admin);
    return err ? code_fail(verb, err, paramo_last_error()) : -1;
}
