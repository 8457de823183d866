// SPDX-License-Identifier: Apache-2.0
// The form in which a program carries the JSON that ships: values in the order of the text, each a
// tag and what the tag asks for, ready to be copied. Written when the program is built
// (cmake/pack_data.cpp) on a machine with the same order of bytes; never a file.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/json_fwd.h"

namespace stepcast {

// Counts are four bytes. A member is the text of its key, without tag, and its value; members are
// sorted by key, and no key stands twice.
enum class PackedTag : char {
  kNull = 'n',
  kTrue = 't',
  kFalse = 'f',
  kInteger = 'i',   // eight bytes
  kUnsigned = 'u',  // eight bytes
  kSmall = 'c',     // likewise, where a count holds it
  kFloat = 'd',     // eight bytes
  kText = 's',      // their count, bytes
  kArray = 'a',     // their count, elements
  kObject = 'o'     // their count, members
};
using PackedCount = std::uint32_t;

SortedJson unpack_json(std::string_view packed);

}  // namespace stepcast
