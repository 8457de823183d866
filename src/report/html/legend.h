// SPDX-License-Identifier: Apache-2.0
// Explains what the colours of a picture stand for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "operation/memory_parts.h"
#include "operation/phase.h"
#include "report/html/markup.h"

namespace stepcast::html {

struct LegendEntry {
  std::string css_class;  // that fills the marks
  std::string label;
};

Html legend(const std::vector<LegendEntry>& entries);

const char* css_class_of(MemoryCategory category);
const char* css_class_of(Phase phase);
// The class for a part of the step, named by its key ("exposed_tp"). Each part has its own colour.
std::string time_class_of(std::string_view key);

}  // namespace stepcast::html
