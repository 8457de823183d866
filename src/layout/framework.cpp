// SPDX-License-Identifier: Apache-2.0
#include "layout/framework.h"

#include <algorithm>

#include "core/assert.h"
#include "core/error.h"
#include "layout/framework_rules.h"

namespace stepcast {

// Each is filled in a file of its own, in layout/frameworks.
extern const FrameworkTraits kMegatron;
extern const FrameworkTraits kFsdp;
extern const FrameworkTraits kDeepSpeed;
extern const FrameworkTraits kNative;

namespace {

constexpr const FrameworkTraits* kFrameworks[] = {&kMegatron, &kFsdp, &kDeepSpeed, &kNative};

template <class Property>
Framework first_with(Property property) {
  const auto found = std::ranges::find_if(kFrameworks, property);
  STEPCAST_ASSERT(found != std::end(kFrameworks), "a framework of the list");
  return static_cast<Framework>(found - std::begin(kFrameworks));
}

}  // namespace

std::span<const FrameworkTraits* const> frameworks() { return kFrameworks; }

const FrameworkTraits& traits_of(Framework framework) {
  return *kFrameworks[static_cast<std::size_t>(framework)];
}

Framework framework_named(std::string_view name) {
  return first_with([&](const FrameworkTraits* traits) { return traits->name == name; });
}

Framework own_executor() {
  return first_with([](const FrameworkTraits* traits) { return traits->is_own_executor; });
}

std::vector<Framework> all_frameworks() {
  std::vector<Framework> out;
  for (std::size_t i = 0; i < frameworks().size(); ++i) out.push_back(static_cast<Framework>(i));
  return out;
}

Framework default_framework(const Training& training, const Layout& layout) {
  const auto found = std::ranges::find_if(kFrameworks, [&](const FrameworkTraits* traits) {
    return traits->default_for != nullptr && traits->default_for(training, layout);
  });
  if (found == std::end(kFrameworks)) return {};
  return static_cast<Framework>(found - std::begin(kFrameworks));
}

std::vector<Framework> default_frameworks() {
  std::vector<Framework> out = {Framework{}};
  for (const Framework framework : all_frameworks()) {
    if (traits_of(framework).default_for != nullptr) out.push_back(framework);
  }
  return out;
}

std::string frameworks_with(bool FrameworkTraits::*trait) {
  std::vector<std::string> names;
  for (const FrameworkTraits* traits : kFrameworks) {
    if (traits->*trait) names.emplace_back(traits->name);
  }
  return one_of(names);
}

FrameworkRules rules_of(const Training& training, const Layout& layout) {
  return traits_of(training.framework).rules(training, layout);
}

const char* name_of(Framework framework) { return traits_of(framework).name; }

}  // namespace stepcast
