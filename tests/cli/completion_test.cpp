// SPDX-License-Identifier: Apache-2.0
// Completions of shells and the manual page follow from the flags of the commands.
#include <regex>
#include <set>

#include "cli/program.h"
#include "places.h"

namespace stepcast::testing {
namespace {

bool is_there(const std::string& program) {
  return std::system(("command -v " + program + " >/dev/null").c_str()) == 0;
}

// The lines that a shell prints for `text`, with the program first in PATH.
Outcome shell(const std::string& program, const std::string& text) {
  const Folder folder;
  const std::string folder_of_program = program_folder();
  write_file(folder / "script", "PATH='" + folder_of_program + "':$PATH\n" + text);
  return run_program(program, {folder / "script"});
}

std::set<std::string> flags_in(const std::string& text) {
  static const std::regex flag("(?:^|[ ,])(--[a-z][a-z-]*)");
  std::set<std::string> out;
  for (auto found = std::sregex_iterator(text.begin(), text.end(), flag),
            end = std::sregex_iterator();
       found != end; ++found) {
    out.insert((*found)[1]);
  }
  return out;
}

// The words that bash offers for the last word of a line.
std::vector<std::string> offers(const std::vector<std::string>& line) {
  std::string script = "source <(stepcast completion bash)\nCOMP_WORDS=(";
  for (const std::string& word : line) script += " '" + word + "'";
  script += ")\nCOMP_CWORD=" + std::to_string(line.size() - 1) +
            "\n_stepcast\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n";
  std::istringstream lines(shell("bash", script).out);
  std::vector<std::string> out;
  for (std::string one; std::getline(lines, one);) {
    if (!one.empty()) out.push_back(one);
  }
  return out;
}

using Words = std::vector<std::string>;

TEST(Completion, OfBashOffersCommandsFlagsAndTheirValues) {
  EXPECT_EQ(offers({"stepcast", "pre"}), Words{"predict"});
  EXPECT_EQ(offers({"stepcast", "show", "mo"}), Words{"models"});
  EXPECT_EQ(offers({"stepcast", "predict", "--global-b"}), Words{"--global-batch"});
  EXPECT_EQ(offers({"stepcast", "predict", "--format", ""}), (Words{"table", "json", "csv", "md"}));
  EXPECT_EQ(offers({"stepcast", "predict", "--flops", "ca"}), Words{"causal"});
  EXPECT_EQ(offers({"stepcast", "predict", "--tp", ""}), Words{});
  EXPECT_EQ(offers({"stepcast", "show", "models", "--for"}), Words{"--format"});
}

TEST(Completion, OfBashOffersWhatShips) {
  EXPECT_EQ(offers({"stepcast", "predict", "--model", "llama-3.1-8"}), Words{"llama-3.1-8b"});
  EXPECT_EQ(offers({"stepcast", "plan", "--cluster", "dgx-h20"}), Words{"dgx-h200"});
}

TEST(Completion, KnowsEveryFlagOfEveryCommand) {
  const std::string bash = run({"completion", "bash"}).out, zsh = run({"completion", "zsh"}).out,
                    fish = run({"completion", "fish"}).out, man = run({"man"}).out;
  int commands = 0, flags = 0;
  for (const char* command : {"predict", "plan", "compare", "check", "calibrate", "validate",
                              "export", "import", "serve", "doctor"}) {
    ++commands;
    EXPECT_TRUE(has(man, std::string("stepcast ") + command)) << command;
    for (const std::string& flag : flags_in(run({command, "--help"}).out)) {
      ++flags;
      EXPECT_TRUE(has(bash, flag)) << command << " " << flag;
      EXPECT_TRUE(has(zsh, "'*" + flag + "[")) << command << " " << flag;
      EXPECT_TRUE(has(fish, "-l " + flag.substr(2) + " ")) << command << " " << flag;
      EXPECT_TRUE(has(man, std::regex_replace(flag, std::regex("-"), "\\-"))) << flag;
    }
  }
  EXPECT_EQ(commands, 10);
  EXPECT_GT(flags, 100);
}

TEST(Completion, IsReadByItsShell) {
  const Folder folder;
  int read = 0;
  for (const std::string name : {"bash", "zsh", "fish"}) {
    if (!is_there(name)) continue;
    write_file(folder / name, run({"completion", name}).out);
    const Outcome outcome = run_program(name, {"-n", folder / name});
    EXPECT_EQ(outcome.code, 0) << name << ": " << outcome.error;
    ++read;
  }
  EXPECT_GT(read, 0);
}

TEST(Completion, OfFishOffersCommandsFlagsAndNames) {
  if (!is_there("fish")) GTEST_SKIP() << "fish is not here";
  const auto offered = [](const std::string& line) {
    const std::string folder = program_folder();
    const Folder home;
    write_file(home / "script", "set PATH '" + folder +
                                    "' $PATH\nstepcast completion fish | source\ncomplete -C '" +
                                    line + "'\n");
    return run_program("fish", {"--no-config", home / "script"}).out;
  };
  EXPECT_TRUE(has(offered("stepcast pre"), "predict"));
  EXPECT_TRUE(has(offered("stepcast predict --global-b"), "--global-batch"));
  EXPECT_TRUE(has(offered("stepcast predict --model llama-3.1-8"), "llama-3.1-8b"));
}

TEST(ManualPage, IsReadByManWithoutAWarning) {
  if (!is_there("man")) GTEST_SKIP() << "man is not here";
  const Folder folder;
  write_file(folder / "stepcast.1", run({"man"}).out);
  const Outcome page = run_program("man", {"--warnings", "-l", folder / "stepcast.1"});
  EXPECT_EQ(page.code, 0);
  EXPECT_EQ(page.error, "");
  EXPECT_TRUE(has(page.out, "EXIT STATUS"));
}

}  // namespace
}  // namespace stepcast::testing
