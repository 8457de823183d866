// SPDX-License-Identifier: Apache-2.0
#include "fuzz/readers.h"
#include "fuzz/target.h"
#include "recipes/import.h"

namespace stepcast::fuzz {

// A manifest of Kubernetes, and MODEL_ARGS of Megatron's own recipes. Both words have to be there
// before anybody reads the rest as YAML.
void read_yaml(std::string_view text) {
  const std::string inside(text);
  text_to_import("# ConfigMap\n" + inside);
  ImportInput input;
  input.text = "# MODEL_ARGS:\n" + inside;
  input.file = "input.yaml";
  say(import_text("megatron", input).errors);
}

}  // namespace stepcast::fuzz
