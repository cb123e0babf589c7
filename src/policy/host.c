/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/host.h"

#include <stdint.h>

#include "base/attr.h"
#include "policy/address.h"
#include "policy/idn.h"
#include "policy/key.h"
#include "policy/percent.h"
#include "policy/space.h"

#define DECODES_MAX 3    /* %25252e: as often as a chain of servers might */
#define WHOLE_MAX   128  /* bytes of a text that is an address as a whole */
#define SPAN_MAX    4096 /* bytes behind an authority in which an @ means a host */

#define UNREADABLE "not a host name that can be read"

/* How sure it is that a host stands there. */
enum trust {
    PERHAPS, /* only an address or a name of this machine counts */
    LIKELY,  /* a name is looked up, what cannot be read is none */
    SURELY,  /* a name is looked up, what cannot be read is refused */
};

/* Where a URL ends. */
enum extent {
    IN_TEXT, /* at white space or a quote, and before the mark that ends a sentence */
    IN_WORD, /* at white space: "http://a\"@b/" leads to b */
    WHOLE,   /* with the text: "http://a @b/" leads to b */
};

bool host_is_key(str key)
{
    static const char *const words[] = { "*url",     "*uri",     "href",    "host",
                                         "hostname", "endpoint", "address", NULL };
    static const char *const named[] = { "host", NULL };

    return key_ends_in(key, words) || key_is_name_of(key, named);
}

/* --- one host, without anything around it --- */

static const char *refuse(struct host_look *look, str found, const char *what)
{
    look->found = found;
    return what;
}

/* Names that lead inside by their meaning, also below them. */
static const struct {
    const char *name, *what;
} inner_names[] = {
    { "localhost", "a name of this machine (localhost)" },
    { "localdomain", "a name of this network (localdomain)" },
    { "localhost6", "a name of this machine (localhost6)" },
    { "ip6-localhost", "a name of this machine (ip6-localhost)" },
    { "ip6-loopback", "a name of this machine (ip6-loopback)" },
    { "local", "a name of this network (.local)" },
    { "internal", "a private name (.internal)" },
    { "home.arpa", "a name of this network (home.arpa)" },
    { "metadata", "a name of a metadata service" },
    { "metadata.goog", "a name of a metadata service" },
    { "instance-data", "a name of a metadata service" },
    { "kubernetes.default.svc", "a name of a cluster's control plane" },
};

static bool is_or_below(str host, str name)
{
    return str_ends(host, name) &&
           (host.n == name.n || host.p[host.n - name.n - 1] == '.');
}

static const char *inner_name(str host, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (is_or_below(host, str_from(inner_names[i].name)))
            return inner_names[i].what;
    }
    return NULL;
}

static bool is_label_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

static bool is_name(str host)
{
    size_t label = 0;

    if (host.n == 0 || host.n > HOST_NAME_MAX)
        return false;
    for (size_t i = 0; i < host.n; i++) {
        if (host.p[i] == '.') {
            if (label == 0)
                return false;
            label = 0;
        } else if (!is_label_char(host.p[i]) || ++label > HOST_LABEL_MAX) {
            return false;
        }
    }
    return label > 0;
}

static const char *collect(struct host_look *look, str host, str found)
{
    str copy;

    if (!is_name(host))
        return refuse(look, found, UNREADABLE);
    for (size_t i = 0; i < look->name_count; i++) {
        if (str_equal(look->names[i], host))
            return NULL;
    }
    if (look->name_count == HOST_NAMES_MAX)
        return refuse(look, found, "one of too many names (16 is the limit)");
    copy = arena_dup(look->arena, host);
    if (!copy.p)
        return refuse(look, found, "not decided: out of memory");
    look->names[look->name_count++] = copy;
    return NULL;
}

/* Percent-decoded, mapped to ASCII, without dots at the end; SIZE_MAX: unreadable. */
static size_t plain_form(char out[static IDN_MAX], str host)
{
    char UNINITIALIZED decoded[IDN_MAX];
    size_t n = host.n, before;

    if (host.n >= IDN_MAX)
        return SIZE_MAX;
    memcpy(decoded, host.p, host.n);
    for (int i = 0; i < DECODES_MAX; i++) {
        before = n;
        n = percent_decode(decoded, str_of(decoded, n));
        if (n == before)
            break;
    }
    n = idn_to_ascii(out, str_of(decoded, n));
    while (n != SIZE_MAX && n > 0 && out[n - 1] == '.')
        n--;
    return n;
}

