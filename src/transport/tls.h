/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tls - TLS as a filter between bytes and bytes (an OpenSSL memory BIO): it owns no
 * descriptor and never waits. The certificate of a server is always verified, the name or
 * address that was asked for included; there is no way to leave that out. A client is
 * not asked for one.
 */
#ifndef TRANSPORT_TLS_H
#define TRANSPORT_TLS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/str.h"

struct err;
struct tls;
struct tls_identity;
struct tls_trust;

/* Whom to believe: the certificates of a PEM file and nobody else; with NULL those of the
 * system. */
MUST_CHECK int tls_trust_new(struct tls_trust **out, const char *ca_file,
                             struct err *err);
void tls_trust_free(struct tls_trust *t); /* NULL is fine */

/* A connection to that host, a name or an address. What it has to say first waits in
 * tls_owed(). */
MUST_CHECK int tls_new(struct tls **out, struct tls_trust *trust, const char *host,
                       struct err *err);

/* Who we are to clients: the PEM files of a certificate (first) with those that vouch for
 * it, and of its private key, which may not be encrypted. */
MUST_CHECK int tls_identity_new(struct tls_identity **out, const char *cert_file,
                                const char *key_file, struct err *err);
void tls_identity_free(struct tls_identity *i); /* after all its connections; NULL too */

/* A connection from a client, who speaks first. TLS 1.2 or later. */
MUST_CHECK int tls_accept(struct tls **out, struct tls_identity *identity,
                          struct err *err);
void tls_free(struct tls *t); /* NULL is fine */

bool tls_is_open(const struct tls *t); /* the handshake is done, the peer is who it is */

/* Bytes came from the network. */
MUST_CHECK int tls_feed(struct tls *t, str bytes, struct err *err);

/* Do what can be done with them: the handshake, then content. *n is 0 when there is none
 * yet. Look at tls_owed() afterwards, whatever the answer is. */
MUST_CHECK int tls_read(struct tls *t, char *into, size_t room, size_t *n,
                        struct err *err);
bool tls_has_ended(const struct tls *t); /* the peer said that no more comes */

MUST_CHECK int tls_write(struct tls *t, str bytes, struct err *err); /* once open */
void tls_finish(struct tls *t); /* tell the peer that no more comes */

/* What is for the network; tls_paid() when it has been taken. */
str tls_owed(const struct tls *t);
void tls_paid(struct tls *t);

#endif
