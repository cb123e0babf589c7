/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/proxy_flags.h"

#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/codec.h"
#include "base/err.h"
#include "cli/place.h"
#include "transport/tls.h"

#define DEFAULT_SHUTDOWN 10                 /* s */
#define SECONDS_MAX      ((uint64_t)604800) /* a week: of any time that is given */
#define MESSAGE_DEFAULT  ((uint64_t)1 << 30)
#define INTERVAL_MAX     1000000 /* minutes or receipts */

static int choose(int *out, const char *flag, const char *given, const char *const *words,
                  struct err *err)
{
    CLEANUP(buf_release) struct buf all = { 0 };

    for (int i = 0; given && words[i]; i++) {
        if (strcmp(given, words[i]) == 0) {
            *out = i;
            return 0;
        }
        buf_printf(&all, "%s%s", i ? ", " : "", words[i]);
    }
    return given ? err_set(err, ERR_FORMAT, "--%s cannot be '%s': it is one of %s", flag,
                           given, buf_cstr(&all))
                 : 0;
}

static int read_profile(struct proxy_run *r, struct err *err)
{
    static const char *const words[] = { "audit", "guard", NULL };
    int profile = 0;

    if (r->flags->profile && strcmp(r->flags->profile, "escrow") == 0)
        return err_set(err, ERR_REFUSED,
                       "--profile escrow is reserved for later: it does not exist");
    if (choose(&profile, "profile", r->flags->profile, words, err) < 0)
        return -1;
    r->relay.enforce = profile == 1;
    if (profile == 1 && !r->flags->policy)
        return err_set(err, ERR_FORMAT,
                       "--profile guard needs a policy: --policy FILE ('assay policy "
                       "init' makes one to begin with)");
    if (r->flags->show_denied && profile != 1)
        return err_set(err, ERR_FORMAT,
                       "--show-denied-tools is for --profile guard: audit hides nothing");
    return 0;
}

/* Before the server runs: a policy that cannot be read is no policy. */
static int read_policy(struct proxy_run *r, struct err *err)
{
    static const char *const words[] = { "off", "warn", "strict", NULL };
    int pin = -1;

    if (choose(&pin, "pin", r->flags->pin, words, err) < 0)
        return -1;
    r->relay.pin = (enum policy_pin)(pin + POLICY_PIN_OFF);
    if (pin < 0)
        r->relay.pin = POLICY_PIN_UNSET;
    r->relay.show_denied_tools = r->flags->show_denied;
    if (!r->flags->policy)
        return r->relay.pin == POLICY_PIN_STRICT
                   ? err_set(
                         err, ERR_FORMAT,
                         "--pin strict needs a policy: without one no call is refused "
                         "(--profile guard --policy FILE)")
                   : 0;
    if (policy_file_load(&r->policy, r->flags->policy, err) < 0)
        return -1;
    for (const struct policy_note *n = r->policy.policy->notes; n; n = n->next) {
        char sentence[600];

        snprintf(sentence, sizeof(sentence), "%s:%u: %.*s", r->flags->policy, n->line,
                 STR_ARG(n->text));
        status_note(&r->status, sentence);
    }
    r->relay.policy = &r->policy;
    return 0;
}

static int read_words(struct proxy_run *r, struct err *err)
{
    static const char *const durability[] = { "write", "group", "strict", NULL };
    static const char *const failure[] = { "pass", "block", NULL };
    int d = LOG_WRITE, f = LOG_PASS;

    if (read_profile(r, err) < 0)
        return -1;
    if (r->relay.enforce)
        f = LOG_BLOCK; /* who guards does not let pass what cannot be recorded */
    if (choose(&d, "durability", r->flags->durability, durability, err) < 0 ||
        choose(&f, "on-evidence-failure", r->flags->on_failure, failure, err) < 0)
        return -1;
    r->log.durability = (enum log_durability)d;
    r->log.on_failure = (enum log_on_failure)f;
    r->relay.block = f == LOG_BLOCK;
    return 0;
}

