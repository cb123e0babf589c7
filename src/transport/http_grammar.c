/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/http_grammar.h"

#include <arpa/inet.h>

#include "base/attr.h"
#include "base/codec.h"

static const struct {
    const char *name;
    unsigned status;
    const char *why;
} refusals[] = {
#define X(name, status, why) [HTTP_##name] = { #name, status, why },
    HTTP_REFUSALS(X)
#undef X
};

const char *http_refusal_name(enum http_refusal r)
{
    return refusals[r].name;
}

const char *http_refusal_why(enum http_refusal r)
{
    return refusals[r].why;
}

unsigned http_refusal_status(enum http_refusal r)
{
    return refusals[r].status;
}

#define T        HTTP_TEXT            /* and nothing else */
#define N        (T | HTTP_TOKEN)     /* names too */
#define Q        (T | HTTP_QUERY)     /* queries too */
#define U        (Q | HTTP_PATH)      /* and paths */
#define P        (N | U)              /* names and URLs */
#define A        (P | HTTP_HOST_NAME) /* and hosts */
#define C        (A | HTTP_CAPITAL)   /* and methods */
#define D        (A | HTTP_DIGIT)
#define ROW16(x) x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x

/* A URL has what the URL standard leaves bare: in a path everything visible but
 * " # < > ? \ and in a query also ? and \. */
/* clang-format off */
const uint8_t http_classes[256] = {
    0, 0, 0, 0, 0, 0, 0, 0, 0, T, 0, 0, 0, 0, 0, 0, /* tab */
    ROW16(0),
    /*   !  "  #  $  %  &  '  (  )  *  +  ,  -  .  / */
    T, P, T, N, P, P, P, P, U, U, P, P, U, C, A, U,
    /* digits            :  ;  <  =  >  ? */
    D, D, D, D, D, D, D, D, D, D, U, U, T, U, T, Q,
    /* @ A to O */
    U, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C,
    /* P to Z                       [  \  ]  ^  _ */
    C, C, C, C, C, C, C, C, C, C, C, U, Q, U, P, A,
    /* ` a to o */
    P, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A,
    /* p to z                       {  |  }  ~  DEL */
    A, A, A, A, A, A, A, A, A, A, A, U, P, U, P, 0,
    ROW16(T), ROW16(T), ROW16(T), ROW16(T),
    ROW16(T), ROW16(T), ROW16(T), ROW16(T),
};
/* clang-format on */

bool http_all(str s, enum http_class wanted)
{
    for (size_t i = 0; i < s.n; i++) {
        if (!http_is(s.p[i], wanted))
            return false;
    }
    return true;
}

/* Has one of eight bytes the value n, or one below it? (Sean Anderson's bit tricks) */
#define EACH(n)          (UINT64_MAX / 255 * (n))
#define SOME_BELOW(w, n) (((w)-EACH(n)) & ~(w)&EACH(0x80))
#define SOME_EQUAL(w, n) SOME_BELOW((w) ^ EACH(n), 1)

