/* A load generator for HTTP/1.1 over one thread: closed loop, or open loop without coordinated omission.
 *
 *     load HOST PORT plain|tls CONNECTIONS SECONDS RATE REQUEST_FILE
 *
 * A HOST that begins with a slash is the path of a UNIX socket, and PORT counts for nothing.
 * RATE 0: closed loop, each connection sends its next request when it has its answer. Otherwise requests are due at
 * fixed times, RATE a second over all connections, whether or not earlier ones have been answered; a request whose
 * time comes while all connections are busy waits here, and its latency is counted from the time at which it was due.
 * REQUEST_FILE holds one complete request, which is sent as it is. Certificates are not checked.
 *
 * Prints one line of JSON: requests, failed (no answer, or a status other than 2xx), seconds, latencies in
 * microseconds, cpu_s (this process's own), and late_us: how long after its time a request was sent although a
 * connection was free. That is the generator's own delay, so latencies below it mean nothing.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { HEAD = 16384, SINK = 262144, EVENTS = 256, DRAIN_S = 10 };

struct samples {
    uint32_t *at;
    size_t used, room;
};

struct client {
    int fd, busy, blocked, in_head, status;
    SSL *ssl;
    int64_t freed;    /* when its last answer had come */
    int64_t due;      /* when the request in flight should have been sent, in nanoseconds */
    size_t sent;      /* bytes of it that are on their way */
    size_t used;      /* bytes of an unfinished head */
    long long owed;   /* bytes of the answer's body that have not come yet */
    char head[HEAD + 1];
};

static struct sockaddr_storage address;
static socklen_t address_size;
static SSL_CTX *context;
static char *request;
static size_t request_size;
static int poller;
static struct samples latency, late;
static unsigned long long answered, failed;

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void add(struct samples *s, int64_t nanoseconds) {
    if (s->used == s->room) {
        s->room = s->room ? s->room * 2 : 65536;
        s->at = realloc(s->at, s->room * sizeof *s->at);
    }
    s->at[s->used++] = (uint32_t)(nanoseconds < 0 ? 0 : nanoseconds / 1000);
}

static void forget(struct client *c) {
    if (c->ssl) SSL_free(c->ssl);
    if (c->fd >= 0) close(c->fd);
    c->ssl = NULL;
    c->fd = -1;
}

