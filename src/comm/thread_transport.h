// SPDX-License-Identifier: Apache-2.0
// Messages between threads: whoever comes second, sender or receiver, copies the bytes.
#pragma once

#include <memory>
#include <vector>

#include "comm/transport.h"

namespace stepcast {

std::vector<std::shared_ptr<Transport>> thread_transports(int processes);

}  // namespace stepcast
