// SPDX-License-Identifier: Apache-2.0
#include "fuzz/readers.h"
#include "fuzz/target.h"
#include "model/import_model.h"
#include "model/model.h"

namespace stepcast::fuzz {

void read_model_config(std::string_view text) {
  with_document(text, [](JsonDocument& document) {
    const Model model = read_model(document.root());
    if (document.ok()) count_parameters(model);
  });
}

}  // namespace stepcast::fuzz
