// SPDX-License-Identifier: Apache-2.0
// The words that a command takes. Only command_line.cpp, flag_words.cpp and main.cpp know the
// library that reads them (CLI11): its header takes longer to compile than any command.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cli/described_command.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace stepcast::cli {

// One flag, or one word without a flag. It belongs to its command line; copies name the same one.
class Flag {
 public:
  Flag() = default;
  explicit Flag(CLI::Option* option) : option_(option) {}

  Flag type_name(const std::string& name) const;  // what the help calls its value
  Flag help(const std::string& text) const;
  Flag group(const std::string& heading) const;  // where the help lists it
  Flag shows_default() const;
  Flag required() const;
  Flag one_word() const;              // each time it stands there
  Flag splits_at(char letter) const;  // its value is a list
  Flag one_of(const std::vector<std::string>& words) const;
  Flag one_of_unlisted(const std::vector<std::string>& words) const;  // the help tells them already
  Flag within(int least, int most) const;
  Flag within(std::int64_t least, std::int64_t most) const;
  Flag within(double least, double most) const;
  Flag positive() const;
  Flag needs(Flag other) const;
  Flag excludes(Flag other) const;

  bool given() const;
  std::string type() const;  // what type_name() said

 private:
  CLI::Option* option_ = nullptr;
};

// A command with its flags. It belongs to the program; copies name the same one.
class CommandLine {
 public:
  CommandLine() = default;
  explicit CommandLine(CLI::App& app) : app_(&app) {}

  CommandLine add_command(const std::string& name, const std::string& help) const;
  void footer(const std::string& text) const;  // what its help ends with
  // `T` is a number, text, a list of texts or an optional one of them; without the flag `value`
  // stays as it is.
  template <class T>
  Flag add(const std::string& names, T& value, const std::string& help) const;
  Flag add_switch(const std::string& names, bool& value, const std::string& help) const;
  Flag flag(const std::string& name) const;  // which was added before
  DescribedCommand described() const;        // with the commands below it
  CLI::App& app() const { return *app_; }

 private:
  CLI::App* app_ = nullptr;
};

}  // namespace stepcast::cli
