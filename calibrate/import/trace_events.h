// SPDX-License-Identifier: Apache-2.0
// Reads what a trace of PyTorch's profiler (Kineto, Chrome's format) says of operators, launches
// and kernels. Only these events of a large trace are kept.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/json_fwd.h"
#include "core/result.h"

namespace stepcast {

struct TraceOperator {
  std::int64_t event = 0;  // its place among those of the trace
  std::string name;        // "aten::mm"
  std::string thread;
  double begin_us = 0, end_us = 0;
  std::int64_t external_id = -1;
  std::int64_t sequence = -1;  // that a forward operator shares with its node of autograd
  std::int64_t parent = -1;    // the operator around it on its thread
  // One entry per input, empty for what is no tensor or no text.
  std::vector<std::vector<std::int64_t>> dims;
  std::vector<std::string> types, concrete;
};

struct TraceKernel {
  std::int64_t event = 0;
  std::string name;
  double seconds = 0;
  std::int64_t external_id = -1;
  std::int64_t correlation = -1;
  // For a kernel of NCCL:
  std::string collective, type;
  std::int64_t elements_in = 0, elements_out = 0, group_size = 0;
  std::vector<std::int64_t> ranks;  // of the group; empty where they are not listed
};

struct TraceLaunch {
  std::string thread;
  double time_us = 0;
};

class TraceEvents {
 public:
  std::string device;  // "" where the trace does not say
  std::vector<TraceOperator> operators;
  std::vector<TraceKernel> kernels;

  // The innermost operator that launched the kernel, or -1. By the correlation of its launch; some
  // backends give launch and kernel a common external id instead, others give the operator's.
  std::int64_t operator_of(const TraceKernel& kernel) const;

  // Kernels whose time is none are kept apart: an error of the trace.
  std::vector<TraceKernel> without_time;

  void add(const SortedJson& event);  // of any kind
  void link();                        // once, after the last one

 private:
  std::int64_t events_ = 0;  // so far
  std::int64_t innermost(const TraceLaunch& launch) const;

  std::map<std::int64_t, TraceLaunch> by_correlation_;
  std::map<std::int64_t, std::vector<TraceLaunch>> by_external_id_;
  std::map<std::int64_t, std::int64_t> operator_by_external_id_;
  std::map<std::string, std::vector<std::int64_t>> by_thread_;  // operators by their begin
};

Result<TraceEvents> read_trace_events(const std::string& text, const std::string& file);

}  // namespace stepcast
