// SPDX-License-Identifier: Apache-2.0
#include "fuzz/readers.h"
#include "fuzz/target.h"
#include "recipes/torchtitan.h"

namespace stepcast::fuzz {

void read_toml(std::string_view text) {
  const auto json = toml_to_json(std::string(text), "input.toml");
  say_errors_of(json);
}

}  // namespace stepcast::fuzz
