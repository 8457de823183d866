// SPDX-License-Identifier: Apache-2.0
// Every benchmark says about itself, beside its times, how and with what it was compiled.
#pragma once

#include <benchmark/benchmark.h>

namespace stepcast {

inline int run_benchmarks(int argc, char** argv) {
  benchmark::AddCustomContext("stepcast_build_type", STEPCAST_BUILD_TYPE);
  benchmark::AddCustomContext("stepcast_compiler", STEPCAST_COMPILER);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}

}  // namespace stepcast
