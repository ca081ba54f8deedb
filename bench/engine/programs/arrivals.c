/*
 * A server that notes when each request was sent: arrivals PORT FILE. On SIGTERM it writes the notes and ends.
 *
 * The time is that of the kernel (SO_TIMESTAMPNS, socket(7)), which on the loopback device stamps a packet within the
 * sender's own system call: it says when the client sent, however late this server comes to read it. FILE gets one
 * integer of 64 bits for each request, in nanoseconds of CLOCK_REALTIME, in the order of reading. Every request must be
 * without a body, and is answered with the 12 bytes that nginx answers with here.
 * It must not know what the schedule was.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SOCKETS_MAX 8192
#define EVENTS_MAX 512
#define READ_BYTES_MAX 16384
#define STAMPS_MAX (1UL << 26)

static const char RESPONSE[] = "HTTP/1.1 200 OK\r\nServer: arrivals\r\nContent-Type: text/plain\r\nContent-Length: 12\r\n"
                               "Connection: keep-alive\r\n\r\nHello world\n";
static const char HEAD_END[] = "\r\n\r\n";

static int64_t *stamps;
static unsigned long stamps_count;
static unsigned char head_end_bytes[SOCKETS_MAX]; /* by socket: how much of HEAD_END was read last */

static void stop(const char *what) {
    perror(what);
    exit(1);
}

static void watch(int epoll_fd, int fd) {
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0) stop("epoll_ctl");
}

static int listen_on(int port) {
    int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0) stop("socket");
    /* All three are handed on to what is accepted. */
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0) stop("SO_REUSEADDR");
    if (setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on) != 0) stop("SO_TIMESTAMPNS");
    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) stop("TCP_NODELAY");
    if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0) stop("bind");
    if (listen(fd, 4096) != 0) stop("listen");
    return fd;
}

static int signals_to_end(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    int fd = signalfd(-1, &set, SFD_CLOEXEC);
    if (fd < 0) stop("signalfd");
    return fd;
}

static void accept_all(int epoll_fd, int listening_fd) {
    int fd;
    while ((fd = accept4(listening_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
        if (fd >= SOCKETS_MAX) {
            fprintf(stderr, "arrivals: more than %d connections\n", SOCKETS_MAX);
            exit(1);
        }
        head_end_bytes[fd] = 0;
        watch(epoll_fd, fd);
    }
}

static int64_t stamp_of(struct msghdr *message) {
    for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part != NULL; part = CMSG_NXTHDR(message, part)) {
        if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_TIMESTAMPNS) {
            struct timespec time;
            memcpy(&time, CMSG_DATA(part), sizeof time);
            return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
        }
    }
    /* The reading time instead would look the same and mean something else. */
    fprintf(stderr, "arrivals: this kernel does not say when a packet came (SO_TIMESTAMPNS)\n");
    exit(1);
}

static void note(int64_t stamp) {
    if (stamps_count == STAMPS_MAX) {
        fprintf(stderr, "arrivals: more than %lu requests\n", STAMPS_MAX);
        exit(1);
    }
    stamps[stamps_count++] = stamp;
}

/* How many requests end in these bytes, where the first `seen` of HEAD_END may have come before them. */
static int requests_in(const char *bytes, ssize_t count, unsigned char *seen) {
    int requests = 0;
    for (ssize_t i = 0; i < count; i++) {
        if (bytes[i] == HEAD_END[*seen]) {
            *seen += 1;
        } else {
            *seen = bytes[i] == HEAD_END[0];
        }
        if (*seen == sizeof HEAD_END - 1) {
            *seen = 0;
            requests++;
        }
    }
    return requests;
}

/* Takes what has arrived, notes when it was sent, and answers each request. */
static void serve(int fd) {
    static char bytes[READ_BYTES_MAX];
    char control[CMSG_SPACE(sizeof(struct timespec)) + 64];
    struct iovec part = {.iov_base = bytes, .iov_len = sizeof bytes};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    ssize_t count = recvmsg(fd, &message, MSG_DONTWAIT);
    if (count <= 0) {
        close(fd);
        return;
    }
    int requests = requests_in(bytes, count, &head_end_bytes[fd]);
    for (int i = 0; i < requests; i++) {
        note(stamp_of(&message));
        if (send(fd, RESPONSE, sizeof RESPONSE - 1, MSG_NOSIGNAL | MSG_DONTWAIT) != sizeof RESPONSE - 1) {
            close(fd);
            return;
        }
    }
}

static void write_stamps(const char *path) {
    FILE *file = fopen(path, "wb");
    if (file == NULL) stop(path);
    if (fwrite(stamps, sizeof *stamps, stamps_count, file) != stamps_count || fclose(file) != 0) stop(path);
}

int main(int argc, char **argv) {
    static struct epoll_event events[EVENTS_MAX];
    if (argc != 3) {
        fprintf(stderr, "usage: arrivals PORT FILE\n");
        return 2;
    }
    stamps = mmap(NULL, STAMPS_MAX * sizeof *stamps, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stamps == MAP_FAILED) stop("mmap");
    int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (epoll_fd < 0) stop("epoll_create1");
    int signals_fd = signals_to_end();
    int listening_fd = listen_on(atoi(argv[1]));
    watch(epoll_fd, signals_fd);
    watch(epoll_fd, listening_fd);
    for (;;) {
        int ready = epoll_wait(epoll_fd, events, EVENTS_MAX, -1);
        if (ready < 0 && errno != EINTR) stop("epoll_wait"); /* EINTR: it was stopped for a while, signal(7) */
        for (int i = 0; i < ready; i++) {
            if (events[i].data.fd == signals_fd) {
                write_stamps(argv[2]);
                return 0;
            }
            if (events[i].data.fd == listening_fd) {
                accept_all(epoll_fd, listening_fd);
            } else {
                serve(events[i].data.fd);
            }
        }
    }
}
