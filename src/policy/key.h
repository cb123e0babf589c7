/* SPDX-License-Identifier: Apache-2.0 */
/* key - the words of an argument's name: file_path, filePath and FILE-PATH are the same.
 */
#ifndef POLICY_KEY_H
#define POLICY_KEY_H

#include <stdbool.h>

#include "base/str.h"

#define KEY_WORD_MAX 32 /* bytes of a word; longer is none of ours */

/* Is the last word one of `words` (lower case, NULL at the end), singular or plural? With
 * '*' before it, an ending of the word is enough. Digits at the end do not count. */
bool key_ends_in(str key, const char *const *words);

/* Is the last word `name`, and the one before it one of `words`? file_name, hostNames. */
bool key_is_name_of(str key, const char *const *words);

#endif
