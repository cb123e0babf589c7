/* SPDX-License-Identifier: Apache-2.0 */
/* Paths, row by row, as a verdict sees them. */
#include "policy/path.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "tests/deciding.h"
#include "tests/tap.h"

/* --- paths --- */

/* @ is the test's directory, with ws/ in it; the tool may use all in it but .env. */
static const struct {
    const char *arguments;
    bool allowed;
} path_rows[] = {
    { "{\"path\":\"@/ws/a.txt\"}", true },
    { "{\"path\":\"@/ws/sub/b.txt\"}", true },
    { "{\"path\":\"@/ws/not/there/yet.txt\"}", true },
    { "{\"path\":\"@/ws\"}", false },
    { "{\"path\":\"@/ws/\"}", false },
    { "{\"path\":\"@/wsfoo/a.txt\"}", false },
    { "{\"path\":\"/etc/passwd\"}", false },
    { "{\"path\":\"@/ws/../secret.txt\"}", false },
    { "{\"path\":\"@/ws/sub/../a.txt\"}", true },
    { "{\"path\":\"@/ws/sub/../../secret.txt\"}", false },
    { "{\"path\":\"@/ws/nowhere/../../secret.txt\"}", false },
    { "{\"path\":\"@/secret/../ws/a.txt\"}", true },
    { "{\"path\":\"@//ws///a.txt\"}", true },
    { "{\"path\":\"@/ws/./a.txt\"}", true },
    { "{\"path\":\"@/ws/..//..//etc/passwd\"}", false },
    { "{\"path\":\"/../../@/ws/a.txt\"}", true },
    /* encodings */
    { "{\"path\":\"@/ws/%2e%2e/secret.txt\"}", false },
    { "{\"path\":\"@/ws/%2E%2E%2Fsecret.txt\"}", false },
    { "{\"path\":\"@/ws/%252e%252e/secret.txt\"}", false },
    { "{\"path\":\"@/ws/%25252525252e/x\"}", false },
    { "{\"path\":\"@/ws/100%25.txt\"}", true },
    { "{\"path\":\"@/ws/100%.txt\"}", true },
    { "{\"path\":\"@/ws/a%00.txt\"}", false },
    { "{\"path\":\"@/ws/a.txt\\u0000.png\"}", false },
    { "{\"path\":\"@/ws/..\\\\..\\\\secret.txt\"}", false },
    { "{\"path\":\"..\\\\secret.txt\"}", false },
    { "{\"path\":\"@/ws/back\\\\slash.txt\"}", true },
    { "{\"path\":\"@/ws/%5c..%5c..%5csecret.txt\"}", false },
    { "{\"path\":\"@/ws/\\u002e\\u002e/secret.txt\"}", false },
    { "{\"path\":\"\\u002fetc/passwd\"}", false },
    /* links */
    { "{\"path\":\"@/ws/out/passwd\"}", false },
    { "{\"path\":\"@/ws/out\"}", false },
    { "{\"path\":\"@/ws/in/b.txt\"}", true },
    { "{\"path\":\"@/ws/in/../a.txt\"}", true },
    { "{\"path\":\"@/ws/deep/../x\"}", false },
    { "{\"path\":\"@/ws/loop/x\"}", false },
    { "{\"path\":\"@/ws/tofile\"}", false },
    { "{\"path\":\"@/ws/tofile/\"}", false },
    { "{\"path\":\"@/ws/dangling\"}", false },
    { "{\"path\":\"@/door/a.txt\"}", true },
    { "{\"path\":\"@/ws/envlink\"}", false },
    { "{\"path\":\"@/ws/nowhere/../out/passwd\"}", false },
    { "{\"path\":\"@/ws/nowhere/x/../../out/passwd\"}", false },
    /* exclusion */
    { "{\"path\":\"@/ws/.env\"}", false },
    { "{\"path\":\"@/ws/sub/.env\"}", false },
    { "{\"path\":\"@/ws/sub/../.env\"}", false },
    { "{\"path\":\"@/ws/%2eenv\"}", false },
    { "{\"path\":\"@/ws/keep/.env\"}", true },
    { "{\"path\":\"@/ws/x.env\"}", true },
    { "{\"path\":\"@/ws/link.d/.env\"}", false },
    /* relative */
    { "{\"path\":\"a.txt\"}", true },
    { "{\"path\":\"./sub/b.txt\"}", true },
    { "{\"path\":\"../secret.txt\"}", false },
    { "{\"path\":\"\"}", false },
    { "{\"path\":\".\"}", false },
    { "{\"path\":\"~/a.txt\"}", false },
    { "{\"path\":\"~root\"}", false },
    { "{\"path\":\"%7e/a.txt\"}", false },
    { "{\"path\":\"C:\\\\Windows\"}", true },
    /* white space around it, which servers cut off */
    { "{\"path\":\" /etc/passwd\"}", false },
    { "{\"path\":\"\\t/etc/passwd\"}", false },
    { "{\"path\":\"\\n/etc/passwd\"}", false },
    { "{\"path\":\"\\u00a0/etc/passwd\"}", false },
    { "{\"path\":\"\\ufeff/etc/passwd\"}", false },
    { "{\"path\":\"\\u3000 \\u2028/etc/passwd\"}", false },
    { "{\"path\":\"\\u0085/etc/passwd\"}", false },
    { "{\"path\":\" ~/x\"}", false },
    { "{\"path\":\".env \"}", false },
    { "{\"path\":\"@/ws/.env\\u00a0\"}", false },
    { "{\"path\":\"@/ws/.env\\u2003\\n\"}", false },
    { "{\"path\":\"%20/etc/passwd\"}", false },
    { "{\"path\":\"%C2%A0/etc/passwd\"}", false },
    { "{\"uri\":\"file://@/ws/.env%20\"}", false },
    { "{\"uri\":\"\\ufefffile:///etc/passwd\"}", false },
    { "{\"path\":\"\\u00a0file:///etc/passwd\"}", false },
    { "{\"path\":\" \\\\\\\\etc\"}", false },
    { "{\"path\":\"  \"}", false },
    { "{\"path\":\" @/ws/a.txt\"}", true },
    { "{\"path\":\"@/ws/a.txt \"}", true },
    { "{\"path\":\"a b.txt\"}", true },
    { "{\"path\":\" a.txt\\n\"}", true },
    { "{\"path\":\"@/ws/\\u00e0\"}", true },
    { "{\"x\":\"\\ufefffile:///etc/passwd\",\"path\":\"@/ws/a.txt\"}", false },
    /* URIs */
    { "{\"uri\":\"file://@/ws/a.txt\"}", true },
    { "{\"uri\":\"file:///etc/passwd\"}", false },
    { "{\"x\":\"FILE:///etc/passwd\"}", false },
    { "{\"x\":\"file:/etc/passwd\"}", false },
    { "{\"x\":\" file:///etc/passwd\"}", false },
    { "{\"uri\":\"file://localhost@/ws/a.txt\"}", true },
    { "{\"uri\":\"file://LOCALHOST@/ws/a.txt\"}", true },
    { "{\"uri\":\"file://server@/ws/a.txt\"}", false },
    { "{\"uri\":\"file://@/ws/%2e%2e/secret.txt\"}", false },
    { "{\"uri\":\"file://@/ws/a.txt?x=1\"}", true },
    { "{\"uri\":\"file://@/ws/.env#x\"}", false },
    { "{\"uri\":\"file:a.txt\"}", true },
    /* URIs with breaks, which browsers leave out */
    { "{\"uri\":\"file://@/ws/.\\t./secret.txt\"}", false },
    { "{\"uri\":\"file://@/ws/.\\n./.\\r./etc/passwd\"}", false },
    { "{\"x\":\"f\\nile:///etc/passwd\",\"path\":\"@/ws/a.txt\"}", false },
    { "{\"path\":\"f\\tile:///etc/passwd\"}", false },
    { "{\"x\":\"\\tfil\\re\\n:/etc/passwd\",\"path\":\"@/ws/a.txt\"}", false },
    { "{\"uri\":\"file:/\\n/@/ws/.e\\tnv\"}", false },
    { "{\"uri\":\"file://@/ws/a.\\ttxt\"}", true },
    { "{\"uri\":\"file://@/ws/sub\\n/b.txt\\n\"}", true },
    { "{\"path\":\"@/ws/.\\t./x\"}", true },
    /* where it stands */
    { "{\"paths\":[\"@/ws/a.txt\",\"/etc/passwd\"]}", false },
    { "{\"paths\":[\"@/ws/a.txt\",\"@/ws/b.txt\"]}", true },
    { "{\"file_path\":\"/etc/passwd\"}", false },
    { "{\"filePath\":\"/etc/passwd\"}", false },
    { "{\"filepath\":\"/etc/passwd\"}", false },
    { "{\"outputDir\":\"/etc\"}", false },
    { "{\"filename\":\"/etc/passwd\"}", false },
    { "{\"file_name\":\"/etc/passwd\",\"path\":\"@/ws/a.txt\"}", false },
    { "{\"profile_name\":\"/etc/passwd\",\"path\":\"@/ws/a.txt\"}", true },
    { "{\"directory\":\"/etc\"}", false },
    { "{\"directories\":[\"/etc\"]}", false },
    { "{\"source\":\"@/ws/a.txt\",\"destination\":\"/etc/x\"}", false },
    { "{\"file1\":\"@/ws/a.txt\",\"file2\":\"/etc/x\"}", false },
    { "{\"options\":{\"path\":\"/etc/x\"},\"path\":\"@/ws/a.txt\"}", false },
    { "{\"path\":{\"value\":\"/etc/x\"}}", false },
    { "{\"edits\":[{\"path\":\"@/ws/a.txt\"},{\"path\":\"/x\"}]}", false },
    { "{\"blob\":\"/etc/passwd\",\"path\":\"@/ws/a.txt\"}", false }, /* path_arguments */
    { "{\"Blob\":\"/etc/passwd\",\"path\":\"@/ws/a.txt\"}", false },
    { "{\"BLOB\":\"@/ws/a.txt\"}", true },
    { "{\"\\u017frc\":\"/etc/passwd\",\"path\":\"@/ws/a.txt\"}", false },
    { "{\"lin\\u212a\":\"/etc/passwd\",\"path\":\"@/ws/a.txt\"}", false },
    { "{\"blobs\":\"/etc/passwd\",\"path\":\"@/ws/a.txt\"}", true },
    { "{\"content\":\"/etc/passwd\",\"path\":\"@/ws/a.txt\"}", true },
    { "{\"content\":\"@/ws/a.txt\"}", false },
    { "{\"profile\":\"@/ws/a.txt\"}", false },
    { "{\"path\":null}", false },
    { "{}", false },
    { NULL, false },
    { "[\"@/ws/a.txt\"]", false },
    { "\"@/ws/a.txt\"", false },
};

