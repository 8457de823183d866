// SPDX-License-Identifier: Apache-2.0
#include "core/machine_errors.h"

#include <algorithm>
#include <iterator>

namespace stepcast {

bool of_machine(const Errors& errors) { return refused_by_machine(errors).size() == errors.size(); }

Errors refused_by_machine(const Errors& errors) {
  Errors out;
  std::copy_if(errors.begin(), errors.end(), std::back_inserter(out),
               [](const Error& error) { return error.code == ErrorCode::kIo; });
  return out;
}

}  // namespace stepcast
