// SPDX-License-Identifier: Apache-2.0
#include "sim/workload.h"

using stepcast::sim::ResourceId;
using stepcast::sim::StreamId;

#ifdef STEPCAST_MISTAKE
ResourceId same(StreamId id) { return id; }
#else
ResourceId same(ResourceId id) { return id; }
#endif
