#include "env/cores.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* cgroup v2: cpu.max of this process's group contains "max 100000" or "150000 100000". 0: no quota is known. */
static unsigned quota_cores(void)
{
    char line[512];
    char path[600] = "";
    FILE *f = fopen("/proc/self/cgroup", "re");
    if (!f)
        return 0;
    while (fgets(line, sizeof line, f)) {
        if (strncmp(line, "0::", 3) == 0) {
            line[strcspn(line, "\n")] = '\0';
            (void)snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", line + 3);
        }
    }
    (void)fclose(f);
    if (!path[0] || !(f = fopen(path, "re")))
        return 0;
    unsigned long quota = 0, period = 0;
    int fields = fscanf(f, "%lu %lu", &quota, &period);
    (void)fclose(f);
    if (fields != 2 || period == 0)
        return 0;
    unsigned whole = (unsigned)(quota / period);
    return whole ? whole : 1;
}

unsigned cores_usable(void)
{
    static atomic_uint known;
    unsigned cores = atomic_load(&known);
    if (cores)
        return cores;
    cpu_set_t set;
    cores = sched_getaffinity(0, sizeof set, &set) ? 1 : (unsigned)CPU_COUNT(&set);
    unsigned quota = quota_cores();
    if (quota && quota < cores)
        cores = quota;
    if (!cores)
        cores = 1;
    atomic_store(&known, cores);
    return cores;
}
