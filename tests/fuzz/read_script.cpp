// SPDX-License-Identifier: Apache-2.0
#include "fuzz/readers.h"
#include "fuzz/target.h"
#include "recipes/import.h"
#include "recipes/shell_script.h"

namespace stepcast::fuzz {

void read_script(std::string_view text) {
  read_shell(text, {{"NODES", "2"}});
  ImportInput input;
  input.text = std::string(text);
  input.file = "input.sh";
  input.variables = {{"NODES", "2"}};
  say(import_text("megatron", input).errors);
}

}  // namespace stepcast::fuzz
