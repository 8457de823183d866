// SPDX-License-Identifier: Apache-2.0
// Tells people which keys a document has, from the rows that its structs declare (core/rows.h):
// path, what is accepted, default, and the row's words.
#pragma once

#include <string>
#include <vector>

#include "core/rows.h"

namespace stepcast {

struct DeclaredKey {
  std::string path;     // "cases.convention.memory", for each element of a list
  std::string accepts;  // "true or false"
  std::string usual;    // "required"; the value without the key; empty: there is none
  std::string words;    // empty: the row has none
};

// All keys of a document of such a struct, each below the struct that holds it.
std::vector<DeclaredKey> declared_keys(const Rows& rows, const std::string& prefix);
template <class Holder>
std::vector<DeclaredKey> declared_keys(const std::string& prefix) {
  return declared_keys(Holder::fields(), prefix);
}

}  // namespace stepcast
