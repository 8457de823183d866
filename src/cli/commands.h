// SPDX-License-Identifier: Apache-2.0
// The commands of the program, one file each.
#pragma once

#include <vector>

#include "cli/session.h"

namespace stepcast::cli {

Command add_predict(CLI::App& program);
Command add_check(CLI::App& program);
Command add_plan(CLI::App& program);
Command add_compare(CLI::App& program);
Command add_calibrate(CLI::App& program);
Command add_validate(CLI::App& program);
std::vector<Command> add_show(CLI::App& program);
std::vector<Command> add_topology(CLI::App& program);
Command add_export(CLI::App& program);
Command add_import(CLI::App& program);
Command add_doctor(CLI::App& program);

}  // namespace stepcast::cli
