// SPDX-License-Identifier: Apache-2.0
// How often relative errors of each size occur, around zero.
#pragma once

#include <string>
#include <vector>

#include "report/html/markup.h"

namespace stepcast::html {

// Bars of 5 %; what lies beyond 50 % on either side is in the outermost.
Html error_histogram(const std::vector<double>& errors, const std::string& label);

}  // namespace stepcast::html