/* Most of what comes is plain: eight bytes at once, up to a control character. */
size_t http_text_length(str s)
{
    size_t n = 0;
    uint64_t w;

    for (; s.n - n >= sizeof(w); n += sizeof(w)) {
        memcpy(&w, s.p + n, sizeof(w));
        if (SOME_BELOW(w, ' ') | SOME_EQUAL(w, 0x7f))
            break;
    }
    while (n < s.n && http_is(s.p[n], HTTP_TEXT))
        n++;
    return n;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

str http_trim(str s)
{
    while (s.n && is_blank(s.p[0]))
        s = (str){ s.p + 1, s.n - 1 };
    while (s.n && is_blank(s.p[s.n - 1]))
        s.n--;
    return s;
}

str http_trim_spaces(str s)
{
    while (s.n && s.p[0] == ' ')
        s = (str){ s.p + 1, s.n - 1 };
    while (s.n && s.p[s.n - 1] == ' ')
        s.n--;
    return s;
}

bool http_token_valid(str s)
{
    return s.n > 0 && http_all(s, HTTP_TOKEN);
}

bool http_value_valid(str s)
{
    return http_text_length(s) == s.n && http_trim_spaces(s).n == s.n;
}

bool http_method_valid(str s)
{
    return s.n > 0 && s.n <= HTTP_METHOD_MAX && http_all(s, HTTP_CAPITAL);
}

/* The byte at the front of a path, decoded, and its length in the path; 0 when it is a
 * broken escape or stands for NUL. */
static size_t path_byte(char *out, str path)
{
    char digits[2];

    *out = path.p[0];
    if (*out != '%')
        return 1;
    if (path.n < 3)
        return 0;
    digits[0] = ascii_lower(path.p[1]);
    digits[1] = ascii_lower(path.p[2]);
    return hex_decode(out, 1, str_of(digits, 2)) && *out ? 3 : 0;
}

/* Segments are looked at as the most helpful server would: with escapes decoded, an
 * escaped '/' or '\' a separator. */
static enum http_refusal path_check(str path)
{
    size_t dots = 0, other = 0, n;

    if (path.n == 0 || (http_all(path, HTTP_PATH) && !memchr(path.p, '%', path.n) &&
                        !memchr(path.p, '.', path.n)))
        return HTTP_NONE; /* as most are */
    while (path.n) {
        char c;

        if (!http_is(path.p[0], HTTP_PATH) || (n = path_byte(&c, path)) == 0)
            return HTTP_TARGET;
        path = str_skip(path, n);
        if (c == '.')
            dots++;
        else if (c != '/' && c != '\\')
            other++;
        if ((c == '/' || c == '\\' || path.n == 0) && !other && (dots == 1 || dots == 2))
            return HTTP_DOT_SEGMENT;
        if (c == '/' || c == '\\')
            dots = other = 0;
    }
    return HTTP_NONE;
}

/* Cut "http://authority" off the front of *rest; the authority is empty without. */
static bool cut_authority(str *authority, str *rest)
{
    static const char *const schemes[] = { "http://", "https://" };

    for (size_t i = 0; i < COUNT(schemes); i++) {
        str scheme = str_from(schemes[i]);
        size_t n = 0;

        if (!str_equal_nocase(str_first(*rest, scheme.n), scheme))
            continue;
        *rest = str_skip(*rest, scheme.n);
        while (n < rest->n && rest->p[n] != '/' && rest->p[n] != '?')
            n++;
        *authority = str_first(*rest, n);
        *rest = str_skip(*rest, n);
        return authority->n > 0;
    }
    return false;
}

enum http_refusal http_target_parse(struct http_target *t, str target)
{
    struct http_target found = { 0 };
    str rest = target;
    uint16_t port;
    str name;
    const char *mark;
    enum http_refusal r;

    if (!str_starts(target, STR("/")) &&
        (!cut_authority(&found.authority, &rest) ||
         !http_host_parse(&name, &port, found.authority)))
        return HTTP_TARGET;
    mark = rest.n ? memchr(rest.p, '?', rest.n) : NULL;
    found.path = mark ? str_first(rest, (size_t)(mark - rest.p)) : rest;
    if (mark)
        found.query = str_of(mark + 1, rest.n - found.path.n - 1);
    if ((r = path_check(found.path)) != HTTP_NONE)
        return r;
    if (!http_all(found.query, HTTP_QUERY))
        return HTTP_TARGET;
    if (found.path.n == 0)
        found.path = STR("/");
    *t = found;
    return HTTP_NONE;
}

static bool port_parse(uint16_t *port, str text)
{
    uint64_t value;

    if (!u64_parse(&value, text) || value == 0 || value > UINT16_MAX)
        return false;
    *port = (uint16_t)value;
    return true;
}

static bool is_address6(str s)
{
    char text[INET6_ADDRSTRLEN];
    struct in6_addr address;

    if (s.n == 0 || s.n >= sizeof(text) || memchr(s.p, '\0', s.n))
        return false;
    memcpy(text, s.p, s.n);
    text[s.n] = '\0';
    return inet_pton(AF_INET6, text, &address) == 1;
}

/* A name has no empty label; a dot at its end is the root's. */
static bool is_host_name(str s)
{
    if (s.n == 0 || s.n > HTTP_HOST_NAME_MAX || !http_all(s, HTTP_HOST_NAME) ||
        s.p[0] == '.')
        return false;
    for (size_t i = 1; i < s.n; i++) {
        if (s.p[i] == '.' && s.p[i - 1] == '.')
            return false;
    }
    return true;
}

bool http_host_parse(str *name, uint16_t *port, str host)
{
    bool bracket = str_starts(host, STR("["));
    const char *end = host.n ? memchr(host.p, bracket ? ']' : ':', host.n) : NULL;
    size_t n = end ? (size_t)(end - host.p) : host.n;
    str found = bracket ? str_skip(str_first(host, n), 1) : str_first(host, n);
    str rest = str_skip(host, bracket ? n + 1 : n);
    uint16_t number = 0;

    if (bracket ? !end || !is_address6(found) : !is_host_name(found))
        return false;
    if (rest.n && (rest.p[0] != ':' || !port_parse(&number, str_skip(rest, 1))))
        return false;
    *name = found;
    *port = number;
    return true;
}
