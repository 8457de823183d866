// SPDX-License-Identifier: Apache-2.0
// The smallest scenario that still violates a property, and the command that shows it.
#pragma once

#include <string>
#include <vector>

#include "generate/property.h"

namespace stepcast::generate {

// Takes keys out, makes numbers smaller, puts a plain model and a plain cluster in the place of
// others, as long as the property stays violated.
LegalScenario shrunk(const LegalScenario& failing, const Property& property, int most_tries = 1000);

// `stepcast predict` and the words behind it that make this scenario. Empty where flags do not say
// all of it.
std::vector<std::string> command_words(const LegalScenario& scenario);

// Writes it for a shell; a long one has its scenario in a file of this folder, which is written.
std::string command_line(const LegalScenario& scenario, const std::string& flags,
                         const std::string& folder, const std::string& name);

}  // namespace stepcast::generate
