// SPDX-License-Identifier: Apache-2.0
#include "stepcast/suites.h"

#include "core/assert.h"
#include "core/data_name.h"
#include "core/text/escape.h"
#include "stepcast/detail/data_root.h"
#include "stepcast/detail/made_suite.h"

namespace stepcast::api {

Result<std::vector<std::string>> shipped_suites(const Data& data) {
  return data_names(data.root().suites);
}

Result<Suite> Suite::load(const Data& data, const std::string& name_or_file) {
  const auto file = suite_file(name_or_file, data.root().suites);
  if (!file) return failure(file.error());
  auto suite = load_suite(*file);
  if (!suite) return failure(suite.error());
  return Suite(std::make_shared<const Made>(Made{data, std::move(*suite)}));
}

const std::string& Suite::name() const { return made_->suite.name; }
std::size_t Suite::cases() const { return made_->suite.cases.size(); }
const std::string& Suite::id(std::size_t index) const { return made_->suite.cases.at(index).id; }

bool Suite::is_collective(std::size_t index) const {
  return made_->suite.cases.at(index).collective.ranks > 0;
}

Scenario Suite::scenario(std::size_t index) const {
  const SuiteCase& one = made_->suite.cases.at(index);
  auto scenario = Scenario::parse(made_->data, json_text(one.scenario), one.id);
  STEPCAST_ASSERT(scenario.has_value(), "a suite that was read holds whole scenarios");
  return std::move(*scenario);
}

}  // namespace stepcast::api