static int read_seconds(uint64_t *ms, const char *flag, const struct option_number *n,
                        struct err *err)
{
    if (!n->given)
        return 0;
    if (n->value > SECONDS_MAX)
        return err_set(err, ERR_LIMIT, "--%s is at most %llu seconds", flag,
                       (unsigned long long)SECONDS_MAX);
    *ms = n->value * 1000;
    return 0;
}

static int read_numbers(struct proxy_run *r, struct err *err)
{
    const struct proxy_flags *f = r->flags;

    r->relay.shutdown_timeout = DEFAULT_SHUTDOWN * 1000;
    r->relay.max_message = f->max_message.given ? f->max_message.value : MESSAGE_DEFAULT;
    if (f->call_timeout.given && f->call_timeout.value == 0)
        return err_set(err, ERR_FORMAT, "--call-timeout is 1 second or more");
    if (f->max_message.given && f->max_message.value == 0)
        return err_set(err, ERR_FORMAT, "--max-message-bytes is 1 or more");
    if (read_seconds(&r->relay.call_timeout, "call-timeout", &f->call_timeout, err) < 0)
        return -1;
    return read_seconds(&r->relay.shutdown_timeout, "shutdown-timeout", &f->shutdown,
                        err);
}

/* session, 10m, 500r */
static int read_interval(struct proxy_run *r, struct err *err)
{
    const char *text = r->flags->interval;
    str s = str_from(text);
    char unit = s.n ? s.p[s.n - 1] : '\0';
    uint64_t n;

    if (r->flags->auto_pack && r->flags->no_auto_pack)
        return err_set(err, ERR_FORMAT, "either --auto-pack or --no-auto-pack, not both");
    r->relay.pack = !r->flags->no_auto_pack;
    if (!text || strcmp(text, "session") == 0)
        return 0;
    if ((unit != 'm' && unit != 'r') || !u64_parse(&n, str_first(s, s.n - 1)) || n == 0 ||
        n > INTERVAL_MAX)
        return err_set(err, ERR_FORMAT,
                       "--pack-interval is 'session', or 1 to %d with 'm' for minutes or "
                       "'r' for receipts, not '%s'",
                       INTERVAL_MAX, text);
    if (!r->relay.pack)
        return err_set(err, ERR_FORMAT,
                       "--pack-interval asks for packs that --no-auto-pack forbids");
    r->relay.pack_ms = unit == 'm' ? n * 60000 : 0;
    r->relay.pack_receipts = unit == 'r' ? n : 0;
    return 0;
}

static int read_group(struct proxy_run *r, struct err *err)
{
    const char *name = r->flags->group;
    const struct group *g;
    uint64_t n;

    r->log.group = (gid_t)-1;
    if (!name)
        return 0;
    g = getgrnam(name);
    if (!g && (!u64_parse(&n, str_from(name)) || n >= (gid_t)-1))
        return err_set(err, ERR_NOTFOUND, "there is no group '%s'", name);
    r->log.group = g ? g->gr_gid : (gid_t)n;
    return 0;
}

static int read_pepper(struct proxy_run *r, struct err *err)
{
    if (!r->flags->pepper_file)
        return 0;
    if (pepper_read(r->flags->pepper_file, &r->pepper, err) < 0)
        return -1;
    r->relay.pepper = buf_str(&r->pepper);
    pepper_check(r->pepper_check, r->relay.pepper);
    r->log.pepper_check = r->pepper_check;
    return 0;
}

static int read_place(struct proxy_run *r, struct err *err)
{
    char sentence[FILE_PATH_MAX + 100];
    const char *why;

    if (place_for_writing(r->dir, r->flags->audit_dir, &why, err) < 0)
        return -1;
    if (why) {
        snprintf(sentence, sizeof(sentence), "recording in '%s': %s", r->dir, why);
        status_note(&r->status, sentence);
    }
    r->log.dir = r->dir;
    return keys_open(&r->keys, NULL, err);
}

