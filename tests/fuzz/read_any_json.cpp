// SPDX-License-Identifier: Apache-2.0

#include "core/json.h"
#include "core/json_tree.h"
#include "core/parse_json.h"
#include "fuzz/readers.h"
#include "fuzz/target.h"

namespace stepcast::fuzz {
namespace {

// Asks each value for all that a reader may ask of it.
void read_value(const JsonValue& value) {
  value.text();
  value.number();
  value.integer();
  value.boolean();
  if (value.is_array()) {
    for (const JsonValue& item : value.items()) read_value(item);
  }
  if (!value.is_object()) return;
  ObjectReader reader(value);
  for (const auto& [key, unused] : value.raw().items()) {
    reader.bytes(key);
    reader.rate(key);
    reader.seconds(key);
    reader.flops_rate(key);
    reader.choice(key, {"one", "two"});
    reader.integer(key, 1, 1000);
    reader.number(key, 0, 1);
    if (const auto inside = reader.value(key)) read_value(*inside);
  }
  reader.required("key");
  reader.finish();
}

}  // namespace

void read_any_json(std::string_view text) {
  say_errors_of(parse_json(text, "input.json", {.comments = true}));
  say_errors_of(parse_ordered_json(text, "input.json"));
  with_document(text, [](JsonDocument& document) { read_value(document.root()); });
}

}  // namespace stepcast::fuzz