static void put_dir(char *out, size_t size, const char *text, const char *dir)
{
    size_t n = 0;

    for (; *text && n + strlen(dir) + 1 < size; text++) {
        if (*text == '@')
            n += (size_t)snprintf(out + n, size - n, "%s", dir);
        else
            out[n++] = *text;
    }
    out[n] = '\0';
}

static void make_tree(const char *dir)
{
    static const struct {
        const char *path, *target; /* NULL: a directory; "": a file; else a link */
    } tree[] = {
        { "@/ws", NULL },
        { "@/ws/sub", NULL },
        { "@/wsfoo", NULL },
        { "@/elsewhere", NULL },
        { "@/elsewhere/deep", NULL },
        { "@/ws/a.txt", "" },
        { "@/ws/sub/b.txt", "" },
        { "@/secret.txt", "" },
        { "@/ws/out", "/etc" },
        { "@/ws/in", "sub" },
        { "@/ws/deep", "../elsewhere/deep" },
        { "@/ws/loop", "loop" },
        { "@/ws/tofile", "@/secret.txt" },
        { "@/ws/dangling", "@/elsewhere/later" },
        { "@/door", "ws" },
        { "@/ws/envlink", ".env" },
        { "@/ws/plain", "" },
        { "@/ws/link.d", NULL },
        { "@/ws/link.d/.env", "../plain" },
    };
    char path[512], target[512];
    int faults = 0;

    for (size_t i = 0; i < COUNT(tree); i++) {
        put_dir(path, sizeof(path), tree[i].path, dir);
        put_dir(target, sizeof(target), tree[i].target ? tree[i].target : "", dir);
        if (!tree[i].target)
            faults += mkdir(path, 0700) < 0;
        else if (target[0])
            faults += symlink(target, path) < 0;
        else
            faults += mknod(path, S_IFREG | 0600, 0) < 0;
    }
    ok(faults == 0, "the test's files are there");
}

