/*
 * The floor of OpenSSL: a bare loop over epoll that decrypts whatever has arrived into one buffer, and looks at none of it. See floor.h for what
 * else it leaves out.
 */
#include "epoll.h"
#include <openssl/ssl.h>

#define BUFFER_BYTES 65536

struct connection {
    SSL *ssl;
    size_t missing_bytes; /* of the response under way */
};

static struct connection connections[CONNECTIONS_MAX];
static char buffer[BUFFER_BYTES];

static void send_tls(SSL *ssl, const struct load *load) {
    if (SSL_write(ssl, load->request, (int)load->request_bytes) <= 0) stop("SSL_write");
}

static void ask(int index, const struct load *load) {
    send_tls(connections[index].ssl, load);
}

/* What of a response is there; -1 where nothing more is. */
static int take(SSL *ssl) {
    int count = SSL_read(ssl, buffer, BUFFER_BYTES - 1);
    if (count <= 0 && SSL_get_error(ssl, count) != SSL_ERROR_WANT_READ) stop("SSL_read");
    return count;
}

/* Takes what has arrived. One when that ended a response, and the next request is on its way; else zero. */
static unsigned long receive(int index, const struct load *load) {
    struct connection *connection = &connections[index];
    int count;
    while ((count = take(connection->ssl)) > 0) {
        connection->missing_bytes -= (size_t)count;
        if (connection->missing_bytes > 0) continue;
        connection->missing_bytes = load->response_bytes;
        ask(index, load);
        return 1;
    }
    return 0;
}

static SSL *connect_tls(SSL_CTX *context, int port) {
    SSL *ssl = SSL_new(context);
    if (ssl == NULL || SSL_set_fd(ssl, connect_loopback(port)) != 1 || SSL_connect(ssl) != 1) stop("SSL_connect");
    return ssl;
}

/* Its connections do not block from now on. The first tells the length of all responses; its head is one record. */
static int connect_all(SSL_CTX *context, struct load *load) {
    int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (epoll_fd < 0) stop("epoll_create1");
    SSL *first = connect_tls(context, load->port);
    send_tls(first, load);
    buffer[take(first)] = '\0';
    load->response_bytes = response_bytes(buffer);
    SSL_free(first);
    for (int i = 0; i < load->connections; i++) {
        struct connection *connection = &connections[i];
        struct epoll_event event = {.events = EPOLLIN, .data.fd = i};
        connection->ssl = connect_tls(context, load->port);
        connection->missing_bytes = load->response_bytes;
        int socket_fd = SSL_get_fd(connection->ssl);
        if (fcntl(socket_fd, F_SETFL, O_NONBLOCK) != 0) stop("O_NONBLOCK");
        if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, socket_fd, &event) != 0) stop("epoll_ctl");
    }
    return epoll_fd;
}

int main(int argc, char **argv) {
    struct load load = load_from(argc, argv);
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    if (context == NULL) stop("SSL_CTX_new");
    SSL_CTX_set_read_ahead(context, 1);
    SSL_CTX_set_default_read_buffer_len(context, BUFFER_BYTES);
    run(connect_all(context, &load), &load, ask, receive);
    return 0;
}
