/*
 * A machine whose power goes, as far as programs can tell: a library that stands before the system's, in every program that is
 * started below a test. It counts the changes of the disk that they make together. With the one that the test has chosen, the
 * machine stops: a write is done by half, anything else not at all, and no program that makes a change after it lives on.
 *
 * It also notes which files were written and which of them were brought to the disk (`fsync`), in the order in which that
 * happened. The test then takes away what the disk need not have. Nothing is really brought to the disk, as that takes long.
 *
 * POWER_STATE is a file with two numbers of 8 bytes, the changes so far and the one with which it stops. POWER_NOTES is the file
 * of notes, a line each: `C inode size` for a file that was made or emptied, `W inode size` for one that is about to be written
 * to, `S inode size` for one that is brought to the disk, and `A` for everything. POWER_BOOT holds the name of this machine's
 * boot, which is another than that of the test: who starts afterwards does so after a boot.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

struct state {
    _Atomic long changes;
    _Atomic long last;
};

static struct state *state;
static int notes = -1;

static void begin(void) {
    if (state != NULL)
        return;
    const char *where = getenv("POWER_STATE"), *noted = getenv("POWER_NOTES");
    if (where == NULL || noted == NULL)
        return;
    int file = (int)syscall(SYS_openat, AT_FDCWD, where, O_RDWR | O_CLOEXEC, 0);
    notes = (int)syscall(SYS_openat, AT_FDCWD, noted, O_WRONLY | O_APPEND | O_CLOEXEC, 0);
    if (file < 0 || notes < 0)
        return;
    /* Programs close what they do not know, and give its number to another file. */
    int high = fcntl(notes, F_DUPFD_CLOEXEC, 900);
    if (high >= 0) {
        syscall(SYS_close, notes);
        notes = high;
    }
    void *mapped = mmap(NULL, sizeof(struct state), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    syscall(SYS_close, file);
    if (mapped != MAP_FAILED)
        state = mapped;
}

/* One more change. Whether it is the last one, which is made by half; after it, the program is dead. */
static int is_last(void) {
    begin();
    if (state == NULL)
        return 0;
    long now = atomic_fetch_add(&state->changes, 1);
    if (now > state->last)
        _exit(137);
    return now == state->last;
}

static void change(void) {
    if (is_last())
        _exit(137);
}

static void note(char what, int file) {
    struct stat about;
    char line[64];
    begin();
    if (state == NULL || fstat(file, &about) != 0 || !S_ISREG(about.st_mode))
        return;
    int length = snprintf(line, sizeof line, "%c %lu %ld\n", what, (unsigned long)about.st_ino, (long)about.st_size);
    syscall(SYS_write, notes, line, (size_t)length);
}

static int is_file(int file) {
    struct stat about;
    return fstat(file, &about) == 0 && S_ISREG(about.st_mode);
}

static int opened(int folder, const char *path, int flags, mode_t mode) {
    struct stat about;
    const char *boot = getenv("POWER_BOOT");
    if (boot != NULL && strcmp(path, "/proc/sys/kernel/random/boot_id") == 0)
        path = boot;
    int is_new = (flags & O_CREAT) && fstatat(folder, path, &about, AT_SYMLINK_NOFOLLOW) != 0;
    int is_change = (flags & O_ACCMODE) != O_RDONLY && (is_new || (flags & O_TRUNC));
    if (is_change)
        change();
    long file = syscall(SYS_openat, folder, path, flags, mode);
    if (file >= 0 && is_change)
        note('C', (int)file);
    return (int)file;
}

#define MODE                                         \
    mode_t mode = 0;                                 \
    if (flags & (O_CREAT | O_TMPFILE)) {             \
        va_list rest;                                \
        va_start(rest, flags);                       \
        mode = va_arg(rest, mode_t);                 \
        va_end(rest);                                \
    }

