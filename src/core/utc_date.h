// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ctime>
#include <string>

namespace stepcast {

std::string utc_date(std::time_t time);  // "2026-03-31"

}  // namespace stepcast
