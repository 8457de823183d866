// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "fuzz/lines.h"
#include "fuzz/readers.h"
#include "fuzz/target.h"
#include "layout/override.h"

namespace stepcast::fuzz {

void override_keys(std::string_view text) {
  nlohmann::json document = nlohmann::json::object();
  for_each_setting(text, [&](std::string_view path, std::string_view value) {
    say(apply_override(document, path, value));
  });
  document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace stepcast::fuzz
