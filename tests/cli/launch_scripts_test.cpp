// SPDX-License-Identifier: Apache-2.0
// Scripts with conditions, functions and loops: what the import reads of each, against what bash
// passes to the program that it launches. In place of that program stands one that keeps its words.
#include <sys/stat.h>

#include <filesystem>

#include "core/each.h"
#include "launch_scripts.h"
#include "program.h"

namespace stepcast::testing {
namespace {

namespace fs = std::filesystem;

constexpr const char* kBase =
    "BASE=\"--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 "
    "--max-position-embeddings 4096 --micro-batch-size 1 --global-batch-size 64 --vocab-size "
    "32000\"\n";

class LaunchScripts : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directory(folder_ / "bin");
    for (const char* launcher : {"torchrun", "python"}) {
      const std::string file = folder_ / "bin/" + launcher;
      write_file(file, std::string("#!/bin/sh\n{ echo '") + launcher +
                           "'; for word in \"$@\"; do echo \"'$word'\"; done; } > '" +
                           (folder_ / "words") + "'\n");
      ASSERT_EQ(chmod(file.c_str(), 0755), 0);
    }
  }
  // A script of one command: that which bash launched last.
  std::string launched_by_bash(const std::string& script) const {
    fs::remove(folder_ / "words");
    const std::string command = "env -i PATH='" + (folder_ / "bin") + "':/usr/bin:/bin bash '" +
                                script + "' > /dev/null 2>&1 < /dev/null";
    EXPECT_EQ(std::system(command.c_str()), 0);
    std::string out;
    for (const char c : read_file(folder_ / "words")) out += c == '\n' ? ' ' : c;
    return out + "\n";
  }
  Outcome import_of(const std::string& script) const {
    return run({"import", script, "--from", "megatron", "--cluster", "dgx-h100"});
  }

  Folder folder_;
};

TEST_F(LaunchScripts, AreReadAsBashRunsThemOrWhatHangsIsNamed) {
  AtLeast scripts(30);
  for (const LaunchScript& one : each_of(launch_scripts())) {
    SCOPED_TRACE(one.name);
    const std::string file = folder_ / "launch.sh", flat = folder_ / "flat.sh";
    write_file(file, std::string(kBase) + one.text);
    write_file(flat, launched_by_bash(file));
    const Outcome read = import_of(file), passed = import_of(flat);
    ASSERT_EQ(read.code, 0) << read.error;
    ASSERT_EQ(passed.code, 0) << passed.error << read_file(flat);
    ++scripts;
    if (std::string(one.hangs).empty()) {
      EXPECT_EQ(read.out, passed.out);
      EXPECT_FALSE(has(read.error, "not decided")) << read.error;
      continue;
    }
    EXPECT_TRUE(has(read.error, "not decided")) << read.error;
    EXPECT_TRUE(has(read.error, one.hangs)) << read.error;
  }
}

TEST_F(LaunchScripts, AVariableDecides) {
  const std::string file = folder_ / "launch.sh";
  write_file(file, std::string(kBase) +
                       "if [[ $PR == fp8 ]]; then X='--fp8-format hybrid'; fi\n"
                       "python pretrain_gpt.py $BASE --bf16 $X\n");
  const auto imported = [&](const char* precision) {
    return run({"import", file, "--cluster", "dgx-h100", "--variable", precision});
  };
  const Outcome wide = imported("PR=bf16"), narrow = imported("PR=fp8");
  EXPECT_EQ(wide.json()["training"]["precision"], "bf16");
  EXPECT_EQ(narrow.json()["training"]["precision"], "fp8");
  EXPECT_FALSE(has(wide.error + narrow.error, "not decided"));
  EXPECT_TRUE(has(import_of(file).error, "settings that hang on it: --fp8-format hybrid"));
}

}  // namespace
}  // namespace stepcast::testing
