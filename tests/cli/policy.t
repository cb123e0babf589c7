#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# assay policy: init, validate, test, impact.
. tests/cli/tap.sh
build=${ASSAY_BUILD:-build}
case $build in /*) ;; *) build=$PWD/$build ;; esac
page=$PWD/docs/policy.md
cd "$work" || exit 1

# --- nothing yet ---
for words in validate 'test --tool a' 'impact x'; do
    # shellcheck disable=SC2086 # they are words
    run policy $words
    exits 3 "policy $words without a file"
    says "there is no 'assay.mcp-policy.yaml' here" "says so"
    says "'assay policy init'" "and how to get one"
done
run policy validate absent.yaml
says "cannot open 'absent.yaml'" "a file that was named"

# --- init ---
run policy init
exits 0 "a starter"
prints assay.mcp-policy.yaml "says where it is"
check "is there" test -s assay.mcp-policy.yaml
cp assay.mcp-policy.yaml before
run policy init
exits 3 "a second time"
says "is not overwritten" "says why"
check "the first stays" cmp before assay.mcp-policy.yaml
run policy init --out other.yaml
exits 0 "another name"
check "is the same file" cmp other.yaml assay.mcp-policy.yaml
run policy init --out no/such/dir.yaml
exits 3 "a directory that is not there"
run policy init --out -
check "stdout" cmp "$work/out" before

# --- validate ---
run policy validate
exits 0 "the starter is understood"
prints "default      deny" "says what it says"
run policy validate --json other.yaml
exits 0 "as JSON"
check "is JSON" "$ASSAY" jcs "$work/out"
prints "\"policy_hash\": \"sha256:$(sha256sum <other.yaml | cut -d' ' -f1)\"" \
    "with the hash of its bytes"
run policy validate absent.yaml
exits 3 "a missing file"
says "absent.yaml" "is named"
sed -n '/^```yaml/,/^```$/p' "$page" | grep -v '^```' >page.yaml
run policy validate page.yaml
exits 0 "the example of docs/policy.md is understood"
printf 'default: deny\nallowlst: [a]\n' >bad.yaml
run policy validate bad.yaml
exits 3 "an unknown key"
says "bad.yaml:2: unknown key 'allowlst'" "file, line and what was expected"
silent "nothing else"
run policy validate --json bad.yaml
exits 3 "the same as JSON"
prints "bad.yaml:2:" "with file and line"
: >empty.yaml
run policy validate empty.yaml
exits 3 "an empty file"
says "empty.yaml:1: the file is empty" "says so"
head -c 1048577 /dev/zero | tr '\0' '#' >large.yaml
run policy validate large.yaml
exits 3 "a file over 1 MiB"
says "1048576 bytes" "names the limit"
run policy validate .
exits 3 "a directory"
printf 'mode: enforce\ntools: {default: allow, deny: ["delete_*"]}\n' >public.yaml
run policy validate public.yaml
exits 0 "the public tool's form"
prints "line 1 has no effect: mode: the profile is chosen with --profile" "nothing is ignored silently"
run policy validate a b
exits 3 "two files"

# --- test ---
denied() { # WHAT REF ARGS…
    denied_what=$1 denied_ref=$2
    shift 2
    run policy test "$@"
    exits 1 "$denied_what is denied"
    prints "rule    $denied_ref" "by $denied_ref"
}
allowed() { # WHAT REF ARGS…
    allowed_what=$1 allowed_ref=$2
    shift 2
    run policy test "$@"
    exits 0 "$allowed_what is allowed"
    prints "rule    $allowed_ref" "by $allowed_ref"
}
denied "shell_exec" "denylist[0] (shell_exec)" --tool shell_exec
allowed "web_search" "allowlist[0] (web_search)" --tool web_search --args '{"q":"x"}'
denied "an unknown tool" default --tool whatever
denied "127.0.0.1 in disguise" constraints.web_fetch.deny_private_hosts \
    --tool web_fetch --args '{"url":"http://0x7f.1/"}'
prints "reason  a host in the arguments is a loopback address (127.0.0.0/8)" "with a reason"
prints "found   0x7f.1" "and what was found"
denied "a path out of the workspace" constraints.read_*.allowed_paths \
    --tool read_file --args '{"path":"/workspace/%2e%2e/etc/passwd"}'
allowed "a path in the workspace" "allowlist[2] (read_*)" \
    --tool read_file --args '{"path":"notes.txt"}' --cwd /workspace
denied "a relative path over HTTP" constraints.read_*.allowed_paths \
    --tool read_file --args '{"path":"notes.txt"}' --cwd /workspace --http
allowed "a name with a public address" "allowlist[1] (web_fetch)" --tool web_fetch \
    --args '{"url":"http://good.example/"}' --resolve good.example=93.184.216.34
denied "one private address among them" constraints.web_fetch.deny_private_hosts \
    --tool web_fetch --args '{"url":"http://good.example/"}' \
    --resolve good.example=93.184.216.34 --resolve good.example=fd00::1
denied "a name without an answer" constraints.web_fetch.deny_private_hosts \
    --tool web_fetch --args '{"url":"http://good.example/"}' --resolve good.example=
denied "a name that nobody has" constraints.web_fetch.deny_private_hosts \
    --tool web_fetch --args '{"url":"http://no-such-name.invalid/"}'
denied "ambiguous arguments" malformed --tool web_search --args '{"a":1,"a":2}'
denied "a NUL in a name" malformed --tool web_search --args '{"a\u0000b":1}'
allowed "another file" default --tool anything --policy public.yaml
run policy test --json --tool web_fetch --args '{"url":"http://10.0.0.1"}'
exits 1 "JSON has the same exit code"
check "is JSON" "$ASSAY" jcs "$work/out"
prints '"policy_verdict": "denied"' "the verdict"
prints '"policy_ref": "constraints.web_fetch.deny_private_hosts"' "the rule"
bad_input() { # WHAT SAYS ARGS…
    bad_what=$1 bad_says=$2
    shift 2
    run policy test "$@"
    exits 3 "$bad_what"
    says "$bad_says" "says why"
    silent "prints nothing"
}
bad_input "no tool" "--tool NAME is needed"
bad_input "arguments that are no JSON" "--args: not JSON at byte 0" --tool a --args nonsense
bad_input "a bad policy" "bad.yaml:2" --tool a --policy bad.yaml
bad_input "a missing policy" "absent.yaml" --tool a --policy absent.yaml
bad_input "a relative --cwd" "expected an absolute path" --tool a --cwd x
bad_input "a bad --resolve" "expected an IP address" --tool web_fetch \
    --args '{"url":"http://good.example/"}' --resolve good.example=x

# --- a recorded session ---
call() { # ID TOOL ARGS
    printf '{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"%s","arguments":%s}}\n' \
        "$1" "$2" "$3"
}
record() { # DIR FLAGS…
    record_dir=$1
    shift
    {
        call 1 web_search '{"query":"a"}'
        call 2 echo '{"text":"see http://10.0.0.1/"}'
        call 3 echo '{"text":"plain"}'
        call 4 'odd*[name' '{}'
        call 5 read_file '{"path":"/workspace/a"}'
    } | timeout 60 "$ASSAY" mcp-proxy --audit-dir "$record_dir" "$@" -- "$build/example-server" \
        >/dev/null 2>&1
    session=$(sed -n 's/.*"session_id":"\(mcp_[0-9a-f]*\)".*/\1/p' \
        "$record_dir"/receipts/*.jsonl | head -n 1)
}
record stored --store-args
stored=$session
check "a session is recorded" test -n "$stored"
run policy init --from-session "$stored" --audit-dir stored --out seen.yaml
exits 0 "a policy from a session"
run policy validate seen.yaml
prints "allowlist    4" "allows the four tools that were called"
check "a tool's name is no glob" grep -qF '"odd[*][[]name"' seen.yaml
allowed "what was called" "allowlist[" --tool 'odd*[name' --policy seen.yaml
denied "what its name would match as a glob" default --tool 'oddx[name' --policy seen.yaml
run policy init --from-session mcp_0123456789abcdef --audit-dir stored --out x.yaml
exits 3 "a session that is not there"
check "leaves no file" test ! -e x.yaml

