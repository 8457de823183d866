// SPDX-License-Identifier: Apache-2.0
// All-reduce between MPI processes: algorithm and bus bandwidth as nccl-tests defines them (bus =
// algorithm * 2(n-1)/n: what a link of the ring carries).
//
//   mpirun -n 2 build/bench/bench_comm
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "comm/communicator.h"
#include "comm/mpi_communicator.h"

namespace stepcast {
namespace {

// The time of one all-reduce: the median over repetitions of the slowest rank's time.
double median_s(Communicator& comm, std::vector<float>& data, int repetitions) {
  std::vector<double> times_s;
  for (int i = 0; i < repetitions; ++i) {
    comm.barrier();
    const auto begin = std::chrono::steady_clock::now();
    comm.all_reduce(data);
    std::vector<float> seconds = {
        std::chrono::duration<float>(std::chrono::steady_clock::now() - begin).count()};
    comm.all_reduce(seconds, Reduction::kMaximum);
    times_s.push_back(static_cast<double>(seconds.front()));
  }
  std::nth_element(times_s.begin(), times_s.begin() + repetitions / 2, times_s.end());
  return times_s[static_cast<std::size_t>(repetitions) / 2];
}

void measure_all_reduce(MpiWorld& mpi) {
  const auto comm = mpi.world();
  if (comm->rank() == 0) {
    fmt::print("{:>10} {:>10} {:>12} {:>12}\n", "bytes", "us", "alg GB/s", "bus GB/s");
  }
  const double bus_factor = 2.0 * (comm->size() - 1) / comm->size();
  for (const std::int64_t kib : {1, 4, 16, 64, 256, 1024, 4096, 16384, 40960}) {
    const std::int64_t bytes = kib * 1024;
    std::vector<float> data(static_cast<std::size_t>(bytes / 4));
    const int repetitions = static_cast<int>(std::clamp<std::int64_t>(1'000'000 / kib, 21, 2001));
    median_s(*comm, data, 5);
    const double time_s = median_s(*comm, data, repetitions);
    if (comm->rank() != 0) continue;
    const double algorithm = static_cast<double>(bytes) / time_s * 1e-9;
    fmt::print("{:>10} {:>10.1f} {:>12.3f} {:>12.3f}\n", bytes, time_s * 1e6, algorithm,
               algorithm * bus_factor);
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace stepcast

int main() {
  try {
    stepcast::MpiWorld mpi;
    stepcast::measure_all_reduce(mpi);
    return 0;
  } catch (const stepcast::CommunicationError& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
