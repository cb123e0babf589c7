/* SPDX-License-Identifier: Apache-2.0 */
/* Where it listens, whom it lets in, and TLS. */
#include <errno.h>
#include <sys/resource.h>

#include "base/file.h"
#include "tests/http_house.h"

/* No descriptor is left: the server neither spins nor forgets who waits. */
static void test_no_descriptors(struct house *h)
{
    struct rlimit old, none;
    struct buf b = { 0 };
    struct timespec t0, t1;
    int fd = call(h), said;

    send_text(fd, "GET /echo HTTP/1.1\r\nHost: h\r\n\r\n");
    ok(hears(fd, "GET="), "a connection");
    close(fd);
    usleep(50000);
    said = h->said;
    getrlimit(RLIMIT_NOFILE, &old);
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    none = (struct rlimit){ (rlim_t)fd + 1, old.rlim_max };
    setrlimit(RLIMIT_NOFILE, &none);
    if (connect(fd,
                (struct sockaddr *)&(struct sockaddr_in){ .sin_family = AF_INET,
                                                          .sin_port = htons(h->port),
                                                          .sin_addr.s_addr =
                                                              htonl(INADDR_LOOPBACK) },
                sizeof(struct sockaddr_in)) < 0)
        perror("connect");
    send_text(fd, "GET /echo HTTP/1.1\r\nHost: h\r\n\r\n");
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t0);
    ok(hear(fd, &b, NULL, 500) == WAITS && b.n == 0, "no descriptor: it waits");
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t1);
    ok((t1.tv_sec - t0.tv_sec) * 1000 + (t1.tv_nsec - t0.tv_nsec) / 1000000 < 100,
       "without being busy");
    ok(h->said == said + 1, "and says so once");
    setrlimit(RLIMIT_NOFILE, &old);
    ok(hears(fd, "GET="), "then it is served");
    buf_release(&b);
    close(fd);
}

static void test_finish(struct house *h)
{
    int idle = call(h), busy = call(h), fd, gone = h->gone, before = h->requests;

    send_text(idle, "GET /echo HTTP/1.1\r\nHost: h\r\n\r\n");
    ok(hears(idle, "GET="), "one idles");
    send_text(busy, "GET /forever HTTP/1.1\r\nHost: h\r\n\r\n");
    ok(hears(busy, "first"), "one is busy");
    fd = call(h);
    send_text(fd, "GET /later HTTP/1.1\r\nHost: h\r\n\r\n");
    while (h->requests < before + 3)
        usleep(1000);
    h->finish = true;
    ring(h);
    ok(is_closed(idle), "finish: who idles is closed");
    ok(hears(fd, "Connection: close\r\n\r\n/later") && is_closed(fd),
       "who waits for an answer gets it before");
    ok(h->gone == gone, "who is busy is not cut");
    close(fd);
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ok(connect(fd,
               (struct sockaddr *)&(struct sockaddr_in){ .sin_family = AF_INET,
                                                         .sin_port = htons(h->port),
                                                         .sin_addr.s_addr =
                                                             htonl(INADDR_LOOPBACK) },
               sizeof(struct sockaddr_in)) < 0 &&
           errno == ECONNREFUSED,
       "and nobody new is let in");
    close(fd);
    close(idle);
    close(busy);
}

static void test_connection_limit(void)
{
    struct http_server_limits few = roomy;
    struct house h;
    int fds[3];

    few.conns_max = 2;
    if (!ok(open_house(&h, "127.0.0.1", few, NULL), "a server for two"))
        return;
    for (size_t i = 0; i < COUNT(fds); i++) {
        fds[i] = call(&h);
        send_text(fds[i], "GET /echo HTTP/1.1\r\nHost: h\r\n\r\n");
    }
    ok(hears(fds[0], "GET=") && hears(fds[1], "GET="), "two are served");
    ok(waits(fds[2]), "a third one waits");
    close(fds[0]);
    ok(hears(fds[2], "GET="), "until one goes");
    close(fds[1]);
    close(fds[2]);
    close_house(&h);
}

/* --- TLS: the certificate is made by openssl, the client is Python --- */

static char dir[] = "/tmp/assay-http-server-XXXXXX";

static int shell(const char *fmt, ...) PRINTF_LIKE(1, 2);

static int shell(const char *fmt, ...)
{
    struct buf b = { 0 };
    char line[2048];
    va_list ap;
    int r;

    va_start(ap, fmt);
    vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    buf_printf(&b, "cd %s && { %s; } >>log 2>&1", dir, line);
    r = system(buf_cstr(&b));
    buf_release(&b);
    return r;
}

static const char *in_dir(const char *name)
{
    static char paths[2][FILE_PATH_MAX];
    static int turn;

    turn = !turn;
    snprintf(paths[turn], FILE_PATH_MAX, "%s/%s", dir, name);
    return paths[turn];
}

