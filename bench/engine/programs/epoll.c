/*
 * The floor of readiness: a bare loop over epoll that writes the next request straight from its read handler, two
 * system calls for a response and a share of one epoll_wait. See floor.h for what it leaves out.
 */
#include "epoll.h"

struct connection {
    int socket_fd;
    size_t missing_bytes; /* of the response under way */
};

static struct connection connections[CONNECTIONS_MAX];

static void ask(int index, const struct load *load) {
    send_request(connections[index].socket_fd, load);
}

/* Takes what has arrived. One when that ended a response, and the next request is on its way; else zero. */
static unsigned long receive(int index, const struct load *load) {
    struct connection *connection = &connections[index];
    ssize_t count = recv(connection->socket_fd, NULL, connection->missing_bytes, MSG_TRUNC | MSG_DONTWAIT);
    if (count <= 0) stop("recv");
    connection->missing_bytes -= (size_t)count;
    if (connection->missing_bytes > 0) return 0;
    connection->missing_bytes = load->response_bytes;
    ask(index, load);
    return 1;
}

static int connect_all(const struct load *load) {
    int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (epoll_fd < 0) stop("epoll_create1");
    for (int i = 0; i < load->connections; i++) {
        struct connection *connection = &connections[i];
        struct epoll_event event = {.events = EPOLLIN, .data.fd = i};
        connection->socket_fd = connect_loopback(load->port);
        connection->missing_bytes = load->response_bytes;
        if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, connection->socket_fd, &event) != 0) stop("epoll_ctl");
    }
    return epoll_fd;
}

int main(int argc, char **argv) {
    struct load load = load_from(argc, argv);
    load.response_bytes = first_response_bytes(&load);
    run(connect_all(&load), &load, ask, receive);
    return 0;
}
