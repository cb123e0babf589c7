/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/policy_starter.h"

#include <stdbool.h>
#include <stdint.h>

#include "base/utf8.h"

static const char head[] =
    "# What tools may be called. docs/policy.md explains every key;\n"
    "#     assay policy validate                            is this file understood?\n"
    "#     assay policy test --tool NAME --args '{...}'     what would be decided?\n"
    "#     assay mcp-proxy --profile guard --policy FILE -- SERVER\n"
    "#\n"
    "# First match wins: denylist, constraints of the tool, budget, allowlist, default.\n"
    "# Names are globs: * any run, ? one character, [a-z] one of a set.\n"
    "version: \"1\"\n"
    "default: deny\n"
    "\n";

static const char examples[] =
    "allowlist:\n"
    "  - web_search\n"
    "  - web_fetch\n"
    "  - \"read_*\"\n"
    "\n"
    "denylist:\n"
    "  - shell_exec\n"
    "  - file_delete\n"
    "\n"
    "# What a tool may be called with. Names are globs here, too; all that match apply.\n"
    "constraints:\n"
    "  web_fetch:\n"
    "    deny_private_hosts: true       # no loopback, private or metadata addresses\n"
    "    # url_arguments: [page]        # beside url, uri, href, host, endpoint, ...\n"
    "  \"read_*\":                      # every tool that the allowlist lets read\n"
    "    allowed_paths: [\"/workspace/*\", \"!*/.env*\"]   # the last match decides\n"
    "    # path_arguments: [document]   # beside path, file, directory, ...\n"
    "  # \"write_*\":\n"
    "  #   max_calls: 20                # in one session\n"
    "  #   max_argument_bytes: 65536\n"
    "  #   deny_patterns: ['(?i)BEGIN [A-Z ]*PRIVATE KEY']\n";

static const char no_examples[] =
    "\n"
    "denylist: []\n"
    "\n"
    "# What a tool may be called with. Names are globs here, too; all that match apply.\n"
    "# constraints:\n"
    "#   web_fetch:\n"
    "#     deny_private_hosts: true     # no loopback, private or metadata addresses\n"
    "#   \"read_*\":\n"
    "#     allowed_paths: [\"/workspace/*\", \"!*/.env*\"]   # the last match decides\n"
    "#   \"write_*\":\n"
    "#     max_calls: 20                # in one session\n"
    "#     max_argument_bytes: 65536\n"
    "#     deny_patterns: ['(?i)BEGIN [A-Z ]*PRIVATE KEY']\n";

static const char tail[] =
    "\n"
    "# Of the whole session.\n"
    "# budget: {max_tool_calls: 200, max_wall_time_sec: 3600}\n"
    "\n"
    "# Tool definitions that change: off, warn or strict (refuse until accepted).\n"
    "# pin: warn\n";

/* Not printable in YAML, or not seen by whoever reads the file. */
static bool is_escaped(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa1) || c == 0xad ||
           (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
           (c >= 0x2060 && c <= 0x206f) || c == 0xfeff || (c >= 0xfff9 && c <= 0xffff);
}

/* A name in double quotes that matches itself and nothing else: somebody may call his
 * tool "*". */
static void add_name(struct buf *out, str name)
{
    buf_add_char(out, '"');
    while (name.n) {
        uint32_t c = 0;
        size_t n = utf8_next(name, &c);

        if (n == 0)
            break;
        if (c == '*' || c == '?' || c == '[')
            buf_printf(out, "[%c]", (char)c);
        else if (c == '"' || c == '\\')
            buf_printf(out, "\\%c", (char)c);
        else if (is_escaped(c))
            buf_printf(out, "\\u%04x", (unsigned)c);
        else
            buf_add(out, str_first(name, n));
        name = str_skip(name, n);
    }
    buf_add_char(out, '"');
}

void policy_starter_write(struct buf *out, const str *tools, size_t count,
                          const char *session)
{
    buf_add(out, str_from(head));
    if (!session) {
        buf_add(out, str_from(examples));
        buf_add(out, str_from(tail));
        return;
    }
    buf_printf(out, "# What was called in session %s. Take out what should not be.\n",
               session);
    buf_add(out, count ? STR("allowlist:\n") : STR("allowlist: []\n"));
    for (size_t i = 0; i < count; i++) {
        buf_add(out, STR("  - "));
        add_name(out, tools[i]);
        buf_add(out, STR("\n"));
    }
    buf_add(out, str_from(no_examples));
    buf_add(out, str_from(tail));
}