static void test_identity(void)
{
    static const struct {
        const char *what, *cert, *key, *why;
    } bad[] = {
        { "no certificate there", "absent.pem", "key.pem", "absent.pem" },
        { "no key there", "cert.pem", "absent.pem", "absent.pem" },
        { "a key that is encrypted", "cert.pem", "locked.pem", "is encrypted" },
        { "another one's key", "cert.pem", "other.pem", "not that of the certificate" },
        { "a key of another kind", "cert.pem", "ed.pem", "not that of the certificate" },
        { "no certificate in it", "key.pem", "key.pem", "no certificate can be read" },
        { "no key in it", "cert.pem", "cert.pem", "no private key can be read" },
    };

    for (size_t i = 0; i < COUNT(bad); i++) {
        struct tls_identity *identity = NULL;
        struct err err = { 0 };

        ok(tls_identity_new(&identity, in_dir(bad[i].cert), in_dir(bad[i].key), &err) <
                   0 &&
               !identity && strstr(err.msg, bad[i].why),
           "%s: %s", bad[i].what, err.msg);
    }
}

static const char tls_client[] =
    "import socket, ssl, sys, time\n"
    "port, what = int(sys.argv[1]), sys.argv[2]\n"
    "c = ssl.create_default_context(cafile='cert.pem')\n"
    "c.minimum_version = ssl.TLSVersion.TLSv1_2\n"
    "if what == '1.2': c.maximum_version = ssl.TLSVersion.TLSv1_2\n"
    "c.set_alpn_protocols(['h2'] if what == 'h2' else ['h2', 'http/1.1'])\n"
    "s = c.wrap_socket(socket.create_connection(('127.0.0.1', port)),\n"
    "                  server_hostname='localhost')\n"
    "assert s.selected_alpn_protocol() == 'http/1.1'\n"
    "assert s.version() == ('TLSv1.2' if what == '1.2' else 'TLSv1.3')\n"
    "def say(path, more='', body=b''):\n"
    "    s.sendall(f'POST {path} HTTP/1.1\\r\\nHost: h\\r\\n{more}'\n"
    "              f'Content-Length: {len(body)}\\r\\n\\r\\n'.encode() + body)\n"
    "def hear(end):\n"
    "    got = bytearray()\n"
    "    while end is None or not got.endswith(end):\n"
    "        more = s.recv(1 << 20)\n"
    "        if not more: break\n"
    "        got += more\n"
    "    return got\n"
    "say('/echo', body=b'one'); assert hear(b'POST=one').startswith(b'HTTP/1.1 200')\n"
    "say('/count', body=bytes(100000)); assert b'100000' in hear(b'100000')\n"
    "if what == 'half':\n"
    "    say('/later'); s.unwrap = None\n"
    "    socket.socket.shutdown(s, socket.SHUT_WR)\n"
    "    assert hear(None).endswith(b'/later')\n"
    "    sys.exit(0)\n"
    "if what == 'abort':\n"
    "    say('/abort')\n"
    "    s.suppress_ragged_eofs = False\n"
    "    try: hear(None)\n"
    "    except (ssl.SSLEOFError, ConnectionResetError): sys.exit(0)\n"
    "    sys.exit(1)\n"
    "say('/stream'); assert hear(b'0\\r\\n\\r\\n').endswith(b'second\\r\\n0\\r\\n\\r\\n')\n"
    "say('/big', 'Connection: close\\r\\n')\n"
    "s.suppress_ragged_eofs = False\n"
    "assert len(hear(None)) > 24 << 20\n";

/* Nothing that comes without TLS is asked of the owner. */
static void test_plain(struct house *h)
{
    static const char two[] = "POST /echo HTTP/1.1\r\nContent-Length: 0\r\n\r\n"
                              "GET /echo HTTP/1.1\r\n\r\n";
    static const char *const said[] = { "GET /echo HTTP/1.1\r\nHost: h\r\n\r\n", "P",
                                        two };
    int before = h->heads + h->requests, told = h->said, fd;

    for (size_t i = 0; i < COUNT(said); i++) {
        fd = call(h);
        send_text(fd, said[i]);
        ok(hears(fd, "refused 400 nothing: this port speaks TLS: use https://"),
           "who speaks no TLS is told so (%zu)", i);
        shutdown(fd, SHUT_WR);
        ok(is_closed(fd), "and turned away");
        close(fd);
    }
    fd = call(h);
    send_text(fd, "get /");
    ok(is_closed(fd), "who speaks neither is turned away");
    close(fd);
    ok(h->heads + h->requests == before, "and none of that is served");
    ok(h->said == told + 1, "all of that is told once");
}

