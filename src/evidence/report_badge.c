/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/report.h"

#include <stddef.h>

struct face {
    const char *overall, *words, *colour;
    unsigned width; /* of the right half, in pixels */
};

static const struct face *face_of(const struct report *r)
{
    static const struct face faces[] = {
        { "PASS", "verified", "#4c1", 58 },
        { "HONEST_FAIL", "honest fail", "#fe7d37", 74 },
        { "UNTRUSTED", "not trusted", "#fe7d37", 74 },
        { "TAMPERED", "tampered", "#e05d44", 66 },
    };
    static const struct face unknown = { "PASS", "sound, unknown key", "#a4761d", 126 };
    static const struct face unmet = { "PASS", "requirement not met", "#fe7d37", 130 };
    const char *overall = report_overall(r);
    size_t i = 0;

    if (strcmp(overall, "PASS") == 0 && report_unmet(r))
        return &unmet;
    if (strcmp(overall, "PASS") == 0 && report_signer_unknown(r))
        return &unknown;
    while (i + 1 < COUNT(faces) && strcmp(faces[i].overall, overall) != 0)
        i++;
    return &faces[i];
}

#define LEFT 44 /* width of "assay" */

void report_add_badge(struct buf *out, const struct report *r)
{
    const struct face *f = face_of(r);
    unsigned width = LEFT + f->width;

    buf_printf(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"20\" "
        "role=\"img\" aria-label=\"assay: %s\">\n<title>assay: %s</title>\n"
        "<clipPath id=\"r\"><rect width=\"%u\" height=\"20\" rx=\"3\"/></clipPath>\n",
        width, f->words, f->words, width);
    buf_printf(out,
               "<g clip-path=\"url(#r)\"><rect width=\"%d\" height=\"20\" fill=\"#555\"/>"
               "<rect x=\"%d\" width=\"%u\" height=\"20\" fill=\"%s\"/></g>\n",
               LEFT, LEFT, f->width, f->colour);
    buf_printf(out,
               "<g fill=\"#fff\" text-anchor=\"middle\" font-size=\"11\" "
               "font-family=\"Verdana,DejaVu Sans,sans-serif\">\n"
               "<text x=\"%d\" y=\"14\">assay</text>\n<text x=\"%u\" y=\"14\">%s</text>\n"
               "</g>\n</svg>\n",
               LEFT / 2, LEFT + f->width / 2, f->words);
}
