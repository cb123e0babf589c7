#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which addresses are public, by Python's ipaddress and socket modules and by IANA's
special-purpose registries as of 2024 where Python 3.11 does not know them yet.

    tests/data/make_addresses.py >tests/data/addresses.tsv

One line each: address in its usual spelling, TAB, public or private.
"""
import ipaddress
import random

NEWER = [ipaddress.ip_network(n) for n in (
    "192.0.0.0/24", "192.88.99.0/24",  # whole blocks, without their exceptions
    "2001::/23", "64:ff9b:1::/48", "3fff::/20", "5f00::/16", "fec0::/10")]
NAT64 = ipaddress.ip_network("64:ff9b::/96")


def is_public(a):
    if a.version == 6:
        inner = a.ipv4_mapped or a.sixtofour
        if a in NAT64:
            inner = ipaddress.IPv4Address(int(a) & 0xFFFFFFFF)
        if inner:
            return is_public(inner)
        if a not in ipaddress.ip_network("2000::/3"):
            return False
    if any(a.version == n.version and a in n for n in NEWER):
        return False
    return a.is_global and not a.is_multicast and not a.is_reserved


def edges(net):
    net = ipaddress.ip_network(net)
    first, last = int(net.network_address), int(net.broadcast_address)
    kind = type(net.network_address)
    for n in (first - 1, first, first + 1, last - 1, last, last + 1):
        if 0 <= n < 2 ** net.max_prefixlen:
            yield kind(n)


NETS = ["0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16",
        "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16",
        "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
        "::/128", "::1/128", "::/96", "::ffff:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48",
        "100::/64", "2001::/32", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
        "5f00::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8", "2000::/3"]
random.seed(4)
all4 = {a for n in NETS for a in edges(n)}
for n in range(300):
    all4.add(ipaddress.IPv4Address(random.getrandbits(32)))
    all4.add(ipaddress.IPv6Address(random.getrandbits(128)))
    all4.add(ipaddress.IPv6Address(0x2 << 124 | random.getrandbits(124)))
four = [a for a in all4 if a.version == 4]
for a in sorted(four)[:100] + random.sample(sorted(four), 60):
    all4.add(ipaddress.IPv6Address(0xFFFF << 32 | int(a)))
    all4.add(ipaddress.IPv6Address(0x64FF9B << 96 | int(a)))
    all4.add(ipaddress.IPv6Address(0x2002 << 112 | int(a) << 80 | random.getrandbits(80)))
for a in sorted(all4, key=lambda a: (a.version, int(a))):
    print(f"{a}\t{'public' if is_public(a) else 'private'}")
