// SPDX-License-Identifier: Apache-2.0
#include "worker/gpu/calibrate_gpu_job.h"

#include <fmt/format.h>

#include <chrono>
#include <ctime>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "calibrate/journal.h"
#include "calibrate/machine_facts.h"
#include "calibrate/measurement_json.h"
#include "calibrate/needed_grid.h"
#include "calibrate/needed_shapes.h"
#include "calibrate/operation_json.h"
#include "core/atomic_file.h"
#include "kernels/cuda/cuda_error.h"
#include "operation/signature.h"
#include "worker/gpu/gpu_timer.h"
#include "worker/gpu/this_gpu.h"

namespace stepcast {
namespace {

using nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr double kPoint_s = 0.2;  // of a shape's samples

struct Wanted {
  NeededKernel kernel;
  Model model;
};

class CalibrateGpuJob {
 public:
  CalibrateGpuJob(const Job& job, RankReporter& report)
      : job_(job),
        report_(report),
        gpu_(this_gpu()),
        nvml_(gpu_.pci_bus_id),
        timer_(nvml_),
        context_{products_, gpu_.cache_bytes},
        journal_(open_journal()) {
    protocol_.budget_s = kPoint_s;
    protocol_.target_half_width = job.target_half_width;
    protocol_.warm_up_s = 0;
    protocol_.rejection.waiting = false;  // the host waits for the device on purpose
  }

  void run() {
    for (const Wanted& wanted : list()) {
      report_.progress("kernels", done_++, all_, wanted.kernel.operation.name);
      measure(wanted);
    }
    for (const auto& [why, count] : left_out_) report_.warning(fmt::format("{} {}", count, why));
    write("gpu.json", machine());
    write("rank-0.json", {{"rank", 0},
                          {"operations", std::move(operations_)},
                          {"collectives", ordered_json::array()}});
  }

 private:
  Journal open_journal() const {
    const std::string folder = job_.journal.empty() ? job_.results : job_.journal;
    auto journal = Journal::open(folder + "/rank-0.jsonl", to_json(gpu_));
    if (!journal) throw JobFailure(RankFailure::kInput, to_string(journal.error()));
    return std::move(*journal);
  }

  // What scenarios need first, then what lies around it.
  std::vector<Wanted> list() {
    std::vector<Wanted> out;
    std::set<std::string> known;
    const auto add = [&](const NeededMeasurements& kernels, const Model& model) {
      for (const NeededKernel& kernel : kernels.kernels) {
        if (known.insert(signature(kernel.operation)).second) out.push_back({kernel, model});
      }
    };
    std::vector<Wanted> around;
    NeededMeasurements all;
    Model first;
    for (const std::string& text : job_.scenarios) {
      const Scenario scenario = read_job_scenario(job_, text);
      const Program program = lower(scenario);
      const NeededMeasurements own = needed(scenario, program, RankGrid(scenario.layout));
      if (all.kernels.empty()) first = scenario.model;
      add(own, scenario.model);
      all.add(own);
    }
    needed_ = static_cast<std::int64_t>(out.size());
    if (job_.grid) add(grid(all), first);
    all_ = static_cast<std::int64_t>(out.size());
    return out;
  }

  bool is_over() const {
    const double spent = std::chrono::duration<double>(Clock::now() - begin_).count();
    return done_ > needed_ && spent > job_.budget_s;
  }

  void measure(const Wanted& wanted) {
    const Operation& operation = wanted.kernel.operation;
    const std::string key = signature(operation);
    if (journal_.find(key) == nullptr) {
      if (is_over()) {
        ++left_out_["shapes around the needed ones are left out: the budget is spent"];
        return;
      }
      if (!sample(operation, wanted.model, key)) return;
    }
    operations_.push_back({{"operation", operation_json(operation)},
                           {"measurement", measurement_json(journal_.find(key)->measurement)}});
  }

  // Into the journal, unless there is nothing to tell.
  bool sample(const Operation& operation, const Model& model, const std::string& key) {
    try {
      const GpuCall call = gpu_call(operation, model, context_);
      if (!call) {
        ++left_out_[fmt::format("shapes of {} have no kernel here", operation.name)];
        return false;
      }
      const auto measured = timer_.measure(call, protocol_);
      if (!measured) {
        report_.warning(fmt::format("{}: {}", key, to_string(measured.error())));
        return false;
      }
      append(journal_, {key, *measured, operation_json(operation).dump()});
      return true;
    } catch (const cuda::OutOfDeviceMemory&) {
      ++left_out_[fmt::format("shapes of {} do not fit into the GPU's memory", operation.name)];
      return false;
    }
  }

  ordered_json machine() {
    ordered_json facts = to_json(gpu_);
    for (const auto& [key, fact] : nvml_.facts()) facts[key] = fact;
    facts["date"] = utc_date(std::time(nullptr));
    return {
        {"device", gpu_.name},
        {"host", {{"launch_s", timer_.launch_s()}, {"graph_launch_s", timer_.graph_launch_s()}}},
        {"machine", std::move(facts)}};
  }

  void write(const char* name, const ordered_json& content) const {
    const std::string file = job_.results + "/" + name;
    if (const auto written = write_file_atomically(file, content.dump() + "\n"); !written) {
      throw JobFailure(RankFailure::kInput, to_string(written.error()));
    }
  }

  const Job& job_;
  RankReporter& report_;
  const Clock::time_point begin_ = Clock::now();
  ThisGpu gpu_;
  Nvml nvml_;
  GpuTimer timer_;
  cuda::MatrixProducts products_;
  GpuContext context_;
  Journal journal_;
  MeasurementProtocol protocol_;
  std::int64_t done_ = 0, needed_ = 0, all_ = 0;
  std::map<std::string, std::int64_t> left_out_;
  ordered_json operations_ = ordered_json::array();
};

}  // namespace

void calibrate_gpu_job(const Job& job, RankReporter& report) { CalibrateGpuJob(job, report).run(); }

}  // namespace stepcast
