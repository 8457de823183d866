// SPDX-License-Identifier: Apache-2.0
// The names of JSON, for headers that only hand it on: core/json_tree.h has its values,
// core/json.h reads it.
#pragma once

namespace stepcast {

// Keys of an object stand as they were added, or by the alphabet.
enum class KeyOrder { kAsAdded, kSorted };

template <KeyOrder kOrder>
class JsonTree;
using Json = JsonTree<KeyOrder::kAsAdded>;
using SortedJson = JsonTree<KeyOrder::kSorted>;

class JsonDocument;
class JsonValue;

}  // namespace stepcast
