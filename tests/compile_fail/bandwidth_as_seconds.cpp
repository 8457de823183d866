// SPDX-License-Identifier: Apache-2.0
// bytes / (bytes/s) is a time; bytes * (bytes/s) is nothing that has a name here.
#include "core/quantity.h"

using namespace stepcast::literals;

#ifdef STEPCAST_MISTAKE
const stepcast::Seconds transfer = 1_GB * 450_GBps;
#else
const stepcast::Seconds transfer = 1_GB / 450_GBps;
#endif