printf 'default: allow\ndenylist: [web_search]\nconstraints: {echo: {deny_private_hosts: true}}\n' >new.yaml
run policy impact --policy-new new.yaml --audit-dir stored "$stored"
exits 0 "impact"
prints "newly_denied   web_search  denylist[0]" "names what would be denied"
prints "newly_denied   echo  constraints.echo.deny_private_hosts" "by arguments, too"
prints "5 calls: 2 newly denied, 0 newly allowed, 0 undecidable; the new policy denies 2" \
    "and counts"
run policy impact --policy-new new.yaml --audit-dir stored --fail-if-newly-denied 2 "$stored"
exits 1 "--fail-if-newly-denied reached"
run policy impact --policy-new new.yaml --audit-dir stored --fail-if-newly-denied 3 "$stored"
exits 0 "--fail-if-newly-denied not reached"
run policy impact --policy-new new.yaml --policy-old new.yaml --audit-dir stored "$stored"
prints "0 newly denied, 0 newly allowed" "a policy compared with itself"
printf 'default: allow\n' >open.yaml
run policy impact --policy-new open.yaml --policy-old new.yaml --json stored/packs/*
exits 0 "the other way, on a pack, as JSON"
check "is JSON" "$ASSAY" jcs "$work/out"
prints '"newly_allowed": 2' "newly allowed"
printf 'default: allow\nconstraints: {echo: {max_calls: 1}}\n' >count.yaml
run policy impact --policy-new count.yaml --audit-dir stored "$stored" "$stored"
prints "2 newly denied" "counters begin anew with a session"

record bare
run policy impact --policy-new new.yaml --audit-dir bare "$session"
exits 0 "without stored arguments"
prints "undecidable    echo  constraints.echo.deny_private_hosts" "what needs them is undecidable"
prints "(arguments were not stored: record with --store-args)" "says why"
prints "1 newly denied, 0 newly allowed, 2 undecidable" "and never allowed"

# Two of four reads were denied by their arguments, which are not stored.
reads() { # DIR POLICY ARGS…
    record_dir=$1 record_policy=$2 record_id=0
    shift 2
    for args; do
        record_id=$((record_id + 1))
        call "$record_id" "${args%% *}" "${args#* }"
    done | timeout 60 "$ASSAY" mcp-proxy --profile guard --policy "$record_policy" \
        --audit-dir "$record_dir" -- "$build/example-server" >/dev/null 2>&1
    session=$(sed -n 's/.*"session_id":"\(mcp_[0-9a-f]*\)".*/\1/p' \
        "$record_dir"/receipts/*.jsonl | head -n 1)
}
verdicts() { # DIR
    sed -n 's/.*"policy_verdict":"\([a-z]*\)".*/\1/p' "$1"/receipts/*.jsonl | tr '\n' ' '
}
cat >limited.yaml <<'END'
default: allow
constraints:
  "read_*": {max_calls: 3}
  read_file: {allowed_paths: ["/workspace/*"]}
END
reads limited limited.yaml 'read_file {"path":"/etc/a"}' 'read_file {"path":"/etc/b"}' \
    'read_file {"path":"/workspace/c"}' 'read_dir {"n":1}'
check "a guarded session" [ "$(verdicts limited)" = "denied denied allowed allowed " ]
run policy impact --policy-new limited.yaml --audit-dir limited --fail-if-newly-denied 1 "$session"
exits 0 "the policy of the session denies nothing newly"
prints "4 calls: 0 newly denied, 0 newly allowed, 0 undecidable; the new policy denies 2" \
    "its verdicts are in the receipts"
run policy impact --policy-new limited.yaml --policy-old limited.yaml --audit-dir limited "$session"
prints "4 calls: 0 newly denied, 0 newly allowed, 0 undecidable; the new policy denies 2" \
    "nor when compared with itself"
sed 's/max_calls: 3/max_calls: 2/' limited.yaml >less.yaml
run policy impact --policy-new less.yaml --audit-dir limited --fail-if-newly-denied 1 "$session"
exits 0 "undecidable calls use up no limit for certain"
prints "undecidable    read_dir  constraints.read_*.max_calls" "nor for certain none of it"
prints "(reached only if undecidable calls before it are allowed)" "says why"
prints "0 newly denied, 0 newly allowed, 4 undecidable; the new policy denies 0" "and counts them so"
sed 's/max_calls: 3/max_calls: 0/' limited.yaml >none.yaml
run policy impact --policy-new none.yaml --audit-dir limited --fail-if-newly-denied 2 "$session"
exits 1 "a limit that is reached without them"
prints "2 newly denied, 0 newly allowed, 0 undecidable; the new policy denies 4" "is decided"
printf 'default: allow\nconstraints: {"read_*": {max_calls: 3}}\n' >counted.yaml
run policy impact --policy-new counted.yaml --audit-dir limited "$session"
prints "newly_denied   read_dir  constraints.read_*.max_calls" "what is decidable uses it up"
prints "1 newly denied, 2 newly allowed, 0 undecidable" "for certain"

reads twice limited.yaml 'read_file {"path":"/workspace/a","path":"/etc/a"}'
run policy impact --policy-new counted.yaml --audit-dir twice "$session"
prints "0 newly allowed, 0 undecidable; the new policy denies 1" "malformed under any policy"

run policy impact --policy-new bad.yaml "$session"
exits 3 "a bad policy"
run policy impact --policy-new new.yaml nothing
exits 3 "no such session"
run policy impact --policy-new new.yaml
exits 3 "no session at all"
run policy impact --help
prints "usage: assay policy impact [--policy-new FILE]" "a flag with a default may be left out"

# --- pins ---
cat >server.sh <<'END'
while read -r line; do
    printf '{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a","description":"%s"},{"name":"b"}]}}\n' "$1"
done
END
list_tools() { # DESCRIPTION SERVER-ID
    echo '{"jsonrpc":"2.0","id":1,"method":"tools/list"}' |
        timeout 60 "$ASSAY" mcp-proxy --audit-dir pinned --server-id "$2" -- sh server.sh "$1" \
            >/dev/null 2>&1
}
run policy pin list --audit-dir stored
exits 3 "pins where there are none"
says "no tool is pinned" "says so"
list_tools good s1
run policy pin list --audit-dir pinned
exits 0 "pins of a server"
prints "s1" "by server"
check "two tools are pinned" [ "$(grep -c pinned "$work/out")" -eq 2 ]
run policy pin --accept a --audit-dir pinned
exits 3 "nothing has changed"
says "nothing to accept" "says so"
run policy pin --accept nosuch --audit-dir pinned
exits 3 "a tool that is not there"
says "no tool 'nosuch' is pinned" "says so"
list_tools evil s1
run policy pin list --audit-dir pinned
check "one tool has changed" [ "$(grep -c 'changed .* -> .* a$' "$work/out")" -eq 1 ]
run policy pin list --json --audit-dir pinned
check "as JSON" "$ASSAY" jcs "$work/out"
prints '"state": "changed"' "with its state"
printf '{"description":"evil","name":"a"}' >evil.json
prints "\"offered\": \"$(sha256sum <evil.json | cut -d' ' -f1)\"" "and the hash of what is offered"
list_tools good s2
list_tools evil s2
call 1 a '{}' | timeout 60 "$ASSAY" mcp-proxy --audit-dir pinned --server-id s2 --profile guard \
    --policy open.yaml --pin strict -- sh server.sh evil >/dev/null 2>&1
session=$(sed -n 's/.*"policy_ref":"pin".*"session_id":"\(mcp_[0-9a-f]*\)".*/\1/p' \
    pinned/receipts/*.jsonl)
printf 'default: allow\nconstraints: {a: {max_calls: 9}}\n' >most.yaml
run policy impact --policy-new most.yaml --audit-dir pinned "$session"
prints "undecidable    a  pin" "whether a pin refuses is not decided by impact"
prints "(its pin refused it; pins are not compared)" "says so"
run policy pin --accept a --audit-dir pinned
exits 3 "changed on two servers"
says "--server-id" "one has to be named"
run policy pin --accept a --server-id s1 --audit-dir pinned
exits 0 "accepted"
prints "a: pinned as $(sha256sum <evil.json | cut -d' ' -f1)" "says as what"
run policy pin list --server-id s1 --audit-dir pinned
check "nothing has changed any more" sh -c '! grep -q changed "$1"' - "$work/out"
run policy pin list --server-id s2 --audit-dir pinned
check "the other server is as it was" grep -q changed "$work/out"
run policy pin --accept a --json --audit-dir pinned
exits 0 "now it is the only one"
check "as JSON" "$ASSAY" jcs "$work/out"
run policy pin --audit-dir pinned
exits 3 "neither list nor --accept"
run policy pin list --accept a --audit-dir pinned
exits 3 "both"
run policy pin list --server-id s3 --audit-dir pinned
exits 3 "an unknown server"
finish