int open(const char *path, int flags, ...) { MODE return opened(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE return opened(AT_FDCWD, path, flags, mode); }
int openat(int folder, const char *path, int flags, ...) { MODE return opened(folder, path, flags, mode); }
int openat64(int folder, const char *path, int flags, ...) { MODE return opened(folder, path, flags, mode); }
int creat(const char *path, mode_t mode) { return opened(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }
int creat64(const char *path, mode_t mode) { return opened(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }

ssize_t write(int file, const void *bytes, size_t length) {
    if (is_file(file)) {
        int last = is_last();
        note('W', file);
        if (last) {
            syscall(SYS_write, file, bytes, length / 2);
            _exit(137);
        }
    }
    return syscall(SYS_write, file, bytes, length);
}

ssize_t writev(int file, const struct iovec *parts, int count) {
    if (is_file(file)) {
        change();
        note('W', file);
    }
    return syscall(SYS_writev, file, parts, count);
}

static ssize_t written_at(int file, const void *bytes, size_t length, off_t at) {
    if (is_file(file)) {
        int last = is_last();
        note('W', file);
        if (last) {
            syscall(SYS_pwrite64, file, bytes, length / 2, at);
            _exit(137);
        }
    }
    return syscall(SYS_pwrite64, file, bytes, length, at);
}

ssize_t pwrite(int file, const void *bytes, size_t length, off_t at) { return written_at(file, bytes, length, at); }
ssize_t pwrite64(int file, const void *bytes, size_t length, off_t at) { return written_at(file, bytes, length, at); }

ssize_t copy_file_range(int from, off_t *at, int to, off_t *there, size_t length, unsigned flags) {
    change();
    note('W', to);
    return syscall(SYS_copy_file_range, from, at, to, there, length, flags);
}

static int cut_to(int file, off_t length) {
    change();
    int done = (int)syscall(SYS_ftruncate, file, length);
    note('C', file);
    return done;
}

int ftruncate(int file, off_t length) { return cut_to(file, length); }
int ftruncate64(int file, off_t length) { return cut_to(file, length); }

int rename(const char *from, const char *to) { change(); return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0); }
int renameat(int one, const char *from, int other, const char *to) {
    change();
    return (int)syscall(SYS_renameat2, one, from, other, to, 0);
}
int renameat2(int one, const char *from, int other, const char *to, unsigned flags) {
    change();
    return (int)syscall(SYS_renameat2, one, from, other, to, flags);
}
int link(const char *from, const char *to) { change(); return (int)syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0); }
int linkat(int one, const char *from, int other, const char *to, int flags) {
    change();
    return (int)syscall(SYS_linkat, one, from, other, to, flags);
}
int symlink(const char *target, const char *path) { change(); return (int)syscall(SYS_symlinkat, target, AT_FDCWD, path); }
int symlinkat(const char *target, int folder, const char *path) {
    change();
    return (int)syscall(SYS_symlinkat, target, folder, path);
}
int unlink(const char *path) { change(); return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0); }
int unlinkat(int folder, const char *path, int flags) { change(); return (int)syscall(SYS_unlinkat, folder, path, flags); }
int rmdir(const char *path) { change(); return (int)syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR); }
int mkdir(const char *path, mode_t mode) { change(); return (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode); }
int mkdirat(int folder, const char *path, mode_t mode) { change(); return (int)syscall(SYS_mkdirat, folder, path, mode); }

int fsync(int file) { note('S', file); return 0; }
int fdatasync(int file) { note('S', file); return 0; }
/* git does so with many files, and then `fsync` with one. */
int sync_file_range(int file, off_t at, off_t length, unsigned flags) {
    (void)at, (void)length, (void)flags;
    note('S', file);
    return 0;
}
int syncfs(int file) {
    (void)file;
    begin();
    if (state != NULL)
        syscall(SYS_write, notes, "A\n", (size_t)2);
    return 0;
}
void sync(void) { syncfs(0); }
