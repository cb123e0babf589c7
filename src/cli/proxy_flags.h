/* SPDX-License-Identifier: Apache-2.0 */
/* proxy_flags - what stands on the command line of mcp-proxy, and what it means. */
#ifndef CLI_PROXY_FLAGS_H
#define CLI_PROXY_FLAGS_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/file.h"
#include "cli/options.h"
#include "cli/pepper.h"
#include "cli/server_name.h"
#include "cli/status.h"
#include "evidence/keys.h"
#include "evidence/log.h"
#include "pipeline/front.h"
#include "pipeline/guard.h"
#include "pipeline/policy_file.h"
#include "pipeline/relay.h"
#include "pipeline/upstream.h"
#include "transport/listen_address.h"

struct err;

/* As they stand on the command line. */
struct proxy_flags {
    const char *audit_dir, *profile, *server_id, *durability, *on_failure;
    const char *pepper_file, *interval, *group, *policy, *pin;
    const char *upstream_url, *ca;
    const char *listen, *tls_cert, *tls_key;
    struct option_list headers, origins;
    bool listen_any, share_child;
    bool auto_pack, no_auto_pack, store_args, store_results, pack_empty;
    bool investigation, json, show_denied;
    struct option_number shutdown, call_timeout, max_message;
};

/* One run: what the flags mean, and what belongs to it. */
struct proxy_run {
    const struct proxy_flags *flags;
    struct status status;
    struct keys keys;
    char dir[FILE_PATH_MAX];
    char server_id[SERVER_NAME_MAX];
    struct buf pepper;
    char pepper_check[PEPPER_CHECK];
    struct policy_file policy;
    struct upstream_options upstream;
    struct listen_address address;
    struct front_options front;
    struct log_options log;
    struct relay_options relay;
    struct guard_told told;
};

/* `argv` is the server's command, if there is one. On failure too, what *r holds is
 * released by proxy_run_release(). */
MUST_CHECK int proxy_read_flags(struct proxy_run *r, char *const *argv, struct err *err);
void proxy_run_release(struct proxy_run *r);

#endif
