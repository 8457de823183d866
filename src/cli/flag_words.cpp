// SPDX-License-Identifier: Apache-2.0
#include "cli/flag_words.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <regex>
#include <sstream>
#include <string_view>
#include <vector>

#include "cli/key_values.h"
#include "core/data_name.h"
#include "core/limits.h"

namespace stepcast::cli {
namespace {

// "10" where the library says "10.000000".
std::string short_number(const std::string& text) {
  double value = 0;
  std::istringstream stream(text);
  stream >> value;
  return fmt::format("{}", value);
}

// Flags of trainers and launchers, as their users type them, spelled plainly.
struct OtherFlag {
  std::string_view flag;
  std::string_view ours;
};
constexpr std::array kOtherFlags = {
    OtherFlag{"batch", "--global-batch N, sequences per step (--micro-batch N: of a rank at once)"},
    OtherFlag{"batchsize", "--global-batch N, sequences per step (--micro-batch N: of a rank)"},
    OtherFlag{"globalbatchsize", "--global-batch N"},
    OtherFlag{"gbs", "--global-batch N"},
    OtherFlag{"mbs", "--micro-batch N"},
    OtherFlag{"mode", "--set training.mode=lora, or qlora"},
    OtherFlag{"lora", "--set training.mode=lora"},
    OtherFlag{"qlora", "--set training.mode=qlora"},
    OtherFlag{"lorarank", "--set training.mode=lora --set training.lora_rank=N"},
    OtherFlag{"spot", "--set run.rental=spot"},
    OtherFlag{"microbatchsize", "--micro-batch N"},
    OtherFlag{"dtype", "--precision NAME"},
    OtherFlag{"bf16", "--precision bf16"},
    OtherFlag{"fp16", "--precision fp16"},
    OtherFlag{"fp8", "--precision fp8"},
    OtherFlag{"seqlen", "--seq N"},
    OtherFlag{"seqlength", "--seq N"},
    OtherFlag{"sequencelength", "--seq N"},
    OtherFlag{"contextlength", "--seq N"},
    OtherFlag{"gpu", "--cluster NAME; a GPU's name is a node of it"},
    OtherFlag{"numgpus", "--gpus N"},
    OtherFlag{"worldsize", "--gpus N"},
    OtherFlag{"numnodes", "--nodes N"},
    OtherFlag{"nnodes", "--nodes N"},
    OtherFlag{"tensormodelparallelsize", "--tp N"},
    OtherFlag{"tensorparallel", "--tp N"},
    OtherFlag{"pipelinemodelparallelsize", "--pp N"},
    OtherFlag{"pipelineparallel", "--pp N"},
    OtherFlag{"contextparallelsize", "--cp N"},
    OtherFlag{"expertmodelparallelsize", "--ep N"},
};

}  // namespace

std::string flag_of_others(const std::string& flag) {
  const std::string plain = plain_name(flag);
  const auto found = std::ranges::find(kOtherFlags, plain, &OtherFlag::flag);
  return found == kOtherFlags.end() ? "" : fmt::format("give {}", found->ours);
}

std::string command_words(const CLI::App& reached) {
  const CLI::App* above = reached.get_parent();
  return above == nullptr ? reached.get_name() : command_words(*above) + " " + reached.get_name();
}

Error error_of(const CLI::ParseError& error, const CLI::App& reached) {
  const std::string said = error.what();
  const std::string see = fmt::format("see {} --help", command_words(reached));
  const auto bad = [](const std::string& flag, std::string message, std::string hint) {
    return Error{ErrorCode::kBadValue, std::move(message), "", flag, std::move(hint)};
  };
  // Regular expressions go one call deeper for each letter. A sentence is long where a word is.
  if (said.size() > kLongestErrorPart) return bad("", said, see);
  // The library keeps the parts of its sentences nowhere but in the sentences. What a user wrote
  // may have line ends, which a dot does not match.
  using std::regex;
  std::smatch part;
  if (std::regex_match(said, part, regex("(\\S+): At Most 1 required but received (\\d+)"))) {
    return bad(part[1], fmt::format("is given {} times", part[2].str()), "give it once");
  }
  if (std::regex_match(said, part, regex("(\\S+): \\d+ required (.*) missing"))) {
    return bad(part[1], "has no value", fmt::format("{} {}", part[1].str(), part[2].str()));
  }
  if (std::regex_match(said, part, regex("(\\S+): Value ([^]*) not in range (\\S+) to (\\S+)"))) {
    return bad(part[1], fmt::format("{} is out of range", part[2].str()),
               fmt::format("{} to {}", short_number(part[3]), short_number(part[4])));
  }
  if (std::regex_match(said, part, regex("([^\\s:]+): ([^]*) not in \\{(.*)\\}"))) {
    const std::vector<std::string> known = split_values(part[3]);
    const std::string near = did_you_mean(part[2].str(), known);
    return bad(part[1], fmt::format("'{}' is not accepted", part[2].str()),
               "one of " + one_of(known) + (near.empty() ? "" : "; " + near));
  }
  if (std::regex_match(said, part, regex("(\\S+): No text"))) {
    const CLI::Option* option = reached.get_option_no_throw(part[1]);
    return bad(part[1], "has no value",
               option == nullptr ? see : part[1].str() + " " + option->get_type_name());
  }
  if (std::regex_match(said, part, regex("(\\S+): No number: ([^]*)"))) {
    return bad(part[1], fmt::format("'{}' is not a number", part[2].str()), see);
  }
  if (std::regex_match(said, part, regex("Could not convert: (\\S+) = ([^]*)"))) {
    return bad(part[1], fmt::format("'{}' is not a number", part[2].str()), see);
  }
  if (std::regex_match(said, part, regex("(\\S+): Failed parsing number \\(([^]*)\\)")) ||
      std::regex_match(said, part, regex("(\\S+): Number less or equal to 0: ([^]*)"))) {
    return bad(part[1], fmt::format("'{}' is not a positive number", part[2].str()), see);
  }
  if (std::regex_match(said, part, regex("(\\S+) is required"))) {
    const CLI::Option* option = reached.get_option_no_throw(part[1]);
    return {ErrorCode::kMissingKey, "is required and missing", "", part[1],
            option == nullptr ? see : option->get_description()};
  }
  if (std::regex_match(said, part, regex("(\\S+) excludes (\\S+)"))) {
    return bad(part[1], fmt::format("cannot stand beside {}", part[2].str()), "leave one out");
  }
  if (std::regex_match(said, part, regex("(\\S+) requires (\\S+)"))) {
    return bad(part[1], fmt::format("has no effect without {}", part[2].str()), see);
  }
  return bad("", said, see);
}

}  // namespace stepcast::cli
