/* Runs a command, some of whose system calls fail: a supervisor by seccomp(2)'s user notification. It sees the calls that go past libc
 * too, of the command and of all that comes of it, and says for each whether it goes on.
 *
 *     faults REPORT ROLE CALLS HOW EVERY FIRST -- COMMAND...
 *
 * ROLE: main, warden, agent or any, of the processes that run COMMAND's program. CALLS: names with commas. HOW: `count`, `short`, or the
 * number of an errno. The call number FIRST fails, and each EVERYth after it; with 0 none. REPORT gets lines `CALL CALLED FAILED`.
 * It must not change what a call that goes on does. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CALL(name) {#name, SYS_##name, 0, 0}
static struct { const char *name; int number; long called, failed; } calls[] = {
#ifdef SYS_open /* x86-64 has these beside those of all */
    CALL(open), CALL(stat), CALL(lstat), CALL(mkdir), CALL(rmdir), CALL(unlink), CALL(rename), CALL(readlink), CALL(fork), CALL(vfork),
    CALL(poll), CALL(epoll_wait), CALL(pipe), CALL(dup2),
#endif
    CALL(openat), CALL(read), CALL(write), CALL(readv), CALL(writev), CALL(pread64), CALL(pwrite64), CALL(fsync), CALL(fdatasync),
    CALL(ftruncate), CALL(lseek), CALL(flock), CALL(fcntl), CALL(getdents64), CALL(statx), CALL(fstat), CALL(newfstatat), CALL(readlinkat),
    CALL(mkdirat), CALL(unlinkat), CALL(renameat), CALL(renameat2), CALL(linkat), CALL(symlinkat), CALL(fchmod), CALL(fchmodat), CALL(copy_file_range),
    CALL(sendfile), CALL(getcwd), CALL(ioctl), CALL(dup), CALL(dup3), CALL(socket), CALL(socketpair), CALL(bind), CALL(listen),
    CALL(connect), CALL(accept4), CALL(sendto), CALL(recvfrom), CALL(sendmsg), CALL(recvmsg), CALL(shutdown), CALL(setsockopt),
    CALL(getsockopt), CALL(getsockname), CALL(epoll_create1), CALL(epoll_ctl), CALL(epoll_pwait), CALL(epoll_pwait2), CALL(ppoll),
    CALL(eventfd2), CALL(timerfd_create), CALL(timerfd_settime), CALL(signalfd4), CALL(pipe2), CALL(io_uring_setup), CALL(io_uring_enter),
    CALL(io_uring_register), CALL(clone), CALL(clone3), CALL(execve), CALL(wait4), CALL(waitid), CALL(pidfd_open),
    CALL(pidfd_send_signal), CALL(kill), CALL(setsid), CALL(setpgid), CALL(prctl), CALL(prlimit64), CALL(sched_setaffinity),
    CALL(sched_getaffinity), CALL(perf_event_open), CALL(getrandom), CALL(mmap), CALL(memfd_create), CALL(unshare), CALL(setns),
    CALL(close_range), CALL(sysinfo), CALL(uname), CALL(clock_nanosleep), CALL(getsid), CALL(getpgid), CALL(statfs), CALL(fstatfs),
};
enum { CALLS = sizeof calls / sizeof *calls, PATIENCE_S = 20, SHORT = -1, COUNT = 0 };

static char **command;
static const char *role;
static struct stat program;
static int chosen[CALLS], chosen_count, how, listener = -1;
static long every, first, seen;
static pid_t child = -1;
static sig_atomic_t ready;

static void fail(const char *what) { perror(what), exit(125); }

/* In a thread of its own, which alone has the filter and gives it to its children; so the supervisor has none. */
static void *start(void *unused) {
    struct sock_filter steps[2 * CALLS + 2] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0)};
    unsigned short count = 1;
    for (int i = 0; i < chosen_count; i++) {
        steps[count++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[chosen[i]].number, 0, 1);
        steps[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
    }
    steps[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog filter = {count, steps};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    listener = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &filter);
    __atomic_store_n(&ready, 1, __ATOMIC_SEQ_CST);
    if (listener < 0) return unused;
    pid_t made = fork();
    if (made == 0) {
        execvp(command[0], command);
        _exit(127);
    }
    __atomic_store_n(&child, made, __ATOMIC_SEQ_CST);
    return unused;
}

/* Whether the process has the role. A thread's number will do. */
static int plays(pid_t pid) {
    char path[64], words[4096], *second;
    struct stat own;
    snprintf(path, sizeof path, "/proc/%d/exe", pid);
    if (stat(path, &own) || own.st_ino != program.st_ino || own.st_dev != program.st_dev) return 0;
    snprintf(path, sizeof path, "/proc/%d/cmdline", pid);
    int file = open(path, O_RDONLY);
    ssize_t length = read(file, words, sizeof words - 1);
    close(file);
    if (length <= 0) return 0;
    words[length] = 0, second = words + strlen(words) + 1;
    const char *played = second >= words + length ? "main"
        : !strcmp(second, "__warden") ? "warden" : !strcmp(second, "remote-agent") ? "agent" : "main";
    return !strcmp(role, "any") || !strcmp(role, played);
}

