/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/key.h"

#include "policy/host.h"
#include "policy/path.h"
#include "tests/tap.h"

static const char *const hosts[] = {
    "url",        "URL",      "urls",        "uri",         "href",
    "host",       "hostname", "endpoint",    "address",     "base_url",
    "webhookUrl", "imageurl", "url2",        "server-host", "hosts",
    "addresses",  "apiURL",   "target.uri",  "Host",        "URLs",
    "host_name",  "hostName", "HostNames",   "HOST-NAME",   "target_host_name",
    "host1.name", "HOSTName", "host__name2",
};

static const char *const no_hosts[] = {
    "",  "_",         "ghost", "curling",    "hosted", "url_count",        "port",
    "1", "addressee", "name",  "ghost_name", "domain", "host_names_count", "_name",
};

static const char *const paths[] = {
    "path",          "file_path",   "paths",       "filename",     "directory",
    "filePath",      "FILE-PATH",   "filepath",    "inputFile",    "file",
    "files",         "file1",       "outputDir",   "dirs",         "folder",
    "source",        "destination", "directories", "old_path",     "workdir",
    "cwd",           "src",         "Dest",        "jsonpath",     "file_name",
    "fileName",      "FILE_NAME",   "file_names",  "dirname",      "dir_name",
    "dirName",       "folder_name", "folderName",  "foldername",   "directory_name",
    "directoryname", "path_name",   "pathname",    "workdir_name", "output file name",
    "file2_name1",   "DIRName",
};

static const char *const no_paths[] = {
    "",
    "profile",
    "pathology",
    "filed",
    "direct",
    "name",
    "content",
    "file_type",
    "path_length",
    "resource",
    "profile_name",
    "profileName",
    "source_name",
    "names",
    "file_named",
    "fileNameLength",
    "surname",
    "user_name",
    "_name",
    "Name",
};

int main(void)
{
    static const char *const words[] = { "entry", NULL };
    char key[KEY_WORD_MAX + 2];

    for (size_t i = 0; i < COUNT(hosts); i++)
        ok(host_is_key(str_from(hosts[i])), "'%s' is a host key", hosts[i]);
    for (size_t i = 0; i < COUNT(no_hosts); i++)
        ok(!host_is_key(str_from(no_hosts[i])), "'%s' is no host key", no_hosts[i]);
    for (size_t i = 0; i < COUNT(paths); i++)
        ok(path_is_key(str_from(paths[i])), "'%s' is a path key", paths[i]);
    for (size_t i = 0; i < COUNT(no_paths); i++)
        ok(!path_is_key(str_from(no_paths[i])), "'%s' is no path key", no_paths[i]);
    ok(key_ends_in(STR("entries"), words) && key_ends_in(STR("an_entry"), words) &&
           !key_ends_in(STR("ies"), words),
       "a plural in ies");
    memset(key, 'a', sizeof(key));
    memcpy(key + KEY_WORD_MAX - 4, "path", 4);
    ok(path_is_key(str_of(key, KEY_WORD_MAX)), "the longest word");
    memcpy(key + KEY_WORD_MAX - 3, "path", 4);
    ok(!path_is_key(str_of(key, KEY_WORD_MAX + 1)), "a longer one is none");
    return tap_done();
}
