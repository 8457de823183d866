// SPDX-License-Identifier: Apache-2.0
#include "core/gathered_errors.h"

#include <algorithm>

namespace stepcast {

void append(Errors& errors, const Errors& more) {
  errors.insert(errors.end(), more.begin(), more.end());
}

void add_new(const Errors& more, Errors& errors) {
  for (const Error& error : more) {
    const bool known = std::any_of(errors.begin(), errors.end(), [&](const Error& other) {
      return to_string(other) == to_string(error);
    });
    if (!known) errors.push_back(error);
  }
}

}  // namespace stepcast
