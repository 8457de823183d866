// SPDX-License-Identifier: Apache-2.0
// Computes a graph of operations by the words of its description: each operation at a time, in
// fp64, every tensor rounded to its type.
#pragma once

#include "kernels/emulated/cudnn/object.h"

namespace stepcast::emulated {

// Each virtual tensor is written once, before it is read, and read; shapes and types fit. Throws
// Refused.
void expect_connected(const Object& graph);

// Binds arrays, and numbers by value, to unique ids.
struct Bindings {
  std::map<std::int64_t, void*> arrays;
  std::map<std::int64_t, float> values;
};
// Binds all tensors that are not virtual, and no others; throws Refused.
Bindings bindings_of(const Object& graph, const Object& pack);

void run_graph(const Object& graph, const Bindings& bindings);

}  // namespace stepcast::emulated