static const char *judge(struct host_look *look, str host, enum trust trust)
{
    const char *unreadable = trust == SURELY ? UNREADABLE : NULL, *what = NULL;
    char UNINITIALIZED ascii[IDN_MAX];
    size_t n;

    if (host.n == 0)
        return NULL;
    n = plain_form(ascii, host);
    if (n == SIZE_MAX || n == 0)
        return unreadable ? refuse(look, host, unreadable) : NULL;
    switch (address_read(str_of(ascii, n), &what)) {
    case ADDRESS_PRIVATE:
        return refuse(look, host, what);
    case ADDRESS_PUBLIC:
        return NULL;
    case ADDRESS_BROKEN:
        return unreadable ? refuse(look, host, "not an address that can be read") : NULL;
    case ADDRESS_NONE:
        break;
    }
    if (trust == LIKELY && !is_name(str_of(ascii, n)))
        return NULL;
    what = inner_name(str_of(ascii, n), COUNT(inner_names));
    if (what)
        return refuse(look, host, what);
    return trust == PERHAPS ? NULL : collect(look, str_of(ascii, n), host);
}

/* --- host and port --- */

static size_t count_char(str s, char c)
{
    size_t n = 0;

    for (size_t i = 0; i < s.n; i++)
        n += s.p[i] == c;
    return n;
}

static bool is_port(str s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
    }
    return true;
}

static size_t find(str s, char c)
{
    const char *at = s.n ? memchr(s.p, c, s.n) : NULL;

    return at ? (size_t)(at - s.p) : s.n;
}

static const char *judge_with_port(struct host_look *look, str s, enum trust trust)
{
    bool bracket = s.n && s.p[0] == '[';
    size_t end = bracket ? find(s, ']') + 1 : find(s, ':');
    const char *what = NULL;

    if (!bracket && count_char(s, ':') > 1 &&
        address_read(s, &what) != ADDRESS_NONE) /* IPv6 without its brackets */
        return what ? refuse(look, s, what) : NULL;
    if (end > s.n) /* no ']' */
        return trust == SURELY ? refuse(look, s, UNREADABLE) : NULL;
    what = judge(look, str_first(s, end), trust);
    if (what || trust != SURELY || end == s.n)
        return what;
    if (s.p[end] != ':' || !is_port(str_skip(s, end + 1)))
        return refuse(look, s, UNREADABLE);
    return NULL;
}

/* --- what stands behind :// --- */

static bool is_space(char c)
{
    return (unsigned char)c <= ' ';
}

static bool ends_text(char c)
{
    return is_space(c) || c == '"' || c == '<' || c == '>' || c == '`' || c == 0x7f;
}

static bool ends_url(char c, enum extent extent)
{
    return extent == IN_TEXT ? ends_text(c) : extent == IN_WORD && is_space(c);
}

static bool ends_authority(char c)
{
    return c == '/' || c == '\\' || c == '?' || c == '#';
}

/* User and password, which some parsers take for the host. A word alone is a user. */
static const char *judge_user(struct host_look *look, str user)
{
    size_t colon = find(user, ':');
    str name = str_first(user, colon);
    const char *what = judge_with_port(look, user, PERHAPS);

    if (!what && colon < user.n)
        what = judge(look, str_skip(user, colon + 1), PERHAPS);
    if (!what && memchr(name.p ? name.p : "", '.', name.n) && is_name(name))
        what = judge(look, name, SURELY);
    return what;
}

/* Marks that end a sentence, not a host. */
static str without_marks(str s)
{
    while (s.n && strchr(",;:.!)'}*_~|", s.p[s.n - 1]))
        s.n--;
    return s;
}

static const char *judge_authority(struct host_look *look, str s, enum extent extent,
                                   enum trust trust)
{
    const char *what;
    size_t at;

    while ((at = find(s, '@')) < s.n) {
        what = judge_user(look, str_first(s, at));
        if (what)
            return what;
        s = str_skip(s, at + 1);
    }
    return judge_with_port(look, extent == WHOLE ? s : without_marks(s), trust);
}

/* A parser that does not end the authority at '\', '?' or '#' finds a host behind an @
 * that comes before the next '/'. */
static const char *judge_beyond(struct host_look *look, str s, enum extent extent,
                                enum trust trust)
{
    size_t n = 0;
    const char *what = NULL;

