/* SPDX-License-Identifier: Apache-2.0 */
/* What needs a peer is in tests/proxy/upstream.t, against Python's ssl. */
#include "transport/tls.h"

#include "base/err.h"
#include "tests/tap.h"

/* What a server says who speaks no TLS. */
static void test_a_peer_without_tls(struct tls_trust *trust, const char *host)
{
    struct err err = { 0 };
    struct tls *t = NULL;
    char into[64];
    size_t n = 1;

    ok(tls_new(&t, trust, host, &err) == 0, "TLS begins with '%s'", host);
    if (!t)
        return;
    ok(tls_owed(t).n > 50 && (unsigned char)tls_owed(t).p[0] == 22,
       "with a handshake record");
    tls_paid(t);
    ok(tls_owed(t).n == 0 && !tls_is_open(t), "which is owed once");
    ok(tls_read(t, into, sizeof(into), &n, &err) == 0 && n == 0, "nothing came yet");
    ok(tls_feed(t, STR("HTTP/1.1 400 Bad Request\r\n\r\n"), &err) == 0 &&
           tls_read(t, into, sizeof(into), &n, &err) < 0 && err.code == ERR_PEER,
       "a peer without TLS is refused");
    ok(!tls_is_open(t) && !tls_has_ended(t), "and is not open");
    tls_free(t);
}

int main(void)
{
    struct tls_trust *trust = NULL;
    struct err err = { 0 };

    ok(tls_trust_new(&trust, "/dev/null", &err) < 0 && err.code == ERR_FORMAT,
       "a file without certificates");
    ok(tls_trust_new(&trust, "/nonexistent/ca.pem", &err) < 0,
       "a file that is not there");
    ok(tls_trust_new(&trust, NULL, &err) == 0, "the system's certificates");
    if (trust) {
        test_a_peer_without_tls(trust, "example.com");
        test_a_peer_without_tls(trust, "127.0.0.1");
        test_a_peer_without_tls(trust, "::1");
    }
    tls_trust_free(trust);
    tls_trust_free(NULL);
    tls_free(NULL);
    return tap_done();
}
