// SPDX-License-Identifier: Apache-2.0
#include "core/utc_date.h"

#include <fmt/format.h>

namespace stepcast {

std::string utc_date(std::time_t time) {
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  return fmt::format("{:04}-{:02}-{:02}", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday);
}

}  // namespace stepcast
