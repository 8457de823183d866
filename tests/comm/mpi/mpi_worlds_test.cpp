// SPDX-License-Identifier: Apache-2.0
// The contract on the processes of an MPI job: started by mpirun, every process runs all tests and
// returns whether its own expectations held.
#include <exception>

#include "comm/mpi_communicator.h"
#include "comm/contract.h"

namespace stepcast {
namespace {

Communicator* all_processes = nullptr;
const MpiWorld* processes = nullptr;

const auto kWorlds = testing::Values(WorldUnderTest{
    .name = "processes",
    .as_each_rank = [](const std::function<void(Communicator&)>& body) { body(*all_processes); }});
std::string name_of(const testing::TestParamInfo<WorldUnderTest>& one) { return one.param.name; }

INSTANTIATE_TEST_SUITE_P(Mpi, GroupContract, kWorlds, name_of);
INSTANTIATE_TEST_SUITE_P(Mpi, CommunicatorContract, kWorlds, name_of);

TEST(MpiWorld, KnowsWhoSharesItsMachine) {
  // In this test every process of the job takes part.
  EXPECT_EQ(processes->rank(), all_processes->rank());
  EXPECT_EQ(processes->size(), all_processes->size());
  EXPECT_EQ(processes->local_rank(), processes->rank());
  EXPECT_EQ(processes->local_size(), processes->size());
  EXPECT_FALSE(processes->hostname().empty());
}

}  // namespace

// The number of ranks that mpirun was told to start must have come.
int run_tests(int argc, char** argv) {
  MpiWorld mpi;
  const auto communicator = mpi.world();
  all_processes = communicator.get();
  processes = &mpi;
  testing::InitGoogleTest(&argc, argv);
  if (argc != 2 || std::stoi(argv[1]) != mpi.size()) {
    throw std::runtime_error("usage: mpirun -n N test_comm_mpi N");
  }
  // One log is enough; what fails elsewhere is still printed.
  if (mpi.rank() != 0) {
    auto& listeners = testing::UnitTest::GetInstance()->listeners();
    auto* printer = listeners.Release(listeners.default_result_printer());
    class FailuresOnly : public testing::EmptyTestEventListener {
      void OnTestPartResult(const testing::TestPartResult& result) override {
        if (!result.failed()) return;
        fprintf(stderr, "rank %d: %s:%d: %s\n", all_processes->rank(), result.file_name(),
                result.line_number(), result.summary());
      }
    };
    delete printer;
    listeners.Append(new FailuresOnly);
  }
  return RUN_ALL_TESTS();
}

}  // namespace stepcast

int main(int argc, char** argv) {
  try {
    return stepcast::run_tests(argc, argv);
  } catch (const std::exception& error) {
    fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
