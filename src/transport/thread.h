/* SPDX-License-Identifier: Apache-2.0 */
/* thread - one that nobody waits for, and that gets no signals: those are the loop's. */
#ifndef TRANSPORT_THREAD_H
#define TRANSPORT_THREAD_H

#include <stdbool.h>

/* False: there is no room for another one. */
bool thread_start(void *(*run)(void *ctx), void *ctx);

#endif
