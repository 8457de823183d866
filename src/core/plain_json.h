// SPDX-License-Identifier: Apache-2.0
// Reads the JSON that files nearly always are, at a tenth of the library's instructions. Whatever
// is rare or wrong - an error, an escape by number, a key that stands twice, a comment - it leaves
// to the library's parser, which has the words for it: so both read every text alike.
#pragma once

#include <optional>
#include <string_view>

#include "core/json_tree.h"

namespace stepcast {

// Gives nothing where the library has to read the text.
template <class Tree>
std::optional<Tree> read_plain_json(std::string_view text);

extern template std::optional<Json> read_plain_json(std::string_view text);
extern template std::optional<SortedJson> read_plain_json(std::string_view text);

}  // namespace stepcast