static void check_path_rows(struct lab *lab, const char *dir)
{
    for (size_t i = 0; i < COUNT(path_rows); i++) {
        char arguments[2048];
        bool given = path_rows[i].arguments != NULL;

        put_dir(arguments, sizeof(arguments), given ? path_rows[i].arguments : "", dir);
        ok(is(ask(lab, "read", given ? arguments : NULL),
              path_rows[i].allowed ? VERDICT_ALLOWED : VERDICT_DENIED,
              path_rows[i].allowed ? "default" : "constraints.read.allowed_paths"),
           "%s: %s", path_rows[i].allowed ? "allowed" : "refused",
           given ? path_rows[i].arguments : "no arguments");
    }
}

static void test_paths(void)
{
    const char *tmp = getenv("TMPDIR");
    char dir[256], cwd[300], yaml[2048];
    struct err err = { 0 };
    struct lab lab;

    snprintf(dir, sizeof(dir), "%s/decide-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(dir))
        return;
    make_tree(dir);
    put_dir(yaml, sizeof(yaml),
            "default: allow\n"
            "constraints:\n"
            "  read:\n"
            "    allowed_paths: ['@/ws/*', '!**/.env', '@/ws/keep/*']\n"
            "    path_arguments: [blob, link]\n"
            "  linked: {allowed_paths: ['@/door/*']}\n"
            "  one: {allowed_paths: ['@/ws/a.txt']}\n"
            "  none: {allowed_paths: []}\n",
            dir);
    lab_open(&lab, yaml);
    put_dir(cwd, sizeof(cwd), "@/ws", dir);
    lab.env.cwd = str_from(cwd);
    check_path_rows(&lab, dir);

    put_dir(yaml, sizeof(yaml), "{\"path\":\"@/ws/a.txt\"}", dir);
    ok(is(ask(&lab, "linked", yaml), VERDICT_ALLOWED, "default"),
       "links in the root of a pattern are followed");
    ok(is(ask(&lab, "one", yaml), VERDICT_ALLOWED, "default"), "a pattern of one file");
    ok(is(ask(&lab, "none", yaml), VERDICT_DENIED, "constraints.none.allowed_paths"),
       "no pattern allows nothing");
    lab.env.is_http = true;
    ok(is(ask(&lab, "read", yaml), VERDICT_ALLOWED, "default"),
       "absolute paths to a server over HTTP");
    ok(is(ask(&lab, "read", "{\"path\":\"a.txt\"}"), VERDICT_DENIED,
          "constraints.read.allowed_paths"),
       "relative paths mean nothing to a server over HTTP");
    put_dir(yaml, sizeof(yaml), "{\"uri\":\"file://@/ws/a.txt\\n\"}", dir);
    ok(is(ask(&lab, "read", yaml), VERDICT_ALLOWED, "default"),
       "a line break in a URI does not make it a relative path");
    lab.env = (struct decide_env){ 0 };
    ok(is(ask(&lab, "read", "{\"path\":\"a.txt\"}"), VERDICT_DENIED,
          "constraints.read.allowed_paths"),
       "nor without a known directory");
    lab_close(&lab);
    if (file_remove_tree(dir, &err) < 0)
        printf("# %s\n", err.msg);
}

int main(void)
{
    test_paths();
    return tap_done();
}
