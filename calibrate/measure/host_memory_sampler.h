// SPDX-License-Identifier: Apache-2.0
// Measures how fast the processors of this machine move what lies in its memory.
#pragma once

#include <functional>

#include "cost/host_memory.h"

namespace stepcast {

// Takes all cores that this process may be moved to, whichever it is bound to, for a second or so;
// `alive` is called between samples. Nothing else should compute meanwhile.
HostMemory measure_host_memory(const std::function<void()>& alive);

}  // namespace stepcast