/* NAME=VALUE. A value is a secret more often than not: no message repeats it. */
static int read_header(struct proxy_run *r, const char *given, struct err *err)
{
    const char *equals = strchr(given, '=');
    const char *colon = memchr(given, ':', strcspn(given, "="));
    struct http_own_header *h = &r->upstream.headers[r->upstream.header_count];

    if (colon && http_token_valid(str_of(given, (size_t)(colon - given))))
        return err_set(err, ERR_FORMAT,
                       "--header is NAME=VALUE: a '=' is needed behind '%.*s', not a ':'",
                       (int)(colon - given), given);
    if (!equals)
        return err_set(err, ERR_FORMAT, "--header is NAME=VALUE: there is no '=' in it");
    if (r->upstream.header_count == HTTP_OWN_HEADERS)
        return err_set(err, ERR_LIMIT, "--header can be given %d times",
                       HTTP_OWN_HEADERS);
    h->name = str_of(given, (size_t)(equals - given));
    h->value = http_trim_spaces(str_from(equals + 1));
    if (!http_token_valid(h->name) || !http_value_valid(h->value))
        return err_set(err, ERR_FORMAT,
                       "--header needs a header's name, '=' and a value of one line");
    if (!http_client_may_set(h->name))
        return err_set(err, ERR_REFUSED,
                       "--header cannot set '%.*s': the proxy does that itself",
                       (int)h->name.n, h->name.p);
    r->upstream.header_count++;
    return 0;
}

static int read_upstream(struct proxy_run *r, char *const *argv, struct err *err)
{
    const struct proxy_flags *f = r->flags;

    if (!f->upstream_url) {
        server_name(r->server_id, argv);
        r->relay.argv = argv;
        return f->ca || f->headers.count
                   ? err_set(err, ERR_FORMAT, "--%s is for --upstream-url",
                             f->ca ? "ca" : "header")
                   : 0;
    }
    if (url_parse(&r->upstream.url, f->upstream_url, err) < 0)
        return err_wrap(err, "--upstream-url");
    if (http_proxy_find(&r->upstream.proxy, &r->upstream.url, getenv, err) < 0)
        return -1;
    if (f->ca && !r->upstream.url.tls)
        return err_set(err, ERR_FORMAT, "--ca is for https");
    for (size_t i = 0; i < f->headers.count; i++) {
        if (read_header(r, f->headers.items[i], err) < 0)
            return -1;
    }
    r->upstream.ca_file = f->ca;
    snprintf(r->upstream.origin, sizeof(r->upstream.origin), "%s://%s",
             r->upstream.url.tls ? "https" : "http", r->upstream.url.authority);
    r->relay.upstream = &r->upstream;
    snprintf(r->server_id, sizeof(r->server_id), "%.*s", SERVER_NAME_MAX - 1,
             r->upstream.url.authority);
    return 0;
}

/* https://host or http://host:port, as browsers send it. */
static int check_origin(const char *origin, struct err *err)
{
    str s = str_from(origin), name, rest = { NULL, 0 };
    uint16_t port;

    if (str_is(s, "*"))
        return 0;
    if (str_starts(s, STR("http://")))
        rest = str_skip(s, 7);
    if (str_starts(s, STR("https://")))
        rest = str_skip(s, 8);
    if (rest.n && http_host_parse(&name, &port, rest))
        return 0;
    return err_set(err, ERR_FORMAT,
                   "--allow-origin is as a browser sends it (https://app.example.com), "
                   "or '*', not '%s'",
                   origin);
}

/* A group may be meant (Debian has one for keys); everybody is not. */
static void warn_of_open_key(struct proxy_run *r, const char *path)
{
    struct stat st;
    char sentence[FILE_PATH_MAX + 100];

    if (stat(path, &st) < 0 || !(st.st_mode & (S_IROTH | S_IWOTH)))
        return;
    snprintf(sentence, sizeof(sentence),
             "the key of --tls-key is open to everybody on this machine: chmod 600 %s",
             path);
    status_note(&r->status, sentence);
}

