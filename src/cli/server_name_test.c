/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/server_name.h"

#include <string.h>

#include "base/str.h"
#include "tests/tap.h"

static char long_name[300];

int main(void)
{
    const struct {
        const char *argv[8];
        const char *name;
    } rows[] = {
        { { "my-server" }, "my-server" },
        { { "/opt/bin/my-server", "--flag" }, "my-server" },
        { { "npx", "-y", "@scope/server-x", "/dir" }, "server-x" },
        { { "npx", "-y", "@scope/server-x@1.2.3" }, "server-x" },
        { { "/usr/bin/npx", "server-y@latest" }, "server-y" },
        { { "npx", "-p", "@s/package", "tool" }, "tool" },
        { { "npx", "--package=@s/package", "tool" }, "tool" },
        { { "npx", "-y" }, "npx" },
        { { "npx", "@scope" }, "@scope" },
        { { "uvx", "mcp-server-git", "--repository", "x" }, "mcp-server-git" },
        { { "uvx", "mcp-server-git==2.0" }, "mcp-server-git" },
        { { "uvx", "mcp-server[cli]" }, "mcp-server" },
        { { "uvx", "--from", "git+https://h/o/r", "tool" }, "tool" },
        { { "uv", "run", "--directory", "/x", "server.py" }, "server.py" },
        { { "pipx", "run", "tool" }, "tool" },
        { { "node", "--require", "./hook.js", "dist/index.js" }, "index.js" },
        { { "node", "a@b.js" }, "a@b.js" },
        { { "node" }, "node" },
        { { "python3", "-u", "/srv/server.py", "x" }, "server.py" },
        { { "python3.11", "-m", "pkg.server" }, "pkg.server" },
        { { "python", "-m" }, "python" },
        { { "python-language-server" }, "python-language-server" },
        { { "node", "dir/" }, "node" },
        { { "dir/" }, "server" },
        { { "\xff" }, "server" },
    };
    char out[SERVER_NAME_MAX];
    char *const long_argv[] = { long_name, NULL };

    for (size_t i = 0; i < COUNT(rows); i++) {
        server_name(out, (char *const *)(const void *)rows[i].argv);
        ok(strcmp(out, rows[i].name) == 0, "row %zu: '%s' is called '%s'", i,
           rows[i].argv[0], out);
    }
    memset(long_name, 'a', SERVER_NAME_MAX - 1);
    server_name(out, long_argv);
    ok(strcmp(out, long_name) == 0, "a name of the largest size stays");
    long_name[SERVER_NAME_MAX - 1] = 'b';
    server_name(out, long_argv);
    ok(strlen(out) == SERVER_NAME_MAX - 1, "a longer one is cut");
    return tap_done();
}
