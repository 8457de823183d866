// SPDX-License-Identifier: Apache-2.0
// The curves of a profile file (docs/formats/profile.md).
#pragma once

#include "layout/training.h"

namespace stepcast {

class JsonValue;
class ObjectReader;
struct Profile;

// Names of MemoryBoundKind and GemmRole in files, in the order of their enumerators.
const std::vector<std::string>& curve_names();  // in the order of Curve

// The frameworks that the list "frameworks" names; none where it is left out. Errors go to the
// reader's document.
std::vector<Framework> read_framework_list(ObjectReader& reader);

// Reads one element of "curves" into `profile`. Errors go to the value's document.
void read_curve(const JsonValue& value, Profile& profile);

}  // namespace stepcast
