// SPDX-License-Identifier: Apache-2.0
// Seconds reach the clock only through sim::duration, which rounds.
#include "sim/time.h"

using stepcast::Seconds;
using stepcast::sim::Duration;

#ifdef STEPCAST_MISTAKE
Duration convert(Seconds seconds) { return seconds; }
#else
Duration convert(Seconds seconds) { return stepcast::sim::duration(seconds); }
#endif
