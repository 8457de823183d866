// SPDX-License-Identifier: Apache-2.0
#include "cli/baseline_file.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "core/text_file.h"

namespace stepcast::cli {

Result<std::optional<std::string>> read_baseline_file(const std::string& file, bool update) {
  namespace fs = std::filesystem;
  std::error_code none;
  const bool absent = fs::status(file, none).type() == fs::file_type::not_found;
  if (absent && update) return std::optional<std::string>();
  auto text = read_text_file(file);
  if (text) return std::optional(std::move(*text));
  Errors errors = text.error();
  for (Error& error : errors) {
    error.path = "--baseline";
    if (absent) error.hint = "make it with --update";
  }
  return failure(std::move(errors));
}

}  // namespace stepcast::cli
