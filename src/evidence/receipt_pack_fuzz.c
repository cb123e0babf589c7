/* SPDX-License-Identifier: Apache-2.0 */
/* Receipt lines never crash, are all counted, and what is not said to be wrong has a
 * head. */
#include <assert.h>
#include <stdint.h>

#include "base/err.h"
#include "evidence/receipt_pack.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct findings f = { 0 };
    struct receipt_facts facts = { 0 };
    struct err err = { 0 };
    uint64_t lines = 0;
    int r = receipt_pack_check(str_of(data, size), NULL, &f, &facts, &err);

    assert(r == 0);
    for (str rest = str_of(data, size), line; receipt_line(&rest, &line);)
        lines++;
    assert(facts.count + facts.bad_lines == lines);
    assert((f.by_stage[STAGE_RECEIPTS] == 0) == (facts.faults + facts.bad_lines == 0));
    assert(f.by_stage[STAGE_RECEIPTS] || facts.head_known);
    findings_release(&f);
    return 0;
}
