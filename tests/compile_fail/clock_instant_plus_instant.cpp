// SPDX-License-Identifier: Apache-2.0
#include "sim/time.h"

using stepcast::sim::Duration;
using stepcast::sim::Time;

#ifdef STEPCAST_MISTAKE
const Time sum = Time{1} + Time{2};
#else
const Time sum = Time{1} + Duration{2};
#endif
