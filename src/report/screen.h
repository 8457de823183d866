// SPDX-License-Identifier: Apache-2.0
// Lays finished text out for a screen of so many columns. Tables are known by the rule under their
// titles, which says where each column begins and ends: long texts go on below within their column,
// or move below the row, and a table of many figures goes on in a second one. Other lines go on
// below, indented. Words are kept whole where they fit, and text that fits stays as it is.
#pragma once

#include "core/text/written.h"

namespace stepcast {

inline constexpr std::size_t kScreenWidth = 100;  // where no terminal says

Written fitted_to_screen(const Written& text, std::size_t width);

}  // namespace stepcast
