// SPDX-License-Identifier: Apache-2.0
#include "shipped/carry_data.h"

#include "core/carried_files.h"

namespace stepcast {

std::span<const CarriedFile> shipped_files();  // made by cmake/pack_data.cpp

void carry_shipped_data() { carry_files(shipped_files()); }

}  // namespace stepcast
