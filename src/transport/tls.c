/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/tls.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/file.h"

#define KEEP_BYTES 1024 /* that an idle connection may hold for each direction */

struct tls_trust {
    SSL_CTX *context;
};

struct tls_identity {
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

static int check_readable(const char *path, struct err *err)
{
    int fd = file_open(path, O_RDONLY, 0, err);

    if (fd < 0)
        return -1;
    file_close(&fd);
    return 0;
}

static int load(SSL_CTX *context, const char *ca_file, struct err *err)
{
    if (ca_file && check_readable(ca_file, err) < 0)
        return -1;
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

static int make(struct tls **out, SSL_CTX *context, struct err *err)
{
    struct tls *t = calloc(1, sizeof(*t));

    if (!t)
        return err_set(err, ERR_NOMEM, "no memory for TLS");
    t->ssl = SSL_new(context);
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
    *out = t;
    return 0;
}

int tls_new(struct tls **out, struct tls_trust *trust, const char *host, struct err *err)
{
    struct tls *t;
    size_t none;

    if (make(&t, trust->context, err) < 0)
        return -1;
    SSL_set_connect_state(t->ssl);
    if (!expect(t->ssl, host) || tls_read(t, NULL, 0, &none, err) < 0) {
        tls_free(t);
        return err_set(err, ERR_FORMAT, "no TLS can be begun with this host name");
    }
    *out = t;
    return 0;
}

/* --- who we are --- */

/* An encrypted key would have somebody typed to: we are nobody's terminal. */
static int no_password(char *into, int room, int writing, void *asked)
{
    (void)into;
    (void)room;
    (void)writing;
    *(bool *)asked = true;
    return -1;
}

static int load_key(SSL_CTX *context, const char *key_file, struct err *err)
{
    bool asked = false;
    int r;

    SSL_CTX_set_default_passwd_cb(context, no_password);
    SSL_CTX_set_default_passwd_cb_userdata(context, &asked);
    r = SSL_CTX_use_PrivateKey_file(context, key_file, SSL_FILETYPE_PEM);
    SSL_CTX_set_default_passwd_cb_userdata(context, NULL);
    if (r == 1 && SSL_CTX_check_private_key(context) == 1)
        return 0;
    if (asked) {
        ERR_clear_error();
        return err_set(err, ERR_FORMAT,
                       "'%s': the key is encrypted; one without a password is needed",
                       key_file);
    }
    if (r == 1 || ERR_GET_REASON(ERR_peek_last_error()) == X509_R_KEY_VALUES_MISMATCH) {
        ERR_clear_error();
        return err_set(err, ERR_FORMAT, "'%s': the key is not that of the certificate",
                       key_file);
    }
    fail(err, "no private key can be read");
    err->code = ERR_FORMAT;
    return err_wrap(err, "'%s'", key_file);
}

static int load_identity(SSL_CTX *context, const char *cert_file, const char *key_file,
                         struct err *err)
{
    if (check_readable(cert_file, err) < 0 || check_readable(key_file, err) < 0)
        return -1;
    ERR_clear_error();
    if (SSL_CTX_use_certificate_chain_file(context, cert_file) != 1) {
        fail(err, "no certificate can be read");
        err->code = ERR_FORMAT;
        return err_wrap(err, "'%s'", cert_file);
    }
    return load_key(context, key_file, err);
}

/* Whoever offers protocols must offer ours. */
static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *n,
                           const unsigned char *offered, unsigned offered_n, void *ctx)
{
    (void)ssl;
    (void)ctx;
    for (unsigned at = 0; at < offered_n; at += 1u + offered[at]) {
        if (at + offered[at] < offered_n &&
            str_is(str_of(offered + at + 1, offered[at]), "http/1.1")) {
            *out = offered + at + 1;
            *n = offered[at];
            return SSL_TLSEXT_ERR_OK;
        }
    }
    return SSL_TLSEXT_ERR_ALERT_FATAL;
}

int tls_identity_new(struct tls_identity **out, const char *cert_file,
                     const char *key_file, struct err *err)
{
    struct tls_identity *i = calloc(1, sizeof(*i));

    if (!i || !(i->context = SSL_CTX_new(TLS_server_method()))) {
        free(i);
        return err_set(err, ERR_NOMEM, "no memory for TLS");
    }
    SSL_CTX_set_mode(i->context, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_options(i->context, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION |
                                        SSL_OP_CIPHER_SERVER_PREFERENCE |
                                        SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_session_cache_mode(i->context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_alpn_select_cb(i->context, choose_protocol, NULL);
    if (SSL_CTX_set_num_tickets(i->context, 0) != 1 ||
        SSL_CTX_set_min_proto_version(i->context, TLS1_2_VERSION) != 1) {
        tls_identity_free(i);
        return fail(err, "TLS cannot be set up");
    }
    if (load_identity(i->context, cert_file, key_file, err) < 0) {
        tls_identity_free(i);
        return -1;
    }
    *out = i;
    return 0;
}

void tls_identity_free(struct tls_identity *i)
{
    if (i)
        SSL_CTX_free(i->context);
    free(i);
}

int tls_accept(struct tls **out, struct tls_identity *identity, struct err *err)
{
    if (make(out, identity->context, err) < 0)
        return -1;
    SSL_set_accept_state((*out)->ssl);
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

/* A memory BIO never gives back what it once needed: an empty one for one that grew. */
static BIO *replacement(BIO *old)
{
    BUF_MEM *memory = NULL;

    if (BIO_get_mem_ptr(old, &memory) != 1 || memory->max <= KEEP_BYTES)
        return NULL;
    return BIO_new(BIO_s_mem());
}

static void trim_input(struct tls *t)
{
    BIO *fresh = BIO_pending(t->in) == 0 ? replacement(t->in) : NULL;

    if (!fresh)
        return;
    t->in = fresh;
    SSL_set0_rbio(t->ssl, fresh);
}

static int judge(struct tls *t, int result, struct err *err)
{
    long verified = SSL_get_verify_result(t->ssl);
    int why = SSL_get_error(t->ssl, result);

    if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) {
        trim_input(t);
        return 0;
    }
    if (why == SSL_ERROR_ZERO_RETURN) {
        t->ended = true;
        return 0;
    }
    if (verified != X509_V_OK) {
        ERR_clear_error();
        return err_set(err, ERR_REFUSED, "the server's certificate is not good: %s",
                       X509_verify_cert_error_string(verified));
    }
    if (ERR_GET_REASON(ERR_peek_error()) == SSL_R_WRONG_VERSION_NUMBER) {
        ERR_clear_error();
        return err_set(err, ERR_PEER,
                       "TLS failed: the other side does not speak TLS here");
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

void tls_finish(struct tls *t)
{
    ERR_clear_error();
    (void)SSL_shutdown(t->ssl); /* what it says waits in tls_owed() */
    ERR_clear_error();
}

str tls_owed(const struct tls *t)
{
    char *p = NULL;
    long n = BIO_get_mem_data(t->out, &p);

    return n > 0 ? str_of(p, (size_t)n) : (str){ NULL, 0 };
}

void tls_paid(struct tls *t)
{
    BIO *fresh = replacement(t->out);

    if (!fresh) {
        (void)BIO_reset(t->out);
        return;
    }
    t->out = fresh;
    SSL_set0_wbio(t->ssl, fresh);
}
