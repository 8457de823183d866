// SPDX-License-Identifier: Apache-2.0
#include "core/failed_write.h"

#include <cerrno>

namespace stepcast {

std::string hint_of_failed_write(int reason, const std::string& otherwise) {
  const bool full = reason == ENOSPC || reason == EDQUOT;
  return full ? "free some room there, or name a place on another disk" : otherwise;
}

}  // namespace stepcast
