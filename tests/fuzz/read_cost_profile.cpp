// SPDX-License-Identifier: Apache-2.0
#include "cost/profile.h"
#include "cost/profile_document.h"
#include "fuzz/readers.h"
#include "fuzz/target.h"

namespace stepcast::fuzz {

void read_cost_profile(std::string_view text) {
  with_document(text, [](JsonDocument& document) { read_profile(document); });
  with_document(text, [](JsonDocument& document) {
    Profile profile;
    read_hosts(document, profile);
  });
}

}  // namespace stepcast::fuzz
