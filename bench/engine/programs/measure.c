/*
 * Runs one command pinned to one processor, and writes what it used: measure REPORT CORE SIGNAL COMMAND...
 *
 * REPORT gets one line of JSON: processor time in microseconds, peak memory in kilobytes, exit status. SIGNAL (a
 * number) is sent to the command when this process dies, which it does when whoever started it dies: nothing is left.
 *
 * It is a program of its own because Linux counts the memory of the process that forked into the peak memory of the
 * command (exec keeps the larger of the two): from Python, no command would seem to use less than Python does.
 * It must not do anything while the command runs.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXIT_NOT_STARTED 127

static void start(int core, int death_signal, pid_t parent, char **command) {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET(core, &cores);
    if (sched_setaffinity(0, sizeof cores, &cores) != 0) {
        perror("measure: sched_setaffinity");
        _exit(EXIT_NOT_STARTED);
    }
    prctl(PR_SET_PDEATHSIG, death_signal);
    if (getppid() != parent) _exit(EXIT_NOT_STARTED);
    execvp(command[0], command);
    perror(command[0]);
    _exit(EXIT_NOT_STARTED);
}

static long microseconds(struct timeval time) { return time.tv_sec * 1000000L + time.tv_usec; }

int main(int argc, char **argv) {
    if (argc < 5) {
        fprintf(stderr, "usage: measure REPORT CORE SIGNAL COMMAND...\n");
        return 2;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    pid_t parent = getpid();
    pid_t child = fork();
    if (child < 0) {
        perror("measure: fork");
        return 1;
    }
    if (child == 0) start(atoi(argv[2]), atoi(argv[3]), parent, argv + 4);

    int status = 0;
    struct rusage usage;
    if (wait4(child, &status, 0, &usage) != child) {
        perror("measure: wait4");
        return 1;
    }
    int exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    FILE *report = fopen(argv[1], "w");
    if (report == NULL) {
        perror(argv[1]);
        return 1;
    }
    fprintf(report, "{\"user_us\": %ld, \"system_us\": %ld, \"rss_max_kb\": %ld, \"exit_status\": %d}\n",
            microseconds(usage.ru_utime), microseconds(usage.ru_stime), usage.ru_maxrss, exit_status);
    return fclose(report) == 0 ? 0 : 1;
}
