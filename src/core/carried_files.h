// SPDX-License-Identifier: Apache-2.0
// Files that a program carries inside itself. Their paths begin with kCarriedRoot, and whoever
// reads or lists data finds them as if they lay in folders on the disk.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast {

inline constexpr std::string_view kCarriedRoot = "shipped:";

struct CarriedFile {
  std::string_view path;  // "shipped:/models/llama-3.1-8b.json"
  std::string_view bytes;
  bool is_packed = false;  // JSON in the form of core/packed_json.h, else the text itself
};

// Called once, before anything is read. `files` are sorted by path, and stay where they are.
void carry_files(std::span<const CarriedFile> files);

bool is_carried(std::string_view path);  // it lies below kCarriedRoot, whether it exists or not
const CarriedFile* carried_file(std::string_view path);  // null where there is none
// The paths below a folder, sorted.
std::vector<std::string_view> carried_below(std::string_view folder);

// Whether data can be read from this path: a carried file, or a regular one on the disk.
bool is_data_file(const std::string& path);

}  // namespace stepcast