static void test_tls(void)
{
    static const struct {
        const char *what, *how;
        bool works;
    } rows[] = {
        { "TLS 1.3: whole answers, large ones, a clean end", "1.3", true },
        { "TLS 1.2: the same", "1.2", true },
        { "half closed over TLS", "half", true },
        { "an aborted answer is no clean end of TLS", "abort", true },
        { "who speaks HTTP/2 only is turned away", "h2", false },
    };
    struct tls_identity *identity = NULL;
    struct http_server_limits quick = roomy;
    struct err err = { 0 };
    struct house h;
    int fd;

    if (!ok(tls_identity_new(&identity, in_dir("cert.pem"), in_dir("key.pem"), &err) == 0,
            "an identity: %s", err.msg))
        return;
    quick.head_wait = 2000;
    if (!ok(open_house(&h, "127.0.0.1", quick, identity), "a server with TLS"))
        return;
    for (size_t i = 0; i < COUNT(rows); i++)
        ok((shell("timeout 20 python3 client.py %u %s", h.port, rows[i].how) == 0) ==
               rows[i].works,
           "%s", rows[i].what);
    test_plain(&h);
    fd = call(&h);
    send_text(fd, "\x16\x03\x01");
    ok(is_closed(fd), "who begins TLS and does not go on, too");
    close(fd);
    ok(empties(&h), "nobody is left");
    close_house(&h);
    tls_identity_free(identity);
}

static void test_with_certificates(void)
{
    FILE *f;

    if (!mkdtemp(dir) || shell("openssl version && python3 -c 'import ssl'") != 0) {
        tap_skip("TLS", "no openssl or python3 here");
        return;
    }
    f = fopen(in_dir("client.py"), "w");
    if (f) {
        fputs(tls_client, f);
        fclose(f);
    }
    ok(shell(
           "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 "
           "-keyout key.pem -out cert.pem -subj /CN=localhost "
           "-addext subjectAltName=DNS:localhost,IP:127.0.0.1 && "
           "openssl ec -in key.pem -aes128 -passout pass:secret -out locked.pem && "
           "openssl ecparam -name prime256v1 -genkey -noout -out other.pem && "
           "openssl genpkey -algorithm ed25519 -out ed.pem") == 0,
       "certificates and keys are made");
    test_identity();
    test_tls();
    if (tap_failures)
        shell("tail -40 log >&2; false");
    if (tap_failures || shell("rm -rf %s", dir) != 0)
        printf("# see %s\n", dir);
}

/* --- where it listens --- */

/* As call(), or -1: this machine has no IPv6, or nobody listens there. */
static int call_v6(uint16_t port)
{
    struct sockaddr_in6 to = { .sin6_family = AF_INET6,
                               .sin6_port = htons(port),
                               .sin6_addr = in6addr_loopback };
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0)
        file_close(&fd);
    return fd;
}

static bool has_v6(void)
{
    struct sockaddr_in6 at = { .sin6_family = AF_INET6, .sin6_addr = in6addr_loopback };
    CLEANUP(file_close) int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

    return fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0;
}

static void test_v6(void)
{
    struct house h;
    int fd;

    if (!has_v6()) {
        tap_skip("IPv6", "this machine has none");
        return;
    }
    if (!ok(open_house(&h, "::1", roomy, NULL), "a server on ::1"))
        return;
    fd = call_v6(h.port);
    ok(fd >= 0, "it is there");
    send_text(fd, "GET /peer HTTP/1.1\r\n" CLOSE "\r\n");
    ok(hears(fd, "\r\n\r\n::1"), "and names the peer");
    close(fd);
    close_house(&h);
}

/* "localhost" is both, though the machine may have the name for one of them only. */
static void test_name(void)
{
    struct house h;
    int fd;

    if (!ok(open_house(&h, "LocalHost", roomy, NULL), "a server on a name"))
        return;
    fd = call(&h);
    send_text(fd, "GET /peer HTTP/1.1\r\n" CLOSE "\r\n");
    ok(hears(fd, "127.0.0.1"), "127.0.0.1 is listened on");
    close(fd);
    if (has_v6()) {
        fd = call_v6(h.port);
        send_text(fd, "GET /peer HTTP/1.1\r\n" CLOSE "\r\n");
        ok(hears(fd, "\r\n\r\n::1"), "and ::1, at the same port");
        close(fd);
    } else {
        tap_skip("::1, at the same port", "this machine has no IPv6");
    }
    close_house(&h);
}

static void test_open_errors(void)
{
    struct house h, second;
    struct http_server *s = NULL;
    struct err err = { 0 };
    struct http_server_options options = { .events = &events };

    if (!ok(open_house(&h, "127.0.0.1", roomy, NULL), "a server"))
        return;
    second = h;
    options.loop = second.loop;
    options.host = "127.0.0.1";
    options.port = h.port;
    ok(http_server_open(&s, &options, &err) < 0 && strstr(err.msg, "in use"),
       "a port that is taken: %s", err.msg);
    options.host = "host.invalid";
    ok(http_server_open(&s, &options, &err) < 0 && strstr(err.msg, "host.invalid"),
       "a host that is not there: %s", err.msg);
    options.host = "192.0.2.1";
    ok(http_server_open(&s, &options, &err) < 0, "somebody else's address: %s", err.msg);
    close_house(&h);
}

int main(void)
{
    struct house h;

    build_house();
    if (ok(open_house(&h, "127.0.0.1", roomy, NULL), "a server")) {
        test_no_descriptors(&h);
        test_finish(&h);
    }
    close_house(&h);
    test_connection_limit();
    test_v6();
    test_name();
    test_open_errors();
    test_with_certificates();
    free(big);
    return tap_done();
}