/* Whether the loader calls: there is no program yet that could say anything. */
static int loads(pid_t pid, __u64 at) {
    char path[64], line[512];
    int is_loader = 0;
    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    FILE *maps = fopen(path, "re");
    unsigned long long begin, end;
    while (maps && fgets(line, sizeof line, maps) && sscanf(line, "%llx-%llx", &begin, &end) == 2)
        if (begin <= at && at < end) is_loader = !!strstr(line, "/ld-linux");
    if (maps) fclose(maps);
    return is_loader;
}

/* Does up to 7 bytes of a transfer in its process's stead; -1 where it must do it itself. */
static long few(const struct seccomp_notif *asked) {
    char path[64], line[256], bytes[7];
    struct pollfd ours = {-1, 0, 0};
    int pid = 0, number = asked->data.nr, writes = number == SYS_write || number == SYS_sendto || number == SYS_writev;
    const __u64 *args = asked->data.args;
    struct iovec theirs = {(void *)args[1], args[2]}, own = {bytes, sizeof bytes}, list = {(void *)args[1], sizeof theirs};
    struct iovec into = {&theirs, sizeof theirs};
    snprintf(path, sizeof path, "/proc/%d/status", asked->pid);
    FILE *status = fopen(path, "re");
    while (status && fgets(line, sizeof line, status) && sscanf(line, "Tgid: %d", &pid) != 1) {}
    if (status) fclose(status);
    if (number == SYS_readv || number == SYS_writev)
        if (process_vm_readv(pid, &into, 1, &list, 1, 0) != sizeof theirs) return -1;
    if (theirs.iov_len < 2) return -1;
    if (own.iov_len >= theirs.iov_len) own.iov_len = theirs.iov_len - 1;
    theirs.iov_len = own.iov_len;
    int process = syscall(SYS_pidfd_open, pid, 0);
    ours.fd = syscall(SYS_pidfd_getfd, process, (int)args[0], 0);
    ours.events = writes ? POLLOUT : POLLIN;
    long done = -1;
    if (ours.fd >= 0 && poll(&ours, 1, 0) == 1 && (!writes || process_vm_readv(pid, &own, 1, &theirs, 1, 0) > 0)) {
        done = syscall(number == SYS_readv ? SYS_read : number == SYS_writev ? SYS_write : number, ours.fd, bytes, own.iov_len,
                       args[3], args[4], args[5]);
        if (!writes && done > 0 && (theirs.iov_len = done, process_vm_writev(pid, &own, 1, &theirs, 1, 0) != done)) fail("short read");
    }
    close(ours.fd), close(process);
    return done;
}

static void decide(const struct seccomp_notif *asked, struct seccomp_notif_resp *answer) {
    *answer = (struct seccomp_notif_resp){.id = asked->id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
    int i = 0;
    while (calls[chosen[i]].number != asked->data.nr) i++;
    if (!plays(asked->pid) || loads(asked->pid, asked->data.instruction_pointer)) return;
    calls[chosen[i]].called++, seen++;
    if (how == COUNT || !(seen == first || (every && seen > first && (seen - first) % every == 0))) return;
    if (how == SHORT) {
        long done = few(asked);
        if (done <= 0) return;
        answer->val = done;
    } else {
        answer->error = -how;
    }
    answer->flags = 0;
    calls[chosen[i]].failed++;
}

/* Until nobody has the filter any more: wardens outlive the command. */
static int supervise(void) {
    struct pollfd waiting = {listener, POLLIN, 0};
    int status = -1;
    time_t ended = 0;
    while (!ended || time(NULL) - ended < PATIENCE_S) {
        struct seccomp_notif asked = {0};
        struct seccomp_notif_resp answer;
        pid_t made = __atomic_load_n(&child, __ATOMIC_SEQ_CST);
        if (!ended && made > 0 && waitpid(made, &status, WNOHANG) == made) ended = time(NULL);
        if (poll(&waiting, 1, 20) > 0 && waiting.revents & POLLHUP && ended) break;
        if (!(waiting.revents & POLLIN) || ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked)) continue;
        decide(&asked, &answer);
        ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
    }
    return status;
}

int main(int count, char **words) {
    if (count < 9 || strcmp(words[7], "--")) return 125;
    role = words[2], command = words + 8, every = atol(words[5]), first = atol(words[6]);
    how = !strcmp(words[4], "count") ? COUNT : !strcmp(words[4], "short") ? SHORT : atoi(words[4]);
    for (char *name = strtok(words[3], ","); name; name = strtok(NULL, ","))
        for (int i = 0; i < CALLS; i++)
            if (!strcmp(name, "all") || !strcmp(name, calls[i].name)) chosen[chosen_count++] = i;
    if (!chosen_count || stat(command[0], &program)) fail("faults");
    pthread_t starter;
    if (pthread_create(&starter, NULL, start, NULL)) fail("thread");
    while (!__atomic_load_n(&ready, __ATOMIC_SEQ_CST)) usleep(1000);
    if (listener < 0) fail("no seccomp notifications");
    int status = supervise();
    FILE *report = fopen(words[1], "w");
    for (int i = 0; report && i < chosen_count; i++)
        fprintf(report, "%s %ld %ld\n", calls[chosen[i]].name, calls[chosen[i]].called, calls[chosen[i]].failed);
    if (report) fclose(report);
    if (WIFSIGNALED(status)) signal(WTERMSIG(status), SIG_DFL), raise(WTERMSIG(status));
    return WEXITSTATUS(status);
}
