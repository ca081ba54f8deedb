/* The loop of the floors that wait by epoll: a connection is the index that its events carry. */
#include "floor.h"
#include <sys/epoll.h>

#define EVENTS_MAX 512

static inline void run(int epoll_fd, const struct load *load, void (*ask)(int, const struct load *),
                       unsigned long (*receive)(int, const struct load *)) {
    static struct epoll_event events[EVENTS_MAX];
    unsigned long responses = 0;
    double start = now_seconds();
    double end = start + load->seconds;
    double now = start;
    for (int i = 0; i < load->connections; i++) ask(i, load);
    while (now < end) {
        int ready = epoll_wait(epoll_fd, events, EVENTS_MAX, (int)((end - now) * 1000) + 1);
        if (ready < 0) stop("epoll_wait");
        for (int i = 0; i < ready; i++) responses += receive(events[i].data.fd, load);
        now = now_seconds();
    }
    print_count(responses, now - start);
}
