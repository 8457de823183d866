// SPDX-License-Identifier: Apache-2.0
// Holds what others measured on a device, read from their files: the input of a profile
// (calibrate/import/imported_profile.h).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/fit/fit_attention.h"
#include "calibrate/fit/fit_collectives.h"
#include "calibrate/fit/fit_grouped_products.h"
#include "calibrate/fit/fit_memory_bound.h"
#include "calibrate/gpu_kernel_kind.h"
#include "core/result.h"
#include "cost/profile.h"

namespace stepcast {

// Samples of one collective in one group of GPUs; a size may appear more than once.
struct ImportedCollective {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  std::int64_t ranks = 0;
  std::int64_t nodes = 1;
  Launch launch = Launch::kOwn;
  bool with_waits = false;  // for members that came late: only the fastest sample tells the time
  std::vector<CollectiveSample> samples;
};

// Holds what is measured in place rather than read: the framework that owns the kernels, its host.
struct OwnRun {
  Framework framework = own_executor();
  std::string attention_kernel;  // the curve of what this framework runs
  HostFit host;
  // Time of a kernel without rest for seconds over its time in a sample.
  std::map<GpuKernelKind, double> sustained;
  std::optional<double> sms_per_channel;       // none: no collective was measured beside kernels
  std::optional<HostMemory> host_memory;
  std::map<std::string, std::string> machine;  // facts, by the profile's key
};

struct Imported {
  std::vector<GemmSample> gemms;  // 16-bit operands, fraction of the device's dense peak
  std::vector<GemmSample> gemms_fp8;
  std::vector<GemmTable> gemms_alone;  // of short runs, in fractions of the device's dense peak
  std::map<std::string, std::vector<AttentionMeasurement>> attention;         // by kernel
  std::map<std::string, std::vector<AttentionMeasurement>> attention_unseen;  // by no fit
  std::vector<TimedKernel> elementwise;
  std::vector<TimedGroupedGemm> grouped;
  std::vector<ImportedCollective> collectives;
  std::optional<OwnRun> own_run;                 // none: of an unknown program
  std::vector<std::string> sources;              // as the files state them, else the files' names
  std::map<std::string, std::int64_t> left_out;  // rows or kernels, by reason
  std::vector<std::string> remarks;              // what the reader should know of what was taken

  bool empty() const {
    return gemms.empty() && gemms_fp8.empty() && gemms_alone.empty() && attention.empty() &&
           elementwise.empty() && grouped.empty() && collectives.empty();
  }
};

// Reads nccl-tests tables, PyTorch traces and tables of kernels and collectives, told apart by what
// is in them (docs/formats/imports.md), for the devices of `cluster`. Nothing is taken from a file
// with an error; all errors of all files are listed.
Result<Imported> import_files(const std::vector<std::string>& files, const ClusterSpec& cluster);

// Names what the test of nccl-tests measures; none if no program has that operation.
std::optional<CollectiveKind> kind_of_nccl_test(std::string_view test);

// The readers of one text each; `file` is for errors.
Result<void> import_nccl_tests(const std::string& text, const std::string& file,
                               const ClusterSpec& cluster, Imported& out);
Result<void> import_trace(const std::string& text, const std::string& file,
                          const ClusterSpec& cluster, Imported& out);
Result<void> import_tables(const std::string& text, const std::string& file,
                           const ClusterSpec& cluster, Imported& out);

}  // namespace stepcast
