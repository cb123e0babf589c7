/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/tls.h"

#include <arpa/inet.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/err.h"

struct tls_trust {
    SSL_CTX *context;
};

struct tls {
    SSL *ssl;
    BIO *in, *out; /* the connection's */
    bool ended;
};

/* The first complaint of the library; the others are its consequences. */
static int fail(struct err *err, const char *what)
{
    unsigned long code = ERR_get_error();
    const char *why = code ? ERR_reason_error_string(code) : NULL;

    ERR_clear_error();
    return err_set(err, ERR_PEER, "%s: %s", what, why ? why : "no reason given");
}

static int load(SSL_CTX *context, const char *ca_file, struct err *err)
{
    if (ca_file && SSL_CTX_load_verify_file(context, ca_file) != 1) {
        fail(err, "no certificate can be read");
        err->code = ERR_FORMAT;
        return err_wrap(err, "'%s'", ca_file);
    }
    if (!ca_file && SSL_CTX_set_default_verify_paths(context) != 1)
        return fail(err, "the system's certificates cannot be read");
    return 0;
}

int tls_trust_new(struct tls_trust **out, const char *ca_file, struct err *err)
{
    static const unsigned char http1[] = "\x08http/1.1";
    struct tls_trust *t = calloc(1, sizeof(*t));

    if (!t || !(t->context = SSL_CTX_new(TLS_client_method()))) {
        free(t);
        return err_set(err, ERR_NOMEM, "no memory for TLS");
    }
    SSL_CTX_set_verify(t->context, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_mode(t->context, SSL_MODE_RELEASE_BUFFERS);
    if (SSL_CTX_set_min_proto_version(t->context, TLS1_2_VERSION) != 1 ||
        SSL_CTX_set_alpn_protos(t->context, http1, sizeof(http1) - 1) != 0) {
        tls_trust_free(t);
        return fail(err, "TLS cannot be set up");
    }
    if (load(t->context, ca_file, err) < 0) {
        tls_trust_free(t);
        return -1;
    }
    *out = t;
    return 0;
}

void tls_trust_free(struct tls_trust *t)
{
    if (t)
        SSL_CTX_free(t->context);
    free(t);
}

static bool is_address(const char *host)
{
    struct in6_addr ignored;

    return inet_pton(AF_INET, host, &ignored) == 1 ||
           inet_pton(AF_INET6, host, &ignored) == 1;
}

/* Whom the certificate must be for; a name is also told to the server. */
static bool expect(SSL *ssl, const char *host)
{
    if (is_address(host))
        return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1;
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return SSL_set1_host(ssl, host) == 1 &&
           SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                    (void *)(uintptr_t)host) == 1; /* the macro casts const away */
}

int tls_new(struct tls **out, struct tls_trust *trust, const char *host, struct err *err)
{
    struct tls *t = calloc(1, sizeof(*t));
    size_t none;

    if (!t)
        return err_set(err, ERR_NOMEM, "no memory for TLS");
    t->ssl = SSL_new(trust->context);
    t->in = BIO_new(BIO_s_mem());
    t->out = BIO_new(BIO_s_mem());
    if (!t->ssl || !t->in || !t->out) {
        BIO_free(t->in);
        BIO_free(t->out);
        SSL_free(t->ssl);
        free(t);
        return err_set(err, ERR_NOMEM, "no memory for TLS");
    }
    SSL_set_bio(t->ssl, t->in, t->out); /* which owns them now */
    SSL_set_connect_state(t->ssl);
    if (!expect(t->ssl, host) || tls_read(t, NULL, 0, &none, err) < 0) {
        tls_free(t);
        return err_set(err, ERR_FORMAT, "no TLS can be begun with this host name");
    }
    *out = t;
    return 0;
}

void tls_free(struct tls *t)
{
    if (t)
        SSL_free(t->ssl);
    free(t);
}

bool tls_is_open(const struct tls *t)
{
    return SSL_is_init_finished(t->ssl) == 1;
}

bool tls_has_ended(const struct tls *t)
{
    return t->ended;
}

int tls_feed(struct tls *t, str bytes, struct err *err)
{
    if (bytes.n > INT_MAX || BIO_write(t->in, bytes.p, (int)bytes.n) != (int)bytes.n)
        return err_set(err, ERR_NOMEM, "no memory for TLS");
    return 0;
}

static int judge(struct tls *t, int result, struct err *err)
{
    long verified = SSL_get_verify_result(t->ssl);
    int why = SSL_get_error(t->ssl, result);

    if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE)
        return 0;
    if (why == SSL_ERROR_ZERO_RETURN) {
        t->ended = true;
        return 0;
    }
    if (verified != X509_V_OK) {
        ERR_clear_error();
        return err_set(err, ERR_REFUSED, "the server's certificate is not good: %s",
                       X509_verify_cert_error_string(verified));
    }
    return fail(err, "TLS failed");
}

int tls_read(struct tls *t, char *into, size_t room, size_t *n, struct err *err)
{
    int result;

    *n = 0;
    ERR_clear_error();
    if (!tls_is_open(t)) {
        result = SSL_do_handshake(t->ssl);
        if (result != 1)
            return judge(t, result, err);
    }
    if (room == 0)
        return 0;
    result = SSL_read_ex(t->ssl, into, room, n);
    return result == 1 ? 0 : judge(t, result, err);
}

int tls_write(struct tls *t, str bytes, struct err *err)
{
    size_t n;

    ERR_clear_error();
    if (bytes.n == 0)
        return 0;
    if (SSL_write_ex(t->ssl, bytes.p, bytes.n, &n) != 1 || n != bytes.n)
        return fail(err, "TLS cannot write");
    return 0;
}

str tls_owed(const struct tls *t)
{
    char *p = NULL;
    long n = BIO_get_mem_data(t->out, &p);

    return n > 0 ? str_of(p, (size_t)n) : (str){ NULL, 0 };
}

void tls_paid(struct tls *t)
{
    (void)BIO_reset(t->out);
}
