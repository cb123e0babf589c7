/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/oauth.h"

#include "tests/tap.h"

static const struct oauth_places places = { { "https://mcp.example.com", 23 },
                                            { "http://127.0.0.1:8080", 21 },
                                            { "/v1/mcp", 7 },
                                            { "/mcp", 4 } };

struct row {
    const char *what, *in, *out;
};

static void check(void (*add)(struct buf *, str, const struct oauth_places *),
                  const struct row *row)
{
    CLEANUP(buf_release) struct buf out = { 0 };

    add(&out, str_from(row->in), &places);
    ok(str_is(buf_str(&out), row->out), "%s", row->what);
}

static const struct row paths[] = {
    { "our endpoint is the server's", "/.well-known/oauth-protected-resource/mcp",
      "/.well-known/oauth-protected-resource/v1/mcp" },
    { "the root stays", "/.well-known/oauth-protected-resource",
      "/.well-known/oauth-protected-resource" },
    { "another path stays", "/.well-known/oauth-protected-resource/x",
      "/.well-known/oauth-protected-resource/x" },
    { "another document stays", "/.well-known/oauth-authorization-server/mcp",
      "/.well-known/oauth-authorization-server/mcp" },
};

static const struct row challenges[] = {
    { "the description is here",
      "Bearer error=\"x\", resource_metadata=\"https://mcp.example.com/.well-known/"
      "oauth-protected-resource/v1/mcp\", scope=\"a b\"",
      "Bearer error=\"x\", resource_metadata=\"http://127.0.0.1:8080/.well-known/"
      "oauth-protected-resource/mcp\", scope=\"a b\"" },
    { "one elsewhere stays there",
      "Bearer resource_metadata=\"https://mcp.example.com.evil.example/x\"",
      "Bearer resource_metadata=\"https://mcp.example.com.evil.example/x\"" },
    { "a custom path is kept", "Bearer resource_metadata=\"https://mcp.example.com/m\"",
      "Bearer resource_metadata=\"http://127.0.0.1:8080/m\"" },
    { "without one nothing changes", "Bearer realm=\"r\"", "Bearer realm=\"r\"" },
    { "cut off", "Bearer resource_metadata=\"https://mcp.example.com",
      "Bearer resource_metadata=\"http://127.0.0.1:8080" },
};

static const struct row descriptions[] = {
    { "the resource is ours, and no other byte changes",
      "{ \"resource\": \"https://mcp.example.com/v1/mcp\",\n \"x\": 1.50 }",
      "{ \"resource\": \"http://127.0.0.1:8080/mcp\",\n \"x\": 1.50 }" },
    { "its root, too", "{\"resource\":\"https://mcp.example.com\"}",
      "{\"resource\":\"http://127.0.0.1:8080\"}" },
    { "one of another origin stays",
      "{\"resource\":\"https://mcp.example.com:444/v1/mcp\"}",
      "{\"resource\":\"https://mcp.example.com:444/v1/mcp\"}" },
    { "no JSON stays", "{\"resource\":", "{\"resource\":" },
    { "no string stays", "{\"resource\":[1]}", "{\"resource\":[1]}" },
};

int main(void)
{
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
        check(oauth_add_path, &paths[i]);
    for (size_t i = 0; i < sizeof(challenges) / sizeof(challenges[0]); i++)
        check(oauth_add_challenge, &challenges[i]);
    for (size_t i = 0; i < sizeof(descriptions) / sizeof(descriptions[0]); i++)
        check(oauth_add_metadata, &descriptions[i]);
    return tap_done();
}
