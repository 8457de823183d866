// SPDX-License-Identifier: Apache-2.0
#include "fuzz/readers.h"
#include "fuzz/target.h"
#include "validate/documents.h"

namespace stepcast::fuzz {

void read_recorded_suite(std::string_view text) {
  with_document(text, [](JsonDocument& document) { say_errors_of(read_suite(document)); });
}

}  // namespace stepcast::fuzz
