// SPDX-License-Identifier: Apache-2.0
#include "launch/mpi_command.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "launch/scratch_folder.h"

namespace stepcast {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

// A folder with an mpirun that is never run.
class MpiCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = ScratchFolder::create(::testing::TempDir(), "command");
    ASSERT_TRUE(made);
    folder_ = std::make_unique<ScratchFolder>(std::move(*made));
    std::ofstream(folder_->file("mpirun")) << "#!/bin/sh\n";
    fs::permissions(folder_->file("mpirun"), fs::perms::owner_all);
    program_.program = "/bin/true";
    program_.ranks = 2;
    program_.inherited = {"PATH=/nowhere:" + folder_->path().string()};
  }

  ProcessCommand command(int cores = 2, bool root = false) const {
    const auto out = mpi_command(program_, cores, root);
    EXPECT_TRUE(out) << (out ? "" : to_string(out.error()));
    return out ? *out : ProcessCommand{};
  }

  std::unique_ptr<ScratchFolder> folder_;
  RankProgram program_;
};

bool contains(const Words& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

TEST_F(MpiCommand, BindsEachRankToACoreWhenThereAreEnough) {
  program_.arguments = {"job.json"};
  EXPECT_EQ(command(2).program, folder_->file("mpirun").string());
  EXPECT_EQ(command(2).arguments,
            (Words{"--tag-output", "--bind-to", "core", "-np", "2", "/bin/true", "job.json"}));
}

TEST_F(MpiCommand, SharesCoresWhenThereAreTooFew) {
  EXPECT_EQ(command(1).arguments, (Words{"--tag-output", "--oversubscribe", "--bind-to", "none",
                                         "-np", "2", "/bin/true"}));
}

// /proc is a file system on which nothing can be stored.
TEST_F(MpiCommand, RefusesATemporaryFolderWithoutRoomForOpenMpi) {
  program_.inherited.push_back("TMPDIR=/proc");
  const auto refused = mpi_command(program_, 2, false);
  ASSERT_FALSE(refused);
  EXPECT_EQ(to_string(refused.error().front()),
            "/proc: has room for 0 KiB, and Open MPI keeps 9216 there while ranks run (free some, "
            "or set TMPDIR to a folder with more)");
  program_.alone = true;  // without mpirun
  EXPECT_TRUE(mpi_command(program_, 2, false));
}

// mpirun cannot remove its folder when it is killed; the next run removes ours with all in it.
TEST_F(MpiCommand, KeepsOpenMpisFilesInTheFolderOfTheRunUnlessToldWhere) {
  const std::string ours = "OMPI_MCA_orte_tmpdir_base=" + folder_->path().string();
  EXPECT_FALSE(contains(command().environment, ours));
  program_.session_folder = folder_->path().string();
  EXPECT_TRUE(contains(command().environment, ours));
  program_.inherited.push_back("STEPCAST_MPIRUN_ARGS=--mca orte_tmpdir_base /var/tmp");
  EXPECT_FALSE(contains(command().environment, ours));
  program_.inherited.back() = "STEPCAST_MPIRUN_ARGS=--hostfile hosts";  // it is not there
  EXPECT_FALSE(contains(command().environment, ours));
  program_.inherited.back() = "OMPI_MCA_orte_local_tmpdir_base=/var/tmp";
  EXPECT_FALSE(contains(command().environment, ours));
}

TEST_F(MpiCommand, BindsNothingUnlessAsked) {
  program_.bind = false;
  EXPECT_EQ(command(2).arguments,
            (Words{"--tag-output", "--bind-to", "none", "-np", "2", "/bin/true"}));
}

TEST_F(MpiCommand, RunsAsRootOnlyWhenItIs) {
  EXPECT_FALSE(contains(command(2, false).arguments, "--allow-run-as-root"));
  EXPECT_TRUE(contains(command(2, true).arguments, "--allow-run-as-root"));
}

TEST_F(MpiCommand, LetsTheUsersOptionsWin) {
  program_.inherited.push_back("STEPCAST_MPIRUN_ARGS=--hostfile 'my hosts' -bind-to socket");
  EXPECT_EQ(command(2).arguments, (Words{"--tag-output", "--hostfile", "my hosts", "-bind-to",
                                         "socket", "-np", "2", "/bin/true"}));
}

TEST_F(MpiCommand, LetsTheUsersEnvironmentWin) {
  program_.inherited.push_back("OMPI_MCA_mpi_yield_when_idle=0");
  const Words environment = command().environment;
  EXPECT_TRUE(contains(environment, "OMPI_MCA_mpi_yield_when_idle=0"));
  EXPECT_FALSE(contains(environment, "OMPI_MCA_mpi_yield_when_idle=1"));
  EXPECT_TRUE(contains(environment, "OMPI_MCA_btl_base_warn_component_unused=0"));
}

TEST_F(MpiCommand, TakesAddedVariablesToAllMachines) {
  program_.inherited.push_back("OMP_NUM_THREADS=8");
  program_.added = {"OMP_NUM_THREADS=1"};
  const ProcessCommand made = command();
  EXPECT_TRUE(contains(made.environment, "OMP_NUM_THREADS=1"));
  EXPECT_FALSE(contains(made.environment, "OMP_NUM_THREADS=8"));
  const auto option = std::find(made.arguments.begin(), made.arguments.end(), "-x");
  ASSERT_NE(option, made.arguments.end());
  EXPECT_EQ(*(option + 1), "OMP_NUM_THREADS");
}

TEST_F(MpiCommand, FindsAProgramWhateverTheWorkingFolderIs) {
  program_.program = fs::relative(folder_->file("mpirun")).string();
  program_.working_folder = folder_->path().string();
  const Words arguments = command().arguments;
  EXPECT_TRUE(fs::path(arguments.back()).is_absolute());
  EXPECT_TRUE(contains(arguments, "--wdir"));
}

TEST_F(MpiCommand, WithoutMpirunNamesThePackage) {
  program_.inherited = {"PATH=/nowhere"};
  const auto made = mpi_command(program_, 2, false);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().front().code, ErrorCode::kNotFound);
  EXPECT_NE(to_string(made.error()).find("mpirun"), std::string::npos);
  EXPECT_NE(to_string(made.error()).find("apt install openmpi-bin"), std::string::npos);
}

TEST_F(MpiCommand, ListsAllThatIsWrong) {
  program_.program = "/nowhere/stepcast-rank";
  program_.ranks = 0;
  program_.working_folder = "/nowhere";
  const auto made = mpi_command(program_, 2, false);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().size(), 3u) << to_string(made.error());
}

TEST_F(MpiCommand, RejectsAnUnclosedQuote) {
  program_.inherited.push_back("STEPCAST_MPIRUN_ARGS=--hostfile 'mine");
  const auto made = mpi_command(program_, 2, false);
  ASSERT_FALSE(made);
  EXPECT_NE(to_string(made.error()).find("STEPCAST_MPIRUN_ARGS"), std::string::npos);
}

TEST(ShellWords, AreSeparatedAsByAShell) {
  const auto words = shell_words(R"(  a 'b c' "d \" e" f\ g '' h'i'"j" )", "");
  ASSERT_TRUE(words);
  EXPECT_EQ(*words, (Words{"a", "b c", "d \" e", "f g", "", "hij"}));
}

}  // namespace
}  // namespace stepcast
