// SPDX-License-Identifier: Apache-2.0
#include "core/quantity.h"

using namespace stepcast::literals;

#ifdef STEPCAST_MISTAKE
const bool late = 1.0_s < 1_GB;
#else
const bool late = 1.0_s < 1_GB / 1_GBps;
#endif
