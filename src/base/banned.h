/* SPDX-License-Identifier: Apache-2.0 */
/* banned - forced into every file of ours: these functions do not compile. */
#ifndef BASE_BANNED_H
#define BASE_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* With _FORTIFY_SOURCE and clang these two are macros, which cannot be poisoned. */
#undef sprintf
#undef vsprintf

#pragma GCC poison strcpy strcat sprintf vsprintf strtok strncpy strncat gets atoi atol
#pragma GCC poison gmtime localtime ctime asctime

#endif
