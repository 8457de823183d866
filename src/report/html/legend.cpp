// SPDX-License-Identifier: Apache-2.0
#include "report/html/legend.h"

namespace stepcast::html {

Html legend(const std::vector<LegendEntry>& entries) {
  Html items;
  for (const LegendEntry& entry : entries) {
    const Html mark =
        element("svg", {{"viewBox", "0 0 14 14"}, {"aria-hidden", "true"}},
                element("rect", {{"class", entry.css_class}, {"width", "14"}, {"height", "14"}}));
    items += element("li", {}, mark + text(entry.label));
  }
  return element("ul", {{"class", "legend"}}, items);
}

const char* css_class_of(MemoryCategory category) {
  switch (category) {
    case MemoryCategory::kParameters:
      return "parameters";
    case MemoryCategory::kGradients:
      return "gradients";
    case MemoryCategory::kOptimizer:
      return "states";
    case MemoryCategory::kActivations:
      return "activations";
    case MemoryCategory::kBuffers:
      return "buffers";
    case MemoryCategory::kWorkspace:
      return "workspace";
    case MemoryCategory::kOuter:
      return "states";
  }
  return "residual";
}

const char* css_class_of(Phase phase) {
  switch (phase) {
    case Phase::kForward:
      return "forward";
    case Phase::kRecompute:
      return "recompute";
    case Phase::kBackward:
      return "backward";
    case Phase::kWeightGradient:
      return "weight";
    case Phase::kOptimizer:
      return "optimizer";
  }
  return "residual";
}

std::string time_class_of(std::string_view key) { return "time-" + std::string(key); }

}  // namespace stepcast::html
