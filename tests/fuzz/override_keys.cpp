// SPDX-License-Identifier: Apache-2.0

#include "core/json_tree.h"
#include "core/text/escape.h"
#include "fuzz/lines.h"
#include "fuzz/readers.h"
#include "fuzz/target.h"
#include "layout/override.h"

namespace stepcast::fuzz {

void override_keys(std::string_view text) {
  SortedJson document = SortedJson::object();
  for_each_setting(text, [&](std::string_view path, std::string_view value) {
    say(apply_override(document, path, value));
  });
  json_text(document);
}

}  // namespace stepcast::fuzz
