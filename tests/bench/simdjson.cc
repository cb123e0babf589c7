// SPDX-License-Identifier: Apache-2.0
// Debian's simdjson behind two C functions, for json.c to load when it is there.
#include <simdjson.h>

#include <cstddef>

static simdjson::dom::parser parser;

// Texts that simdjson may read a little beyond, prepared outside the measurement.
extern "C" void *bench_prepare(const char *text, size_t n)
{
    return new simdjson::padded_string(text, n);
}

extern "C" bool bench_parse(void *prepared)
{
    simdjson::dom::element root;

    return parser.parse(*static_cast<simdjson::padded_string *>(prepared)).get(root) ==
           simdjson::SUCCESS;
}
