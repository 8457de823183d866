// SPDX-License-Identifier: Apache-2.0
// The work of an operation as JSON, to the last bit: what a journal needs to say which kernel a
// point is of.
//   {"work": "gemm", "name", "phase", "role", "batch", "m", "n", "k", "input", "output",
//    "accumulate"}
//   {"work": "attention", "name", "phase", "backward", "batch", "heads", "kv_heads",
//    "query_length", "key_length", "head_dim", "causal", "type"}
//   {"work": "elementwise", "name", "phase", "kind", "backward", "elements", "width", "bytes",
//    "launches"}
//   {"work": "collective", "name", "phase", "kind", "group", "bytes", "type", "overlapped"}
// Buffers and parameters are those of a block and are left out.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>

#include "core/json.h"
#include "operation/operation.h"

namespace stepcast {

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

nlohmann::ordered_json operation_json(const Operation& operation);
// Errors go to the value's document. `names` must outlive the operation.
Operation read_operation(const JsonValue& value, OperationNames& names);

}  // namespace stepcast