/* Connects, and shakes hands, before anything is timed: only kept connections are measured. */
static int attach(struct client *c) {
    int one = 1;
    c->fd = socket(address.ss_family, SOCK_STREAM, 0);
    if (connect(c->fd, (struct sockaddr *)&address, address_size)) return -1;
    if (address.ss_family == AF_INET) setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (context) {
        c->ssl = SSL_new(context);
        SSL_set_fd(c->ssl, c->fd);
        if (SSL_connect(c->ssl) != 1) return -1;
    }
    fcntl(c->fd, F_SETFL, fcntl(c->fd, F_GETFL) | O_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
    return epoll_ctl(poller, EPOLL_CTL_ADD, c->fd, &event);
}

/* Both: bytes moved, 0 when it must wait, -1 when the connection has ended. */
static ssize_t through_tls(struct client *c, int result) {
    if (result > 0) return result;
    int why = SSL_get_error(c->ssl, result);
    ERR_clear_error();
    return why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE ? 0 : -1;
}

static ssize_t put(struct client *c, const char *from, size_t size) {
    if (c->ssl) return through_tls(c, SSL_write(c->ssl, from, (int)(size > SINK ? SINK : size)));
    ssize_t done = send(c->fd, from, size, MSG_NOSIGNAL);
    return done >= 0 ? done : errno == EAGAIN || errno == EINTR ? 0 : -1;
}

static ssize_t get(struct client *c, char *into, size_t size) {
    if (c->ssl) return through_tls(c, SSL_read(c->ssl, into, (int)size));
    ssize_t done = recv(c->fd, into, size, 0);
    return done > 0 ? done : done < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
}

static void watch(struct client *c, int writing) {
    struct epoll_event event = {.events = EPOLLIN | (writing ? EPOLLOUT : 0), .data.ptr = c};
    epoll_ctl(poller, EPOLL_CTL_MOD, c->fd, &event);
}

static int push(struct client *c) {
    while (c->sent < request_size) {
        ssize_t done = put(c, request + c->sent, request_size - c->sent);
        if (done < 0) return -1;
        if (done == 0) {
            if (!c->blocked) watch(c, 1);
            c->blocked = 1;
            return 0;
        }
        c->sent += (size_t)done;
    }
    if (c->blocked) watch(c, 0);
    c->blocked = 0;
    return 0;
}

static int begin(struct client *c, int64_t due) {
    c->busy = c->in_head = 1;
    c->due = due;
    c->sent = c->used = 0;
    return push(c);
}

/* A whole answer: 1; more to come: 0; not one: -1. */
static int pull(struct client *c) {
    static char sink[SINK];
    for (;;) {
        if (!c->in_head && c->owed == 0) return 1;
        ssize_t done = c->in_head ? get(c, c->head + c->used, HEAD - c->used)
                                  : get(c, sink, c->owed < SINK ? (size_t)c->owed : SINK);
        if (done <= 0) return (int)done;
        if (!c->in_head) {
            c->owed -= done;
            continue;
        }
        c->used += (size_t)done;
        c->head[c->used] = 0;
        char *end = strstr(c->head, "\r\n\r\n");
        if (!end) {
            if (c->used == HEAD) return -1;
            continue;
        }
        *end = 0;
        char *length = strcasestr(c->head, "\r\ncontent-length:");
        if (!length || strncmp(c->head, "HTTP/1.1 ", 9)) return -1;
        c->status = atoi(c->head + 9);
        c->in_head = 0;
        c->owed = atoll(length + 17) - (long long)(c->head + c->used - end - 4);
    }
}

static int by_size(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static uint32_t at(struct samples *s, double share) {
    return s->used ? s->at[(size_t)(share * (double)(s->used - 1))] : 0;
}

static void arm(int timer, int64_t when) {
    struct itimerspec spec = {.it_value = {.tv_sec = when / 1000000000, .tv_nsec = when % 1000000000}};
    timerfd_settime(timer, TFD_TIMER_ABSTIME, &spec, NULL);
}

static void set_address(const char *host, const char *port) {
    struct sockaddr_un *local = (struct sockaddr_un *)&address;
    struct sockaddr_in *inet = (struct sockaddr_in *)&address;
    if (*host == '/') {
        local->sun_family = AF_UNIX;
        strncpy(local->sun_path, host, sizeof local->sun_path - 1);
        address_size = sizeof *local;
    } else {
        inet->sin_family = AF_INET;
        inet->sin_port = htons((unsigned short)atoi(port));
        inet_pton(AF_INET, host, &inet->sin_addr);
        address_size = sizeof *inet;
    }
}

int main(int argc, char **argv) {
    if (argc != 8) return 2;
    set_address(argv[1], argv[2]);
    int count = atoi(argv[4]), timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    double seconds = atof(argv[5]), rate = atof(argv[6]);
    FILE *file = fopen(argv[7], "rb");
    if (!file || fseek(file, 0, SEEK_END)) return 2;
    request_size = (size_t)ftell(file);
    rewind(file);
    request = malloc(request_size);
    if (fread(request, 1, request_size, file) != request_size) return 2;
    signal(SIGPIPE, SIG_IGN);
    if (!strcmp(argv[3], "tls")) {
        context = SSL_CTX_new(TLS_client_method());
        SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
        SSL_CTX_set_alpn_protos(context, (const unsigned char *)"\x08http/1.1", 9);
    }
    poller = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL}, ready[EVENTS];
    epoll_ctl(poller, EPOLL_CTL_ADD, timer, &event);
    struct client *clients = calloc((size_t)count, sizeof *clients);
    for (int i = 0; i < count; i++)
        if (attach(&clients[i])) {
            fprintf(stderr, "load: cannot connect to %s, port %s: %s\n", argv[1], argv[2], strerror(errno));
            return 1;
        }
    int64_t start = now(), end = start + (int64_t)(seconds * 1e9), last = start, next = start;
    int64_t step = rate > 0 ? (int64_t)(1e9 / rate) : 0;
    int busy = 0, from = 0;
    for (;;) {
        int64_t t = now();
        /* Start what is due. In a closed loop every free connection is. */
        int free_one = 1;
        while (step ? next <= t && next < end : t < end) {
            int i = 0;
            while (i < count && clients[(from + i) % count].busy) i++;
            if (i == count) {
                free_one = 0;
                break;
            }
            struct client *c = &clients[(from + i) % count];
            from = (from + i + 1) % count;
            int64_t due = step ? next : t;
            /* Its own delay is the generator's only when this request did not have to wait for a connection. */
            if (step && c->freed <= due) add(&late, t - due);
            if (c->fd < 0 && attach(c)) return 1;
            next += step;
            busy++;
            if (begin(c, due)) {
                failed++;
                busy--;
                c->busy = 0;
                forget(c);
            }
            t = now();
        }
        int left = step && next < end; /* what is due is sent, however late: leaving it out would flatter */
        if (t >= end && !busy && !left) break;
        if (t >= end + (int64_t)DRAIN_S * 1000000000) break;
        if (step && free_one && t < end) arm(timer, next > t ? next : t + 1);
        else arm(timer, t < end ? end : end + (int64_t)DRAIN_S * 1000000000);
        int n = epoll_wait(poller, ready, EVENTS, -1);
        for (int k = 0; k < n; k++) {
            struct client *c = ready[k].data.ptr;
            if (!c) {
                uint64_t ticks;
                if (read(timer, &ticks, sizeof ticks) < 0) continue;
                continue;
            }
            int done = c->busy && c->sent < request_size ? push(c) : 0;
            if (!done) done = pull(c);
            if (!done) continue;
            if (c->busy) {
                c->freed = last = now();
                busy--;
                if (done > 0) {
                    answered++;
                    add(&latency, last - c->due);
                }
                if (done < 0 || c->status < 200 || c->status > 299) failed++;
                c->busy = 0;
                c->in_head = 1;
                c->used = 0;
            }
            if (done < 0) forget(c);
        }
    }
    failed += (unsigned long long)busy;
    /* What could not even be sent was not served either. */
    unsigned long long unsent = step && next < end ? (unsigned long long)((end - next) / step) : 0;
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    qsort(latency.at, latency.used, sizeof *latency.at, by_size);
    qsort(late.at, late.used, sizeof *late.at, by_size);
    double cpu = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                 (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
    printf("{\"requests\": %llu, \"failed\": %llu, \"unsent\": %llu, \"seconds\": %.6f, \"cpu_s\": %.4f, "
           "\"p50_us\": %u, \"p90_us\": %u, \"p99_us\": %u, \"max_us\": %u, \"late_p50_us\": %u, \"late_p99_us\": %u}\n",
           answered, failed, unsent, (double)(last - start) / 1e9, cpu, at(&latency, 0.5), at(&latency, 0.9),
           at(&latency, 0.99), at(&latency, 1), at(&late, 0.5), at(&late, 0.99));
    return 0;
}
