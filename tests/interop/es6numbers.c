/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads lines "bits,anything" and writes "bits,<our text of that double>". Fails when our
 * own text does not read back as the same bits, or when the quick way to canonical text
 * disagrees with the long one.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json/number.h"

static int print_line(uint64_t bits)
{
    char text[NUMBER_TEXT_MAX], again[NUMBER_TEXT_MAX];
    double value, back = 0;
    size_t n;

    memcpy(&value, &bits, sizeof(value));
    n = number_format(text, value, false);
    printf("%" PRIx64 ",%.*s\n", bits, (int)n, text);
    if (!number_parse(&back, str_of(text, n)) || back != value)
        return fprintf(stderr, "%" PRIx64 " does not read back\n", bits);
    if (number_canonical(again, str_of(text, n), false) != n ||
        memcmp(text, again, n) != 0)
        return fprintf(stderr, "%" PRIx64 " is not canonical\n", bits);
    return 0;
}

int main(void)
{
    char line[128];
    int failures = 0;

    while (fgets(line, sizeof(line), stdin))
        failures += print_line(strtoull(line, NULL, 16)) != 0;
    return failures ? 1 : 0;
}
