/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For guard.t: a pack of a session with a denied call and another request behind it,
 * remade by somebody who says that the denied call was that request: it went on.
 *
 *     guard PACK DIR
 */
#include "tests/forge.h"

int main(int argc, char **argv)
{
    const uint8_t seed[SEED_SIZE] = "a key that nobody here has seen";
    struct err err = { 0 };
    struct secret_key key;
    struct forge f;
    struct buf *events = &f.file[FORGE_EVENTS];
    char call[64];
    size_t denied;

    forge_must(argc == 3, "guard PACK DIR");
    forge_must(secret_key_from_seed(&key, seed, &err) == 0, err.msg);
    forge_load(&f, argv[1], argv[2], &key);
    denied = forge_typed(events, "request_denied", 0);
    snprintf(call, sizeof(call), "%.*s", STR_ARG(forge_get_line(events, denied, "call")));
    forge_add_line(events, forge_typed(events, "request_forwarded", 0), "call",
                   str_from(call));
    forge_relog(&f);
    forge_release(&f);
    return 0;
}
