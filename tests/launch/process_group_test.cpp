// SPDX-License-Identifier: Apache-2.0
#include "launch/process_group.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <optional>
#include <string>
#include <thread>

namespace stepcast {
namespace {

using std::chrono::milliseconds;

struct Heard {
  std::string output;
  std::string error;
  ProcessGroup::Sink sink() {
    return [this](ProcessGroup::Stream stream, std::string_view text) {
      (stream == ProcessGroup::Stream::kOutput ? output : error) += text;
    };
  }
};

ProcessCommand shell(const std::string& script) {
  return {"/bin/sh", {"-c", script}, {"PATH=/usr/bin:/bin", "GREETING=hello"}, "/"};
}

ProcessGroup start(const std::string& script) {
  auto group = ProcessGroup::start(shell(script));
  EXPECT_TRUE(group);
  return std::move(*group);
}

ProcessExit run(const std::string& script, Heard& heard) {
  ProcessGroup group = start(script);
  while (group.wait(milliseconds(60'000), -1, heard.sink())) continue;
  return group.kill(heard.sink());
}

bool exists(pid_t group) { return ::kill(-group, 0) == 0; }

TEST(ProcessGroup, TellsOutputErrorsAndExitCode) {
  Heard heard;
  const ProcessExit exit = run("echo $GREETING; pwd; cat; echo oh >&2; exit 3", heard);
  EXPECT_EQ(heard.output, "hello\n/\n");  // and nothing comes from standard input
  EXPECT_EQ(heard.error, "oh\n");
  EXPECT_FALSE(exit.by_signal);
  EXPECT_EQ(exit.value, 3);
}

TEST(ProcessGroup, TellsTheSignal) {
  Heard heard;
  const ProcessExit exit = run("kill -SEGV $$", heard);
  EXPECT_TRUE(exit.by_signal);
  EXPECT_EQ(exit.value, SIGSEGV);
}

TEST(ProcessGroup, LosesNothingOfALongOutput) {
  Heard heard;
  EXPECT_TRUE(run("head -c 3000000 /dev/zero", heard).ok());
  EXPECT_EQ(heard.output.size(), 3'000'000u);
}

TEST(ProcessGroup, ChildrenDoNotInheritIgnoredSignals) {
  const auto before = ::signal(SIGPIPE, SIG_IGN);
  Heard heard;
  const ProcessExit exit = run("kill -PIPE $$; exit 0", heard);
  ::signal(SIGPIPE, before);
  EXPECT_TRUE(exit.by_signal);
}

TEST(ProcessGroup, ThatCannotBeExecutedIsAnError) {
  for (const std::string program : {"/nowhere/program", "/etc/passwd", "/"}) {
    const auto group = ProcessGroup::start({program, {}, {}, ""});
    ASSERT_FALSE(group) << program;
    EXPECT_EQ(group.error().front().file, program);
  }
  EXPECT_FALSE(ProcessGroup::start({"/bin/true", {}, {}, "/nowhere"}));
}

TEST(ProcessGroup, IsAskedToEnd) {
  Heard heard;
  ProcessGroup group = start("trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 1; done");
  while (heard.output.empty()) group.wait(milliseconds(60'000), -1, heard.sink());
  group.terminate();
  while (group.wait(milliseconds(60'000), -1, heard.sink())) continue;
  EXPECT_EQ(group.kill(heard.sink()).value, 7);
  EXPECT_EQ(heard.output, "ready\nbye\n");
}

TEST(ProcessGroup, IsKilledWithAllItsChildren) {
  Heard heard;
  ProcessGroup group = start("trap '' TERM; sleep 3600 & sleep 3600 & echo ready; wait");
  while (heard.output.empty()) group.wait(milliseconds(60'000), -1, heard.sink());
  group.terminate();
  const pid_t id = group.id();
  const ProcessExit exit = group.kill(heard.sink());
  EXPECT_TRUE(exit.by_signal);
  // Its children are dead too; whoever inherited them has to reap them first.
  while (exists(id)) std::this_thread::sleep_for(milliseconds(5));
}

TEST(ProcessGroup, DoesNotOutliveItsObject) {
  pid_t id = 0;
  {
    ProcessGroup group = start("exec sleep 3600");
    id = group.id();
    EXPECT_TRUE(exists(id));
  }
  EXPECT_FALSE(exists(id));
}

TEST(ProcessGroup, LeavesNoChildBehindThatItsLeaderLeft) {
  Heard heard;
  pid_t id = 0;
  {
    ProcessGroup group = start("sleep 3600 & exit 0");
    id = group.id();
    while (group.wait(milliseconds(60'000), -1, heard.sink())) continue;
    EXPECT_TRUE(group.kill(heard.sink()).ok());
  }
  while (exists(id)) std::this_thread::sleep_for(milliseconds(5));
}

TEST(ProcessGroup, WakesForAnotherFile) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  ASSERT_EQ(::write(pipe[1], "", 1), 1);
  ProcessGroup group = start("sleep 3600");
  EXPECT_TRUE(group.wait(milliseconds(3'600'000), pipe[0], {}));  // else until ctest's time limit
  for (const int file : pipe) ::close(file);
}

TEST(ProcessGroup, HandsItsFilesToNobodyElse) {
  // A second child that held the first one's pipe would keep it open.
  const auto files_of_a_child = [] {
    Heard heard;
    run("ls /proc/self/fd | wc -l", heard);
    return heard.output;
  };
  const std::string alone = files_of_a_child();
  ProcessGroup other = start("sleep 3600");
  EXPECT_EQ(files_of_a_child(), alone);
}

}  // namespace
}  // namespace stepcast
