// SPDX-License-Identifier: Apache-2.0
// Settings of a training run that no scenario holds, as they cost no time: a launch file has the
// framework's defaults or a stand-in for them, and whoever trains for real sets them.
#pragma once

#include <string>
#include <vector>

namespace stepcast {

struct Scenario;

// "the learning rate's schedule (--lr, ...)": in words of the framework that the scenario is of.
std::vector<std::string> settings_left_open(const Scenario& scenario);

}  // namespace stepcast