    while (n < s.n && n < SPAN_MAX && s.p[n] != '/' && !ends_url(s.p[n], extent))
        n++;
    s = str_first(s, n);
    for (size_t at; !what && (at = find(s, '@')) < s.n;) {
        size_t end = 0;

        s = str_skip(s, at + 1);
        while (end < s.n && s.p[end] != '@' && !ends_authority(s.p[end]))
            end++;
        what = judge_with_port(look, str_first(s, end), trust);
    }
    return what;
}

static const char *look_at_url(struct host_look *look, str s, enum extent extent,
                               enum trust trust)
{
    const char *what;
    size_t n = 0;

    while (n < s.n && !ends_authority(s.p[n]) && !ends_url(s.p[n], extent))
        n++;
    what = judge_authority(look, str_first(s, n), extent, trust);
    if (!what && n < s.n && s.p[n] != '/' && trust != PERHAPS)
        what = judge_beyond(look, str_skip(s, n), extent, trust);
    return what;
}

static bool is_slash(char c)
{
    return c == '/' || c == '\\';
}

static bool is_scheme_char(char c)
{
    char l = (char)(c | 0x20);

    return (l >= 'a' && l <= 'z') || (c >= '0' && c <= '9') || c == '+' || c == '-' ||
           c == '.';
}

static str skip_slashes(str s)
{
    while (s.n && is_slash(s.p[0]))
        s = str_skip(s, 1);
    return s;
}

static bool starts_with_word(str s, str lower_case)
{
    if (s.n < lower_case.n)
        return false;
    for (size_t i = 0; i < lower_case.n; i++) {
        char c = s.p[i];

        if ((c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c) != lower_case.p[i])
            return false;
    }
    return true;
}

static bool is_file(str scheme)
{
    return scheme.n == 4 && starts_with_word(scheme, STR("file"));
}

/* Every scheme:// in a text. *first is true when the text begins with one; *any when
 * there is one at all. */
static const char *scan(struct host_look *look, str text, enum extent extent,
                        enum trust trust, bool *first, bool *any)
{
    const char *what = NULL;
    size_t at = 0;

    for (; !what && at < text.n; at++) {
        size_t from;
        str rest;

        at += find(str_skip(text, at), ':');
        if (text.n - at < 3 || !is_slash(text.p[at + 1]) || !is_slash(text.p[at + 2]))
            continue;
        from = at;
        while (from > 0 && at - from < 64 && is_scheme_char(text.p[from - 1]))
            from--;
        if (from == at)
            continue;
        *any = true;
        *first = *first || from == 0;
        rest = str_skip(text, at + 3);
        if (!is_file(str_of(text.p + from, at - from)))
            rest = skip_slashes(rest); /* http:///host is http://host to browsers */
        what = look_at_url(look, rest, extent, trust);
    }
    return what;
}

/* --- the value of a host key, without :// --- */

/* http:host and http:/host are http://host to browsers. The length of the scheme and its
 * colon; 0 for none. */
static size_t special_scheme(str s)
{
    static const char *const schemes[] = { "http:", "https:", "ws:", "wss:", "ftp:" };

    for (size_t i = 0; i < COUNT(schemes); i++) {
        if (starts_with_word(s, str_from(schemes[i])))
            return strlen(schemes[i]);
    }
    return 0;
}

/* mailto:, data:, urn: - something with a colon that is neither host:port nor has an @.
 */
static bool is_opaque(str s)
{
    size_t colon = find(s, ':'), end = 0;

    while (end < s.n && !ends_authority(s.p[end]))
        end++;
    if (colon >= end || s.p[0] == '[' || find(str_first(s, end), '@') < end)
        return false;
    return !is_port(str_of(s.p + colon + 1, end - colon - 1)) &&
           count_char(str_first(s, end), ':') == 1;
}

static const char *look_at_value(struct host_look *look, str s)
{
    size_t scheme = special_scheme(s);

    if (scheme)
        return look_at_url(look, skip_slashes(str_skip(s, scheme)), WHOLE, SURELY);
    if (s.n == 0 || s.p[0] == '?' || s.p[0] == '#')
        return NULL;
    if (is_slash(s.p[0])) /* a path of some server, or //host */
        return s.n > 1 && is_slash(s.p[1])
                   ? look_at_url(look, skip_slashes(s), WHOLE, SURELY)
                   : NULL;
    return look_at_url(look, s, WHOLE, is_opaque(s) ? PERHAPS : SURELY);
}

/* --- a whole text --- */

