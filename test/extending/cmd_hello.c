/* paramo hello: greets. */
#include "cmd/exitcode.h"
#include "cmd/options.h"
#include "cmd/verbs.h"

#define USAGE "usage: paramo hello [--times N]\n\nPrints a greeting.\n"

int cmd_hello(int argc, char **argv)
{
    struct options o;
    int code = options_parse(&o, VERB_HELLO, argc, argv, USAGE, CODE_HELP);
    if (code < 0) {
        code = CODE_DONE;
        for (uint64_t i = 0; i < option_number(&o, OPT_TIMES); i++)
            if (puts("hello") < 0)
                code = CODE_FAILED;
    }
    options_free(&o);
    return code;
}
