// SPDX-License-Identifier: Apache-2.0
#include "calibrate/measure/busy_core.h"

#include "kernels/cpu/gemm.h"

namespace stepcast {
namespace {

// Matrices that fit into a core's caches together, as the blocks of larger products do; long enough
// to be counted at no cost, short beside a transfer.
constexpr std::int64_t kSide = 192;

}  // namespace

BusyCore::BusyCore() : a_(kSide * kSide, 1e-3F), b_(kSide * kSide, 1e-3F), c_(kSide * kSide, 0) {}

void BusyCore::run() {
  cpu::gemm<float>(kSide, kSide, kSide, {a_.data(), kSide}, {b_.data(), kSide}, {c_.data(), kSide},
                   false);
  ++count_;
}

void BusyCore::measure_alone(double seconds) {
  begin();
  const double core = clock_.accounting().thread_cpu_s;
  double passed = 0;
  do {
    run();
    passed = clock_.now_s() - begin_s_;
  } while (passed < seconds);
  each_s_ = passed / static_cast<double>(count_);
  core_part_ = (clock_.accounting().thread_cpu_s - core) / passed;
}

void BusyCore::begin() {
  count_ = 0;
  begin_s_ = clock_.now_s();
}

double BusyCore::lost_s() {
  const double passed = clock_.now_s() - begin_s_;
  return (passed - static_cast<double>(count_) * each_s_) * core_part_;
}

}  // namespace stepcast
