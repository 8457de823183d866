// SPDX-License-Identifier: Apache-2.0
#include "core/assert.h"

#include <fmt/format.h>

#include <stdexcept>

namespace stepcast {

void assertion_failed(const char* condition, const char* why, const char* file, int line) {
  throw std::logic_error(fmt::format("{}:{}: {} ({})", file, line, why, condition));
}

}  // namespace stepcast
