/* SPDX-License-Identifier: Apache-2.0 */
/* attr - the compiler extensions that we use, spelled once. */
#ifndef BASE_ATTR_H
#define BASE_ATTR_H

/* Run `release(&variable)` at the end of the scope. Never beside `goto out`. */
#define CLEANUP(release)        __attribute__((cleanup(release)))
#define MUST_CHECK              __attribute__((warn_unused_result))
#define PRINTF_LIKE(fmt, first) __attribute__((format(printf, fmt, first)))

/* A large buffer on the stack of a hot function: not even zeroed. */
#define UNINITIALIZED __attribute__((uninitialized))

/* Hardly ever called: what leads there is moved out of the way of everything else. */
#define COLD __attribute__((cold))

/* Where a constant that is passed to it must be known inside. */
#define ALWAYS_INLINE inline __attribute__((always_inline))

/* Called from many places of one function: a copy at each would only fill the cache. */
#define NOINLINE __attribute__((noinline))

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#endif
