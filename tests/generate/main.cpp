// SPDX-License-Identifier: Apache-2.0
// Hunts for scenarios that violate a property (README.md). What it finds it shrinks and prints as
// the command that shows it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <set>

#include "generate/hunt.h"
#include "generate/shrink.h"
#include "layout/keys.h"

namespace stepcast::generate {
namespace {

struct Flags {
  HuntOptions hunt;
  std::vector<std::string> names;
  std::string folder = std::filesystem::temp_directory_path() / "stepcast-generated";
  std::size_t most_shrunk = 3;  // of each property
  bool list = false;
  bool shares = false;
  bool print = false;
};

int list_properties() {
  for (const Property& property : properties()) {
    fmt::print("{:34} {} (one in {})\n", property.name, property.says, property.every);
  }
  return 0;
}

// Properties by name, or all of them.
bool choose_properties(Flags& flags) {
  for (const std::string& name : flags.names) {
    const Property* property = property_named(name);
    if (property == nullptr) {
      fmt::print(stderr, "error: there is no property '{}' (--list names them)\n", name);
      return false;
    }
    flags.hunt.properties.push_back(property);
  }
  if (flags.names.empty()) {
    for (const Property& property : properties()) flags.hunt.properties.push_back(&property);
  }
  return true;
}

// How many of the scenarios have each key and each choice, the rarest first.
void print_shares(const HuntResult& result) {
  std::vector<std::pair<std::uint64_t, std::string>> rows;
  const auto add = [&](const std::string& name, const auto& counts) {
    const auto found = counts.find(name);
    rows.emplace_back(found == counts.end() ? 0 : found->second, name);
  };
  for (const Key* key : keys()) add(key->path, result.keys);
  for (const std::string& choice : all_choices()) add(choice, result.choices);
  std::ranges::sort(rows);
  fmt::print("\n{:42} {:>8}\n", "key or choice", "drawn");
  for (const auto& [count, name] : rows) {
    fmt::print("{:42} {:6.2f} %\n", name,
               100.0 * static_cast<double>(count) / static_cast<double>(result.scenarios));
  }
}

void print_violations(const Flags& flags, const HuntResult& result) {
  std::map<std::string, std::size_t> shown;
  for (const Violation& found : result.violations) {
    const std::string& name = found.property->name;
    fmt::print("\n{} is violated by --seed {} --from {} --count 1: {}\n", name, found.scenario.seed,
               found.scenario.index, found.verdict.what);
    if (++shown[name] > flags.most_shrunk) continue;
    const LegalScenario smallest = shrunk(found.scenario, *found.property);
    Case c(smallest);
    const Verdict verdict = ask(*found.property, c);
    fmt::print("  {}\n  {}\n", verdict.what,
               command_line(smallest, verdict.flags, flags.folder,
                            fmt::format("{}-{}-{}", name, smallest.seed, smallest.index)));
    std::fflush(stdout);
  }
}

int run(Flags& flags) {
  if (flags.list) return list_properties();
  if (flags.print) {
    for (std::uint64_t i = 0; i < flags.hunt.count; ++i) {
      fmt::print("{}\n", draw_scenario(flags.hunt.seed, flags.hunt.from + i).text);
    }
    return 0;
  }
  if (!choose_properties(flags)) return 2;
  flags.hunt.progress = [](std::uint64_t done) {
    if (done % 1000 == 0) fmt::print(stderr, "{} scenarios\n", done);
  };
  const HuntResult result = hunt(flags.hunt);
  fmt::print("{:34} {:>8} {:>8} {:>8} {:>8} {:>9}\n", "property", "asked", "applies", "excepted",
             "violated", "seconds");
  for (const Property* property : flags.hunt.properties) {
    const auto found = result.tallies.find(property->name);
    const Tally tally = found == result.tallies.end() ? Tally() : found->second;
    fmt::print("{:34} {:8} {:8} {:8} {:8} {:9.1f}\n", property->name, tally.asked, tally.applied,
               tally.excepted, tally.violated, tally.seconds);
  }
  fmt::print("{} scenarios, {:.1f} % of {} draws were legal; {} violations\n", result.scenarios,
             100.0 * static_cast<double>(result.scenarios) / static_cast<double>(result.attempts),
             result.attempts, result.violations.size());
  if (flags.shares) print_shares(result);
  print_violations(flags, result);
  return result.violations.empty() ? 0 : 1;
}

}  // namespace
}  // namespace stepcast::generate

int main(int argc, char** argv) {
  stepcast::generate::Flags flags;
  CLI::App app("Asks what must hold for every legal scenario of random ones.");
  app.add_option("--seed", flags.hunt.seed, "seed of the scenarios")->capture_default_str();
  app.add_option("--from", flags.hunt.from, "the first scenario")->capture_default_str();
  app.add_option("--count", flags.hunt.count, "scenarios")->capture_default_str();
  app.add_option("--threads", flags.hunt.threads, "scenarios at a time")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_option("--property", flags.names, "this property alone; may be repeated");
  app.add_option("--shrink", flags.most_shrunk, "violations of each property that are shrunk")
      ->capture_default_str();
  app.add_option("--folder", flags.folder, "where scenarios go that are long to say by flags")
      ->capture_default_str();
  app.add_flag("--list", flags.list, "print the properties");
  app.add_flag("--shares", flags.shares, "print how many scenarios have each key and choice");
  app.add_flag("--print", flags.print, "print the scenarios and ask nothing of them");
  CLI11_PARSE(app, argc, argv);
  return stepcast::generate::run(flags);
}
