// SPDX-License-Identifier: Apache-2.0
// Holds what a trace of PyTorch's profiler (Kineto, Chrome's format) says of the work on GPUs: when
// each kernel ran, when the host launched it, what a collective moved, and where steps begin. It is
// read as a stream: of a file of 1 GB some tens of MB stay. Traces that `predict --trace` writes
// are read alike; there kernels have the names of operations, and phases.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "traces/product_operator.h"

namespace stepcast {

// A kernel that communicates says this. Fields that the trace lacks are empty, 0 or -1.
struct TraceMessage {
  std::string collective;  // "_allgather_base", "send"; of a forecast the operation's name
  std::string type;        // "BFloat16"
  std::int64_t elements_in = -1, elements_out = -1;
  std::int64_t group_size = -1;
  std::vector<std::int64_t> ranks;  // of the group
  std::int64_t bytes = -1;          // only where the trace states them
};

enum class TraceWorkKind : std::uint8_t { kKernel, kCopy, kFill };

struct TraceWork {
  static constexpr std::int32_t kNone = -1;
  TraceWorkKind kind = TraceWorkKind::kKernel;
  std::int32_t name = kNone;   // into Trace::names
  std::int32_t phase = kNone;  // likewise; only of a forecast
  std::int32_t device = 0;     // into Trace::devices
  std::int32_t stream = 0;     // of the device
  double begin_us = 0, end_us = 0;
  std::optional<double> launched_us;  // the host's call began
  double launch_end_us = 0;           // and ended
  std::int32_t message = kNone;       // into Trace::messages
  std::int32_t product = kNone;       // into Trace::products
  std::int32_t micro_batch = kNone;   // only of a forecast
};

// "ProfilerStep#7": on the host, where launches belong to it, or of a forecast's process.
struct TraceStep {
  std::int64_t number = 0;
  std::int64_t process = 0;
  double begin_us = 0, end_us = 0;
};

// The host stood still until the device had done something.
struct TraceWait {
  std::int32_t name = -1;  // "cudaStreamSynchronize"
  double begin_us = 0, end_us = 0;
};

struct Trace {
  std::string file;
  std::string device_name;            // "" where the trace does not say
  std::optional<std::int64_t> rank;   // by the trace, else by the file's name
  std::vector<std::int64_t> devices;  // processes with work on a GPU, ascending: of a forecast
                                      // ranks
  bool is_forecast = false;           // kernels have phases
  std::vector<std::string> names;
  std::vector<TraceWork> works;  // by begin
  std::vector<TraceMessage> messages;
  std::vector<ProductShape> products;
  std::vector<TraceStep> steps;  // by begin
  std::vector<TraceWait> waits;
  std::int64_t events = 0;  // of all kinds

  const std::string& name_of(std::int32_t name) const {
    return names[static_cast<std::size_t>(name)];
  }
};

// A file or a pipe, gzipped or not. Errors name the file and the event: a trace that was cut or is
// none, without kernels, or with times that no machine has.
Result<Trace> read_trace(const std::string& file);
// The trace that this text is; `file` is its name in errors.
Result<Trace> trace_of(std::string_view text, const std::string& file);

}  // namespace stepcast
