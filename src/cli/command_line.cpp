// SPDX-License-Identifier: Apache-2.0
#include "cli/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <optional>
#include <system_error>
#include <type_traits>

namespace stepcast::cli {
namespace {

template <class T>
struct NumberIn {
  using type = T;
};
template <class T>
struct NumberIn<std::optional<T>> {
  using type = T;
};

// Says what is wrong with one word for a `T`; flag_words.cpp knows both sentences. The library
// itself would take "0x10", "+8" and " 8", which mean something else elsewhere or nothing at all.
template <class T>
std::string wrong_word(const std::string& word) {
  using Number = typename NumberIn<T>::type;
  if constexpr (std::is_arithmetic_v<Number>) {
    Number value{};
    const char* end = word.data() + word.size();
    const auto [rest, error] = std::from_chars(word.data(), end, value);
    const bool number = error != std::errc::invalid_argument && rest == end;
    return number ? "" : "No number: " + word;
  } else {
    return word.empty() ? "No text" : "";
  }
}

// A list of words keeps its words in its name, for those who describe the flag.
constexpr std::string_view kChoices = "one of:";

CLI::Validator member_of(const std::vector<std::string>& words) {
  CLI::Validator out = CLI::IsMember(words);
  return out.name(fmt::format("{}{}", kChoices, fmt::join(words, ",")));
}

std::vector<std::string> choices_of(CLI::Option& option) {
  std::vector<std::string> out;
  // The library counts its checks by throwing behind the last one.
  try {
    for (int i = 0;; ++i) {
      const std::string name = option.get_validator(i)->get_name();
      if (name.starts_with(kChoices)) out = CLI::detail::split(name.substr(kChoices.size()), ',');
    }
  } catch (const CLI::OptionNotFound&) {
    return out;
  }
}

DescribedFlag described_flag(CLI::Option& option) {
  DescribedFlag out;
  for (const std::string& name : option.get_snames()) out.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) out.names.push_back("--" + name);
  if (out.names.empty()) out.names.push_back(option.get_name());
  if (option.get_items_expected_max() > 0) {
    // "TEXT:{full,causal}" is what the help says of type and checks.
    const std::string type = option.get_type_name();
    out.value = type.substr(0, type.find(':'));
  }
  out.help = option.get_description();
  out.choices = choices_of(option);
  return out;
}

DescribedCommand described_command(CLI::App& app) {
  DescribedCommand out{app.get_name(), app.get_description(), app.get_footer(), {}, {}, {}};
  for (CLI::Option* option : app.get_options([](CLI::Option*) { return true; })) {
    (option->nonpositional() ? out.flags : out.words).push_back(described_flag(*option));
  }
  for (CLI::App* below : app.get_subcommands([](CLI::App*) { return true; })) {
    out.commands.push_back(described_command(*below));
  }
  return out;
}

}  // namespace

Flag Flag::type_name(const std::string& name) const { return Flag(option_->type_name(name)); }
Flag Flag::help(const std::string& text) const { return Flag(option_->description(text)); }
Flag Flag::group(const std::string& heading) const { return Flag(option_->group(heading)); }
Flag Flag::shows_default() const { return Flag(option_->capture_default_str()); }
Flag Flag::required() const { return Flag(option_->required()); }
Flag Flag::one_word() const { return Flag(option_->allow_extra_args(false)); }
Flag Flag::splits_at(char letter) const { return Flag(option_->delimiter(letter)); }

Flag Flag::one_of(const std::vector<std::string>& words) const {
  return Flag(option_->check(member_of(words)));
}
Flag Flag::one_of_unlisted(const std::vector<std::string>& words) const {
  return Flag(option_->check(member_of(words).description("")));
}
Flag Flag::within(int least, int most) const {
  return Flag(option_->check(CLI::Range(least, most)));
}
Flag Flag::within(std::int64_t least, std::int64_t most) const {
  return Flag(option_->check(CLI::Range(least, most)));
}
Flag Flag::within(double least, double most) const {
  // The library's own range takes "nan", which is neither below its one end nor above the other.
  const auto refuse_nan = [least, most](const std::string& word) {
    double value = 0;
    if (!CLI::detail::lexical_cast(word, value) || !std::isnan(value)) return std::string();
    return fmt::format("Value {} not in range {} to {}", word, least, most);
  };
  return Flag(option_->check(CLI::Range(least, most))->check(refuse_nan));
}
Flag Flag::positive() const { return Flag(option_->check(CLI::PositiveNumber)); }
Flag Flag::needs(Flag other) const { return Flag(option_->needs(other.option_)); }
Flag Flag::excludes(Flag other) const { return Flag(option_->excludes(other.option_)); }

bool Flag::given() const { return option_->count() > 0; }
std::string Flag::type() const { return option_->get_type_name(); }

CommandLine CommandLine::add_command(const std::string& name, const std::string& help) const {
  CLI::App* command = app_->add_subcommand(name, help);
  command->allow_extras();  // main.cpp says what is wrong with them
  return CommandLine(*command);
}

void CommandLine::footer(const std::string& text) const { app_->footer(text); }

template <class T>
Flag CommandLine::add(const std::string& names, T& value, const std::string& help) const {
  return Flag(app_->add_option(names, value, help)->check(wrong_word<T>));
}
template Flag CommandLine::add(const std::string&, std::string&, const std::string&) const;
template Flag CommandLine::add(const std::string&, int&, const std::string&) const;
template Flag CommandLine::add(const std::string&, std::int64_t&, const std::string&) const;
template Flag CommandLine::add(const std::string&, std::uint64_t&, const std::string&) const;
template Flag CommandLine::add(const std::string&, double&, const std::string&) const;
template Flag CommandLine::add(const std::string&, std::optional<int>&, const std::string&) const;
template Flag CommandLine::add(const std::string&, std::optional<double>&,
                               const std::string&) const;
template Flag CommandLine::add(const std::string&, std::vector<std::string>&,
                               const std::string&) const;

Flag CommandLine::add_switch(const std::string& names, bool& value, const std::string& help) const {
  return Flag(app_->add_flag(names, value, help));
}

Flag CommandLine::flag(const std::string& name) const { return Flag(app_->get_option(name)); }

DescribedCommand CommandLine::described() const { return described_command(*app_); }

}  // namespace stepcast::cli
