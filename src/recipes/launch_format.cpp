// SPDX-License-Identifier: Apache-2.0
#include "recipes/launch_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "layout/framework.h"

namespace stepcast {

// Each stands with its writer.
extern const LaunchFormat kMegatronScript;
extern const LaunchFormat kDeepSpeedSettings;
extern const LaunchFormat kTorchtitanSettings;

namespace {

constexpr const LaunchFormat* kFormats[] = {&kMegatronScript, &kDeepSpeedSettings,
                                            &kTorchtitanSettings};

template <class Property>
const LaunchFormat* first_with(Property property) {
  const auto found = std::ranges::find_if(kFormats, property);
  return found == std::end(kFormats) ? nullptr : *found;
}

}  // namespace

std::span<const LaunchFormat* const> launch_formats() { return kFormats; }

const LaunchFormat* launch_format_named(const std::string& name) {
  return first_with([&](const LaunchFormat* format) { return format->name == name; });
}

const LaunchFormat* launch_format_of(Framework framework) {
  const std::string_view name = name_of(framework);
  return first_with([&](const LaunchFormat* format) { return format->framework == name; });
}

Error no_launch_files(const FrameworkTraits& framework) {
  std::vector<std::string> others;
  for (const LaunchFormat* format : kFormats) others.emplace_back(format->framework);
  Error out{ErrorCode::kIllegal, fmt::format("stepcast has no launch files of {}", framework.name),
            "", "training.framework", one_of(others)};
  if (framework.is_own_executor) {
    out.message =
        fmt::format("{} is stepcast's own executor, which no launcher starts", framework.name);
    out.hint += fmt::format("; stepcast validate runs {}", framework.name);
  }
  return out;
}

}  // namespace stepcast
