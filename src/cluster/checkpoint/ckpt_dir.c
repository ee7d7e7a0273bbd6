#include "cluster/checkpoint/ckpt_dir.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>

paramo_err ckpt_dir_normal(const char *dir, char out[FS_PATH_MAX])
{
    size_t len = 0;
    if (dir[0] != '/')
        return err_set(PARAMO_E_INVALID, "a checkpoint's folder must be an absolute path, not '%s'", dir);
    while (*dir) {
        size_t part = strcspn(dir, "/");
        if (part == 2 && dir[0] == '.' && dir[1] == '.') {
            while (len && out[--len] != '/')
                ;
        } else if (part && !(part == 1 && dir[0] == '.')) {
            if (len + 1 + part >= FS_PATH_MAX)
                return err_set(PARAMO_E_TOO_LARGE, "the path is too long: %.64s...", dir);
            out[len++] = '/';
            memcpy(out + len, dir, part);
            len += part;
        }
        dir += part + (dir[part] == '/');
    }
    if (!len)
        out[len++] = '/';
    assert(len < FS_PATH_MAX && out[0] == '/');
    out[len] = '\0';
    return PARAMO_OK;
}

bool ckpt_dir_under(const char *dir, const char *root)
{
    size_t len = strlen(root);
    return len && strncmp(dir, root, len) == 0 && (root[len - 1] == '/' || !dir[len] || dir[len] == '/');
}

struct foreign_files {
    char name[64]; /* the first */
};

static void file_seen(void *arg, const char *name)
{
    struct foreign_files *s = arg;
    size_t digits = strspn(name, "0123456789");
    bool number = digits >= 8 && digits <= 19 && !name[digits];
    if (!number && name[0] != '.' && strcmp(name, "lost+found") != 0 && !s->name[0])
        (void)snprintf(s->name, sizeof s->name, "%s", name);
}

paramo_err ckpt_dir_plain(struct fs *fs, const char *dir)
{
    struct foreign_files s = {0};
    paramo_err err = fs_list(fs, dir, file_seen, &s);
    if (err == PARAMO_E_NOT_FOUND)
        return PARAMO_OK;
    if (!err && s.name[0])
        err = err_set(PARAMO_E_REFUSED,
                      "%s contains files other than checkpoints (%s); to write there, name it in "
                      "--checkpoint-dir or --checkpoint-allow of the scheduler",
                      dir, s.name);
    return err;
}
