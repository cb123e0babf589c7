/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of Python's punycode codec and unicodedata.normalize('NFKC', …). */
#include "policy/idn.h"

#include <stdint.h>
#include <stdio.h>

#include "tests/tap.h"

static const struct {
    const char *host, *want; /* NULL: no host */
} cases[] = {
    { "example.com", "example.com" },
    { "EXAMPLE.Com.", "example.com." },
    { "b\xc3\xbc"
      "cher.example",
      "xn--bcher-kva.example" },
    { "B\xc3\x9c"
      "CHER.example",
      "xn--bcher-kva.example" },
    { "ma\xc3\xb1"
      "ana.com",
      "xn--maana-pta.com" },
    { "\xe4\xbe\x8b\xe3\x81\x88.\xe3\x83\x86\xe3\x82\xb9\xe3\x83\x88",
      "xn--r8jz45g.xn--zckzah" },
    { "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e\xe3\x80\x82\xef\xbc\xaa\xef\xbc\xb0",
      "xn--wgv71a119e.jp" },
    { "\xd0\x95\xd1\x89\xd1\x91.\xd1\x80\xd1\x84", "xn--e1a4bya.xn--p1ai" },
    { "\xce\xa0\xce\xb1\xcf\x81\xce\xac\xce\xb4\xce\xb5\xce\xb9\xce\xb3\xce\xbc\xce\xb1",
      "xn--hxajbheg2az3al" },
    { "\xe2\x98\x83.net", "xn--n3h.net" },
    { "m\xc3\xbcnchen-ost.de", "xn--mnchen-ost-9db.de" },
    { "\xc3\xbc", "xn--tda" },
    { "\xc3\xa9\xc3\xa9.\xc3\xbc-a", "xn--9caa.xn---a-wka" },
    { "\xe4\xbb\x96\xe4\xbb\xac\xe4\xb8\xba\xe4\xbb\x80\xe4\xb9\x88\xe4\xb8\x8d\xe8\xaf\xb4"
      "\xe4\xb8\xad\xe6\x96\x87",
      "xn--ihqwcrb4cv8a8dqg056pqjye" },
    { "\xef\xbc\x91\xef\xbc\x92\xef\xbc\x97.0.0.1", "127.0.0.1" },
    { "127\xef\xbd\xa1"
      "0\xef\xbc\x8e"
      "0.1",
      "127.0.0.1" },
    { "\xe2\x91\xa0\xe2\x91\xa1\xe2\x91\xa6.0.0.1", "127.0.0.1" },
    { "\xf0\x9d\x9f\x8f\xf0\x9d\x9f\x90\xf0\x9d\x9f\x95.0.0.1", "127.0.0.1" },
    { "\xf0\x9d\x93\xb5\xf0\x9d\x90\xa8\xf0\x9d\x91\x90"
      "al",
      "local" },
    { "\xe2\x84\x93ocal\xe2\x84\x8b", "localh" },
    { "lo\xc2\xad"
      "cal\xe2\x80\x8b",
      "local" },
    { "\xe2\x84\xaa", "k" },
    { "\xc5\xbf", "s" },
    { "", "" },
    { "a b", "a b" },
    { "\xff", NULL },
    { "\xed\xa0\x80", NULL },
};

static void test_limits(void)
{
    char host[IDN_MAX + 1], out[IDN_MAX];

    memset(host, 'a', sizeof(host));
    for (size_t i = 60; i < sizeof(host); i += 60)
        host[i] = '.';
    ok(idn_to_ascii(out, str_of(host, IDN_MAX - 16)) == IDN_MAX - 16, "a long host");
    ok(idn_to_ascii(out, str_of(host, IDN_MAX)) == SIZE_MAX, "one that is too long");
    memset(host, 'a', sizeof(host));
    ok(idn_to_ascii(out, str_of(host, 128)) == 128, "a long label");
    ok(idn_to_ascii(out, str_of(host, 129)) == SIZE_MAX, "one that is too long");
    for (size_t i = 0; i + 1 < 512; i += 2)
        memcpy(host + i, "\xc3\xbc", 2);
    ok(idn_to_ascii(out, str_of(host, 256)) != SIZE_MAX, "a label of one letter");
    ok(idn_to_ascii(out, str_of(host, 258)) == SIZE_MAX, "that is too long");
    for (size_t i = 0; i + 3 < 510; i += 4)
        memcpy(host + i, "\xf4\x8f\xbf\xbf", 4);
    ok(idn_to_ascii(out, str_of(host, 508)) < IDN_MAX, "the largest code points");
}

int main(void)
{
    for (size_t i = 0; i < COUNT(cases); i++) {
        char out[IDN_MAX];
        size_t n = idn_to_ascii(out, str_from(cases[i].host));
        bool same = cases[i].want ? n != SIZE_MAX && str_is(str_of(out, n), cases[i].want)
                                  : n == SIZE_MAX;

        ok(same, "%s", cases[i].want ? cases[i].want : "no host");
        if (!same && n != SIZE_MAX)
            printf("# is %.*s\n", (int)n, out);
    }
    test_limits();
    return tap_done();
}
