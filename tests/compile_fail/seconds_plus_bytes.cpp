// SPDX-License-Identifier: Apache-2.0
#include "core/quantity.h"

using namespace stepcast::literals;

#ifdef STEPCAST_MISTAKE
const auto sum = 1.0_s + 1_GiB;
#else
const auto sum = 1.0_s + 1.0_ms;
#endif
