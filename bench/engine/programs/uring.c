/*
 * The floor of completion: a bare loop over io_uring, one system call for all that is ready. Each response is one send
 * and one receive, queued together and submitted with the next wait. Single issuer, deferred task work, registered
 * sockets, no completion for a send that went well. See floor.h for what it leaves out. Needs Linux 6.1.
 */
#include "floor.h"
#include <linux/io_uring.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define ENTRIES (2 * CONNECTIONS_MAX)
#define DEADLINE UINT64_MAX      /* user_data of the timeout that ends the run */
#define SEND (UINT64_MAX - 1)    /* user_data of sends, which complete only when they fail */
#define SINK_BYTES (1UL << 24)   /* no response may be longer */

struct ring {
    int fd;
    unsigned *submission_tail, submission_mask, queued;
    struct io_uring_sqe *entries;
    unsigned *completion_head, *completion_tail, completion_mask;
    struct io_uring_cqe *completions;
};

static size_t missing_bytes[CONNECTIONS_MAX];
static char *sink; /* an address to name in receives; MSG_TRUNC never writes to it */

static char *map(int fd, size_t bytes, off_t offset) {
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, offset);
    if (memory == MAP_FAILED) stop("mmap of the ring");
    return memory;
}

static struct ring open_ring(void) {
    struct io_uring_params asked = {.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN};
    struct ring ring = {.fd = (int)syscall(SYS_io_uring_setup, ENTRIES, &asked)};
    if (ring.fd < 0) stop("io_uring_setup");
    char *submissions = map(ring.fd, asked.sq_off.array + asked.sq_entries * sizeof(unsigned), IORING_OFF_SQ_RING);
    char *completions =
        map(ring.fd, asked.cq_off.cqes + asked.cq_entries * sizeof(struct io_uring_cqe), IORING_OFF_CQ_RING);
    unsigned *order = (unsigned *)(submissions + asked.sq_off.array);
    for (unsigned i = 0; i < asked.sq_entries; i++) order[i] = i;
    ring.submission_tail = (unsigned *)(submissions + asked.sq_off.tail);
    ring.submission_mask = asked.sq_entries - 1;
    ring.entries = (struct io_uring_sqe *)map(ring.fd, asked.sq_entries * sizeof(struct io_uring_sqe), IORING_OFF_SQES);
    ring.completion_head = (unsigned *)(completions + asked.cq_off.head);
    ring.completion_tail = (unsigned *)(completions + asked.cq_off.tail);
    ring.completion_mask = asked.cq_entries - 1;
    ring.completions = (struct io_uring_cqe *)(completions + asked.cq_off.cqes);
    return ring;
}

/* The queue has two entries for each connection and each has at most that many queued, so it cannot be full. */
static void queue(struct ring *ring, struct io_uring_sqe entry) {
    ring->entries[(*ring->submission_tail + ring->queued) & ring->submission_mask] = entry;
    ring->queued++;
}

static void queue_receive(struct ring *ring, int connection) {
    queue(ring, (struct io_uring_sqe){.opcode = IORING_OP_RECV, .flags = IOSQE_FIXED_FILE, .fd = connection,
                                      .addr = (uintptr_t)sink, .len = (unsigned)missing_bytes[connection],
                                      .msg_flags = MSG_TRUNC, .ioprio = IORING_RECVSEND_POLL_FIRST,
                                      .user_data = (uint64_t)connection});
}

static void queue_request(struct ring *ring, int connection, const struct load *load) {
    queue(ring, (struct io_uring_sqe){.opcode = IORING_OP_SEND, .flags = IOSQE_FIXED_FILE | IOSQE_CQE_SKIP_SUCCESS,
                                      .fd = connection, .addr = (uintptr_t)load->request,
                                      .len = (unsigned)load->request_bytes,
                                      .msg_flags = MSG_NOSIGNAL | MSG_WAITALL, .user_data = SEND});
    missing_bytes[connection] = load->response_bytes;
    queue_receive(ring, connection);
}

static void submit_and_wait(struct ring *ring) {
    __atomic_store_n(ring->submission_tail, *ring->submission_tail + ring->queued, __ATOMIC_RELEASE);
    long submitted = syscall(SYS_io_uring_enter, ring->fd, ring->queued, 1, IORING_ENTER_GETEVENTS, NULL, 0);
    if (submitted != (long)ring->queued) stop("io_uring_enter");
    ring->queued = 0;
}

/* One when the completion ended a response, and the next request is queued; else zero. */
static unsigned long complete(struct ring *ring, const struct io_uring_cqe *completion, const struct load *load) {
    int connection = (int)completion->user_data;
    if (completion->user_data == SEND || completion->res <= 0) {
        fprintf(stderr, "send or receive failed: %s\n", strerror(-completion->res));
        exit(1);
    }
    missing_bytes[connection] -= (size_t)completion->res;
    if (missing_bytes[connection] > 0) {
        queue_receive(ring, connection);
        return 0;
    }
    queue_request(ring, connection, load);
    return 1;
}

static void connect_all(struct ring *ring, const struct load *load) {
    static int sockets[CONNECTIONS_MAX];
    for (int i = 0; i < load->connections; i++) sockets[i] = connect_loopback(load->port);
    if (syscall(SYS_io_uring_register, ring->fd, IORING_REGISTER_FILES, sockets, load->connections) != 0)
        stop("IORING_REGISTER_FILES");
}

/* Sends and counts until the timeout completes. */
static unsigned long run(struct ring *ring, const struct load *load) {
    unsigned long responses = 0;
    for (;;) {
        submit_and_wait(ring);
        unsigned head = *ring->completion_head;
        unsigned tail = __atomic_load_n(ring->completion_tail, __ATOMIC_ACQUIRE);
        for (; head != tail; head++) {
            const struct io_uring_cqe *completion = &ring->completions[head & ring->completion_mask];
            if (completion->user_data == DEADLINE) return responses;
            responses += complete(ring, completion, load);
        }
        __atomic_store_n(ring->completion_head, head, __ATOMIC_RELEASE);
    }
}

int main(int argc, char **argv) {
    struct load load = load_from(argc, argv);
    load.response_bytes = first_response_bytes(&load);
    struct ring ring = open_ring();
    struct __kernel_timespec length = {.tv_sec = (long long)load.seconds,
                                       .tv_nsec = (long long)((load.seconds - (long long)load.seconds) * 1e9)};
    if (load.response_bytes > SINK_BYTES) {
        fprintf(stderr, "the response is longer than %lu bytes\n", SINK_BYTES);
        return 1;
    }
    sink = mmap(NULL, SINK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (sink == MAP_FAILED) stop("mmap");
    connect_all(&ring, &load);
    double start = now_seconds();
    queue(&ring, (struct io_uring_sqe){.opcode = IORING_OP_TIMEOUT, .addr = (uintptr_t)&length, .len = 1,
                                       .user_data = DEADLINE});
    for (int i = 0; i < load.connections; i++) queue_request(&ring, i, &load);
    unsigned long responses = run(&ring, &load);
    print_count(responses, now_seconds() - start);
    return 0;
}
