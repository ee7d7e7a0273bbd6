#include "cmd/admin_target.h"
#include "cmd/exitcode.h"

int admin_target_token(const struct options *o, char secret[TOKEN_BYTES], const char **token)
{
    const char *file = option_text(o, OPT_TOKEN_FILE);
    if (file && option_given(o, OPT_ADMIN_TOKEN))
        return options_wrong(o, "--token and --token-file both give the secret: give one of them");
    *token = file ? secret : option_text(o, OPT_ADMIN_TOKEN);
    return file ? token_read(verb_name(o->verb), file, secret) : 0;
}

int admin_target_open(const struct options *o, uint64_t wait_s, paramo_admin **admin)
{
    char secret[TOKEN_BYTES];
    const char *verb = verb_name(o->verb);
    paramo_admin_options options;
    paramo_admin_options_init(&options);
    options.scheduler = option_text(o, OPT_ADMIN_SCHEDULER);
    options.timeout_ms = (uint32_t)wait_s * 1000;
    int code = admin_target_token(o, secret, &options.token);
    if (code)
        return code;
    paramo_err err = paramo_admin_open(&options, admin);
    return err ? code_fail(verb, err, paramo_last_error()) : -1;
}
