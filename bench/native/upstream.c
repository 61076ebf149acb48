/* An upstream that costs almost nothing: reads each HTTP/1.1 request whole, answers 200 with two bytes.
 *
 *     upstream PORT [PATH]
 *
 * One thread, loopback only, and the UNIX socket PATH. It understands content-length alone: a chunked request is answered 411, which the load
 * generator counts as a failure. It must not answer before the body has been read, or proxies would stop sending it.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { HEAD = 16384, CHUNK = 262144, EVENTS = 256 };

struct peer {
    int fd;
    size_t used;     /* bytes of an unfinished head */
    long long owed;  /* bytes of the body that have not come yet */
    int status;      /* what is answered once it has */
    char head[HEAD + 1];
};

static const char OK[] = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
static const char LENGTH[] = "HTTP/1.1 411 Length Required\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/* 0: go on; -1: the connection has ended. */
static int answer(struct peer *p) {
    const char *text = p->status == 200 ? OK : LENGTH;
    size_t size = strlen(text);
    if (send(p->fd, text, size, MSG_NOSIGNAL) != (ssize_t)size) return -1;
    return p->status == 200 ? 0 : -1;
}

/* Takes what the head buffer holds: complete heads and the bodies behind them. */
static int consume(struct peer *p) {
    while (p->used) {
        p->head[p->used] = 0;
        char *end = memmem(p->head, p->used, "\r\n\r\n", 4);
        if (!end) return p->used == HEAD ? -1 : 0;
        size_t head = (size_t)(end - p->head) + 4;
        *end = 0;
        char *length = strcasestr(p->head, "\r\ncontent-length:");
        p->status = strcasestr(p->head, "\r\ntransfer-encoding:") ? 411 : 200;
        p->owed = length ? atoll(length + 17) : 0;
        size_t body = p->used - head;
        if ((long long)body > p->owed) body = (size_t)p->owed;
        p->owed -= (long long)body;
        p->used -= head + body;
        memmove(p->head, p->head + head + body, p->used);
        if (p->owed) return 0;
        if (answer(p)) return -1;
    }
    return 0;
}

static int readable(struct peer *p) {
    static char sink[CHUNK];
    for (;;) {
        char *into = p->owed ? sink : p->head + p->used;
        size_t room = p->owed ? (p->owed < CHUNK ? (size_t)p->owed : CHUNK) : HEAD - p->used;
        ssize_t got = recv(p->fd, into, room, 0);
        if (got == 0) return -1;
        if (got < 0) return errno == EAGAIN || errno == EINTR ? 0 : -1;
        if (p->owed) {
            p->owed -= got;
            if (!p->owed && answer(p)) return -1;
        } else {
            p->used += (size_t)got;
            if (consume(p)) return -1;
        }
        if ((size_t)got < room) return 0;
    }
}

/* What epoll knows a listening socket by, where it knows a connection by its peer. */
static int listening[2];

static void accept_from(int server, int poll) {
    int one = 1, fd = accept4(server, NULL, NULL, SOCK_NONBLOCK);
    if (fd < 0) return;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one); /* Fails on a UNIX socket, which needs it not. */
    struct peer *p = calloc(1, sizeof *p);
    p->fd = fd;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = p};
    epoll_ctl(poll, EPOLL_CTL_ADD, fd, &event);
}

int main(int argc, char **argv) {
    if (argc != 2 && argc != 3) return 2;
    int one = 1, poll = epoll_create1(0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(argv[1]))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listening[0] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    setsockopt(listening[0], SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listening[0], (struct sockaddr *)&address, sizeof address) || listen(listening[0], 1024)) {
        perror("upstream");
        return 1;
    }
    if (argc == 3) {
        struct sockaddr_un local = {.sun_family = AF_UNIX};
        strncpy(local.sun_path, argv[2], sizeof local.sun_path - 1);
        listening[1] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
        if (bind(listening[1], (struct sockaddr *)&local, sizeof local) || listen(listening[1], 1024)) {
            perror("upstream");
            return 1;
        }
    }
    struct epoll_event ready[EVENTS];
    for (int i = 0; i < argc - 1; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &listening[i]};
        epoll_ctl(poll, EPOLL_CTL_ADD, listening[i], &event);
    }
    for (;;) {
        int count = epoll_wait(poll, ready, EVENTS, -1);
        for (int i = 0; i < count; i++) {
            struct peer *p = ready[i].data.ptr;
            if ((void *)p == &listening[0] || (void *)p == &listening[1]) {
                accept_from(*(int *)p, poll);
            } else if (readable(p)) {
                close(p->fd);
                free(p);
            }
        }
    }
}
