// SPDX-License-Identifier: Apache-2.0
#include "core/quantity.h"

using namespace stepcast::literals;

#ifdef STEPCAST_MISTAKE
const double latency_us = 12.0_us;
#else
const double latency_us = 12.0_us / 1.0_us;
#endif
