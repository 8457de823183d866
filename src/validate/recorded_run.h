// SPDX-License-Identifier: Apache-2.0
// Keeps of a run what a later one is held against: how long its step took, how sure that is, and
// what work it was.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "validate/case_figures.h"

namespace stepcast {

struct Rows;  // core/rows.h
struct Scenario;

// Step times of two runs tell which is slower where these are the same.
struct RunWork {
  std::int64_t parameters = 0;
  std::int64_t global_batch = 0;
  std::int64_t sequence_length = 0;
  std::int64_t gpus = 0;

  bool operator==(const RunWork& other) const = default;
  static Rows fields();
};

RunWork work_of(const Scenario& scenario);

// "global_batch is 256, was 128"; empty where the work is the same.
std::string other_work(const RunWork& was, const RunWork& is);

// A run before the one that a case of a suite records.
struct EarlierRun {
  std::string source;
  CaseFigures measured;
  std::optional<RunWork> work;

  static Rows fields();
};

// The standard error of the median step time, relative to it, from the quartiles of the steps; 0
// where these are not known.
double error_of_median(const CaseFigures& measured);

}  // namespace stepcast
