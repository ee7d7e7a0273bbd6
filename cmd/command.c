#include "cmd/command.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

const char *command_path(const char *name)
{
    static char self[4096];
    if (strcmp(name, "paramo") != 0)
        return name;
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    if (len <= 0)
        return name;
    self[len] = '\0';
    return self;
}

int command_exit_code(int errno_value)
{
    switch (errno_value) {
    case ENOENT:
        return 127;
    case EACCES:
    case ENOEXEC:
        return 126;
    default:
        return 1;
    }
}
