// SPDX-License-Identifier: Apache-2.0
// The keys in which scenarios differ, so that forecasts of several files are read beside what their
// files say.
#pragma once

#include <string>
#include <vector>

#include "core/json_fwd.h"

namespace stepcast {

struct KeyDifference {
  std::string key;                  // "layout.tp"
  std::vector<std::string> values;  // of each scenario; "-" where it has no such key
};

// The keys of scenario documents that do not agree, in the order of model, cluster, training,
// layout and the rest. Models and clusters of different names differ by their names and sizes
// alone. Documents are equal in a key that one of them leaves out and is not `resolved`: it has a
// default that nobody asked for.
struct ComparedDocument {
  const SortedJson& scenario;
  bool resolved = true;  // with every default filled in
};
std::vector<KeyDifference> key_differences(const std::vector<ComparedDocument>& documents);

}  // namespace stepcast