static int read_tls(struct proxy_run *r, struct err *err)
{
    const struct proxy_flags *f = r->flags;

    if (!f->tls_cert != !f->tls_key)
        return err_set(err, ERR_FORMAT, "--tls-cert and --tls-key belong together");
    if (f->tls_cert &&
        tls_identity_new(&r->front.identity, f->tls_cert, f->tls_key, err) < 0)
        return err_wrap(err, "--tls-cert, --tls-key");
    if (f->tls_key)
        warn_of_open_key(r, f->tls_key);
    return 0;
}

/* What only a listener has. */
static int refuse_listen_flags(const struct proxy_flags *f, struct err *err)
{
    const char *given = f->tls_cert        ? "tls-cert"
                        : f->tls_key       ? "tls-key"
                        : f->origins.count ? "allow-origin"
                        : f->share_child   ? "share-child"
                        : f->listen_any    ? "listen-any"
                                           : NULL;

    return given ? err_set(err, ERR_FORMAT, "--%s is for --listen", given) : 0;
}

static int read_listen(struct proxy_run *r, struct err *err)
{
    const struct proxy_flags *f = r->flags;

    if (!f->listen)
        return refuse_listen_flags(f, err);
    if (listen_address_parse(&r->address, f->listen, err) < 0)
        return err_wrap(err, "--listen");
    r->front.is_loopback = listen_host_is_loopback(r->address.host);
    if (!r->front.is_loopback && !f->listen_any)
        return listen_host_check(r->address.host, err) < 0
                   ? -1
                   : err_set(
                         err, ERR_REFUSED,
                         "--listen %s would let other machines in: add --listen-any if "
                         "that is meant",
                         f->listen);
    for (size_t i = 0; i < f->origins.count; i++) {
        if (check_origin(f->origins.items[i], err) < 0)
            return -1;
    }
    if (f->share_child && f->upstream_url)
        return err_set(err, ERR_FORMAT, "--share-child is for a server's command");
    r->front.relay = &r->relay;
    r->front.host = r->address.host;
    r->front.port = r->address.port;
    r->front.origins = f->origins.items;
    r->front.origin_count = f->origins.count;
    r->front.share_child = f->share_child;
    return read_tls(r, err);
}

int proxy_read_flags(struct proxy_run *r, char *const *argv, struct err *err)
{
    const struct proxy_flags *f = r->flags;

    if (read_upstream(r, argv, err) < 0 || read_listen(r, err) < 0)
        return -1;
    r->relay.server_id = f->server_id ? f->server_id : r->server_id;
    r->relay.store_arguments = f->store_args;
    r->relay.store_results = f->store_results;
    r->relay.pack_empty = f->pack_empty;
    r->relay.investigation = f->investigation;
    r->relay.say = status_note;
    r->relay.packed = status_pack;
    r->relay.say_ctx = &r->status;
    r->relay.told = &r->told;
    r->log.keys = &r->keys;
    r->log.clock = &clock_system;
    r->log.entropy = &entropy_system;
    r->log.say = status_note;
    r->log.say_ctx = &r->status;
    if (f->server_id && !f->server_id[0])
        return err_set(err, ERR_FORMAT, "--server-id is empty");
    if (read_words(r, err) < 0 || read_numbers(r, err) < 0 || read_interval(r, err) < 0 ||
        read_group(r, err) < 0 || read_pepper(r, err) < 0 || read_policy(r, err) < 0)
        return -1;
    return read_place(r, err);
}

void proxy_run_release(struct proxy_run *r)
{
    tls_identity_free(r->front.identity);
    http_proxy_release(&r->upstream.proxy);
    buf_release(&r->pepper);
    policy_file_release(&r->policy);
}
