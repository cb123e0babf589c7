/* SPDX-License-Identifier: Apache-2.0 */
/* The pack that tests/interop/pack.t checks is that of the example. */
#include "examples/record.c"
