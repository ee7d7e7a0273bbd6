// usage PROGRAM ARGUMENT...: runs it, and prints "usage SECONDS KIB": its processor time, and the most memory that was
// resident. Ends with its exit code. A small program, because a child's memory counts what its parent had resident.
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static double seconds(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

int main(int argc, char *argv[])
{
    int status;
    struct rusage used;
    pid_t pid = argc > 1 ? fork() : -1;
    if (pid < 0)
        return 127;
    if (pid == 0) {
        (void)execvp(argv[1], argv + 1);
        perror(argv[1]);
        _exit(127);
    }
    if (wait4(pid, &status, 0, &used) != pid)
        return 127;
    printf("usage %.6f %ld\n", seconds(used.ru_utime) + seconds(used.ru_stime), used.ru_maxrss);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
