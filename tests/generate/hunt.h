// SPDX-License-Identifier: Apache-2.0
// Draws scenarios and asks the properties of them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "generate/property.h"

namespace stepcast::generate {

struct HuntOptions {
  std::uint64_t seed = 1, from = 0, count = 100;  // scenarios `from` to `from + count - 1`
  int threads = 1;
  std::vector<const Property*> properties;
  std::function<void(std::uint64_t done)> progress;  // any thread
};

struct Tally {
  std::uint64_t asked = 0, applied = 0, excepted = 0, violated = 0;
  double seconds = 0;
};

struct Violation {
  LegalScenario scenario;
  const Property* property;
  Verdict verdict;
};

struct HuntResult {
  std::uint64_t scenarios = 0, attempts = 0;
  std::map<std::string, Tally> tallies;          // by property
  std::map<std::string, std::uint64_t> keys;     // by path: scenarios that state it
  std::map<std::string, std::uint64_t> choices;  // scenarios that have it: "schedule 1f1b"
  std::vector<Violation> violations;             // by index, then as the table has them
};

HuntResult hunt(const HuntOptions& options);

// The keys that a scenario states.
std::vector<std::string> stated_keys(const std::string& text);

// Lists what a scenario has beyond keys that it states: values of some, and parts of its cluster.
std::vector<std::string> drawn_choices(const LegalScenario& drawn);
// All that there are.
std::vector<std::string> all_choices();

}  // namespace stepcast::generate
