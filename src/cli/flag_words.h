// SPDX-License-Identifier: Apache-2.0
// Says what is wrong with the words of a command line as the program says its other errors.
#pragma once

#include <string>

#include "core/error.h"

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace stepcast::cli {

// "stepcast topology show" of the command that was reached.
std::string command_words(const CLI::App& reached);

// The flag of this program that does what `flag` does elsewhere ("--global-batch" for
// "--batch-size"); "" where none is known.
std::string flag_of_others(const std::string& flag);

// The error of the flag library in the program's own words; `reached` is the command whose flags
// were read.
Error error_of(const CLI::ParseError& error, const CLI::App& reached);

}  // namespace stepcast::cli