/* Most texts are seen at once not to be an address or localhost. */
static bool may_be_address(str s)
{
    bool marked = s.n == strlen("localhost");

    if (s.n == 0 || s.n > WHOLE_MAX)
        return false;
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];

        if (c <= ' ' || c == '/' || c == ',' || c == '(')
            return false;
        marked = marked || c == '.' || c == ':' || c == '[' || c == '%' || c >= 0x80;
    }
    return marked;
}

/* An address with dots, colons or brackets, or localhost; with or without port. */
static const char *look_at_whole(struct host_look *look, str s)
{
    bool bracket = s.n && s.p[0] == '[';
    char UNINITIALIZED ascii[IDN_MAX];
    const char *what = NULL;
    size_t n, end;
    str plain;

    if (!may_be_address(s))
        return NULL;
    end = bracket ? find(s, ']') + 1 : count_char(s, ':') == 1 ? find(s, ':') : s.n;
    if (end > s.n || (end < s.n && (s.p[end] != ':' || !is_port(str_skip(s, end + 1)))))
        return NULL;
    n = plain_form(ascii, str_first(s, end));
    if (n == SIZE_MAX || n == 0)
        return NULL;
    plain = str_of(ascii, n);
    if (bracket || find(plain, '.') < n || count_char(plain, ':') > 1)
        address_read(plain, &what);
    if (!what)
        what = inner_name(plain, 1);
    return what ? refuse(look, s, what) : NULL;
}

/* An address behind any @ of a text that has a URL. */
static const char *look_behind_ats(struct host_look *look, str s)
{
    const char *what = NULL;

    for (size_t at; !what && (at = find(s, '@')) < s.n;) {
        size_t end = 0;

        s = str_skip(s, at + 1);
        while (end < s.n && end < IDN_MAX && s.p[end] != '@' &&
               !ends_authority(s.p[end]) && !ends_text(s.p[end]))
            end++;
        what = judge_with_port(look, without_marks(str_first(s, end)), PERHAPS);
    }
    return what;
}

/* As one that takes the whole text for a URL reads it. */
static const char *look_at_whole_url(struct host_look *look, str s)
{
    size_t scheme = special_scheme(s), at = 0;
    str rest = skip_slashes(str_skip(s, scheme));

    if (scheme)
        return look_at_url(look, rest, WHOLE, LIKELY);
    while (at < s.n && is_scheme_char(s.p[at]))
        at++;
    rest = str_skip(s, at);
    if (at == 0 || !str_starts(rest, STR("://")))
        return NULL;
    return look_at_url(look, str_skip(rest, 3), WHOLE, LIKELY);
}

/* Browsers leave line breaks and tabs out of a URL before they read it. In the middle of
 * a text, where a URL ends with its line, that gives no name. */
static const char *look_without_breaks(struct host_look *look, str s)
{
    char *copy = arena_alloc(look->arena, s.n);
    bool first = false, any = false;
    const char *what;

    if (!copy)
        return refuse(look, STR(""), "not decided: out of memory");
    s = str_of(copy, space_drop_breaks(copy, s));
    what = scan(look, s, IN_TEXT, PERHAPS, &first, &any);
    return what ? what : look_at_whole_url(look, s);
}

/* A text under no host key, in all other ways than at first sight. */
static const char *look_again(struct host_look *look, str text, bool any)
{
    size_t scheme = special_scheme(text);
    bool ignored = false;
    const char *what = look_at_whole(look, text);

    if (!what && scheme)
        what = look_at_url(look, skip_slashes(str_skip(text, scheme)), IN_TEXT, PERHAPS);
    if (!what && any)
        what = scan(look, text, IN_WORD, LIKELY, &ignored, &ignored);
    if (!what)
        what = look_at_whole_url(look, text);
    if (!what && space_has_break(text) && find(text, ':') < text.n)
        what = look_without_breaks(look, text);
    return what;
}

const char *host_refuse(struct host_look *look, str text, bool is_host)
{
    bool first = false, any = false;
    const char *what;

    text = space_trim(text);
    if (text.n == 0)
        return NULL;
    if (is_host && space_has_break(text))
        return refuse(look, text, "split by a line break or a tab");
    what = scan(look, text, is_host ? WHOLE : IN_TEXT, SURELY, &first, &any);
    if (!what && is_host && !first)
        what = look_at_value(look, text);
    if (!what && !is_host)
        what = look_again(look, text, any);
    if (!what && (is_host || any))
        what = look_behind_ats(look, text);
    return what;
}
