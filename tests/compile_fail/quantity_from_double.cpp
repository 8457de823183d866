// SPDX-License-Identifier: Apache-2.0
#include "core/quantity.h"

#ifdef STEPCAST_MISTAKE
const stepcast::Seconds latency = 12e-6;
#else
const stepcast::Seconds latency(12e-6);
#endif
