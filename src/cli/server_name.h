/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server_name - what receipts call a server, from the command that starts it.
 *
 *     npx -y @scope/server-x@1.2 /dir     server-x
 *     uvx --from git+https://h/o/r tool   tool
 *     python3 -m pkg.server               pkg.server
 *     node dist/index.js                  index.js
 *     /opt/bin/my-server --flag           my-server
 */
#ifndef CLI_SERVER_NAME_H
#define CLI_SERVER_NAME_H

#define SERVER_NAME_MAX 129 /* bytes with the NUL */

/* Never empty and always UTF-8: "server" where nothing else can be said. */
void server_name(char out[static SERVER_NAME_MAX], char *const *argv);

#endif
