// SPDX-License-Identifier: Apache-2.0
// Small text files of the kernel: /proc and /sys. What is not there reads as nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace stepcast {

std::string first_line(const std::string& file);
std::optional<std::int64_t> first_number(const std::string& file);
// The value behind the first "key : value".
std::string field_of(const std::string& file, const std::string& key);

}  // namespace stepcast
