// SPDX-License-Identifier: Apache-2.0
// The work of an operation as JSON, to the last bit: what a journal needs to say which kernel a
// point is of. `work` is the family; the fields are those of its struct (src/operation/), each
// under its key there:
//   {"work": "gemm", "name": "qkv", "phase": "forward", "role": "forward", "batch": 1, "m": 512,
//   ...}
//   {"work": "rotary", "name": "rotary", "phase": "forward", "backward": false, "sequence": 512,
//   ...}
// Buffers and parameters are those of a block and are left out.
#pragma once

#include <set>
#include <string>

#include "core/json_fwd.h"

namespace stepcast {

struct Operation;

// Holds the names of operations that are not literals of the program.
class OperationNames {
 public:
  OperationNames() = default;
  OperationNames(const OperationNames&) = delete;
  OperationNames& operator=(const OperationNames&) = delete;
  const char* keep(const std::string& name) { return names_.insert(name).first->c_str(); }

 private:
  std::set<std::string> names_;
};

Json operation_json(const Operation& operation);
// Errors go to the value's document. `names` must outlive the operation.
Operation read_operation(const JsonValue& value, OperationNames& names);

}  // namespace stepcast
