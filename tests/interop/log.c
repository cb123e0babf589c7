/* SPDX-License-Identifier: Apache-2.0 */
/* What tests/interop/log.t checks is what the example records. */
#include "examples/record.c"
