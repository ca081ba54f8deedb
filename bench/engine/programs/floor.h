/*
 * What the floors share: the request, the connections, the length of the response, the clock.
 *
 * A floor is not a tool. It sends one fixed request, takes every response to be as long as the first, counts bytes and
 * has the kernel throw them away unread (MSG_TRUNC, tcp(7)). It measures no latency, checks nothing and survives no
 * error: it costs what the kernel takes for this traffic through this interface, and little else.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CONNECTIONS_MAX 4096
#define HEAD_BYTES_MAX 4096

struct load {
    int port;
    int connections;
    double seconds;
    char request[512];
    size_t request_bytes;
    size_t response_bytes; /* head and body */
};

static void stop(const char *what) {
    perror(what);
    exit(1);
}

static double now_seconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static int connect_loopback(int port) {
    int on = 1;
    int socket_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (socket_fd < 0) stop("socket");
    if (connect(socket_fd, (struct sockaddr *)&address, sizeof address) != 0) stop("connect");
    if (setsockopt(socket_fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) stop("TCP_NODELAY");
    return socket_fd;
}

static void send_request(int socket_fd, const struct load *load) {
    ssize_t sent = send(socket_fd, load->request, load->request_bytes, MSG_NOSIGNAL);
    if (sent != (ssize_t)load->request_bytes) stop("send");
}

/* The length of the response that begins so. */
static size_t response_bytes(const char *head) {
    static const char field[] = "Content-Length: ";
    const char *end = strstr(head, "\r\n\r\n");
    const char *length = strstr(head, field);
    if (end == NULL || length == NULL || strncmp(head, "HTTP/1.1 200 ", 13) != 0) {
        fprintf(stderr, "the first response is not a 200 with a Content-Length\n");
        exit(1);
    }
    return (size_t)(end + 4 - head) + strtoul(length + sizeof field - 1, NULL, 10);
}

/* One request on a connection of its own tells the length of all responses. */
static inline size_t first_response_bytes(const struct load *load) {
    char head[HEAD_BYTES_MAX + 1] = "";
    size_t got = 0;
    int socket_fd = connect_loopback(load->port);
    send_request(socket_fd, load);
    while (strstr(head, "\r\n\r\n") == NULL && got < HEAD_BYTES_MAX) {
        ssize_t count = recv(socket_fd, head + got, HEAD_BYTES_MAX - got, 0);
        if (count <= 0) stop("recv of the first response");
        got += (size_t)count;
        head[got] = '\0';
    }
    close(socket_fd);
    return response_bytes(head);
}

/* Usage of all: PROGRAM PORT PATH CONNECTIONS SECONDS. */
static struct load load_from(int argc, char **argv) {
    struct load load = {0};
    if (argc != 5) {
        fprintf(stderr, "usage: %s PORT PATH CONNECTIONS SECONDS\n", argv[0]);
        exit(2);
    }
    load.port = atoi(argv[1]);
    load.connections = atoi(argv[3]);
    load.seconds = atof(argv[4]);
    if (load.connections < 1 || load.connections > CONNECTIONS_MAX) {
        fprintf(stderr, "connections: %d, must be 1 to %d\n", load.connections, CONNECTIONS_MAX);
        exit(2);
    }
    int bytes = snprintf(load.request, sizeof load.request, "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n", argv[2],
                         load.port);
    if (bytes < 0 || bytes >= (int)sizeof load.request) {
        fprintf(stderr, "path: too long\n");
        exit(2);
    }
    load.request_bytes = (size_t)bytes;
    return load;
}

static void print_count(unsigned long responses, double seconds) {
    printf("{\"responses\": %lu, \"seconds\": %.6f}\n", responses, seconds);
}
