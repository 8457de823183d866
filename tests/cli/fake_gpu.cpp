// SPDX-License-Identifier: Apache-2.0
// Stands in for stepcast-gpu where there is no GPU: every kernel takes half of the peak of the
// scenario's device, or STEPCAST_FAKE_SPEED times that. STEPCAST_FAKE_DEVICE names the device. An
// all-reduce among the ranks of the job takes 20 us and 1 ms per MB.
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "calibrate/measurement_json.h"
#include "calibrate/needed_shapes.h"
#include "calibrate/operation_json.h"
#include "core/atomic_file.h"
#include "cost/attention_cost.h"
#include "cost/gemm_cost.h"
#include "launch/rank_report.h"

namespace {

using nlohmann::ordered_json;
using namespace stepcast;

std::string variable(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : otherwise;
}

double seconds_at_peak(const Operation& operation, const Accelerator& device) {
  if (const auto* gemm = std::get_if<Gemm>(&operation.work)) {
    return flops_of(*gemm) / matrix_peak(device, gemm->input).value();
  }
  if (const auto* attention = std::get_if<Attention>(&operation.work)) {
    return flops_of(*attention) / matrix_peak(device, attention->type).value();
  }
  return std::get<Elementwise>(operation.work).bytes / device.memory_bandwidth.value();
}

ordered_json collectives_of(std::int64_t ranks) {
  ordered_json points = ordered_json::array();
  for (std::int64_t bytes = 1 << 12; bytes <= 1 << 24; bytes *= 4) {
    Measurement measured;
    measured.median_s = measured.mean_s = measured.p10_s = measured.p90_s =
        20e-6 + 1e-9 * static_cast<double>(bytes);
    measured.n = 10;
    measured.stopped = Stop::kPrecise;
    points.push_back({{"bytes", bytes}, {"measurement", measurement_json(measured)}});
  }
  return ordered_json::array({{{"collective", "all_reduce"},
                               {"placement", std::vector<int>(static_cast<std::size_t>(ranks), 0)},
                               {"concurrent", 1},
                               {"points", points}}});
}

// A product takes a quarter longer beside an all-reduce.
ordered_json beside(std::int64_t ranks) {
  ordered_json out{
      {"copy_to_host", {{"product_slowdown", 1.01}, {"slowdown", 1.02}, {"bytes_per_s", 5.5e10}}}};
  if (ranks > 1) {
    out["all_reduce"] = {
        {"product_slowdown", 1.25}, {"slowdown", 1.1}, {"ranks", ranks}, {"bytes", 64 << 20}};
  }
  return out;
}

int own_rank() {
  return std::stoi(variable("OMPI_COMM_WORLD_RANK", variable("RANK", "0").c_str()));
}

Result<void> measure(JsonDocument& job) {
  const nlohmann::json& root = job.root().raw();
  const double fraction = 0.5 * std::stod(variable("STEPCAST_FAKE_SPEED", "1"));
  ordered_json operations = ordered_json::array();
  for (const auto& stated : root["scenarios"]) {
    const auto document = JsonDocument::from(stated, "job");
    const auto& data = root["data"];
    const auto scenario =
        read_scenario(*document, {data["models"], data["topologies"], data["profiles"]});
    if (!scenario) return failure(scenario.error());
    const NeededMeasurements kernels =
        needed(*scenario, lower(*scenario), RankGrid(scenario->layout));
    for (const NeededKernel& kernel : kernels.kernels) {
      Measurement measured;
      measured.median_s = measured.mean_s = measured.p10_s = measured.p90_s =
          seconds_at_peak(kernel.operation, scenario->cluster.spec.accelerator) / fraction;
      if (measured.median_s <= 0) continue;
      measured.n = 10;
      measured.stopped = Stop::kPrecise;
      operations.push_back({{"operation", operation_json(kernel.operation)},
                            {"measurement", measurement_json(measured)}});
    }
  }
  if (own_rank() != 0) return {};
  const std::int64_t gpus = root["gpus"];
  const std::string folder = root["results"];
  const ordered_json machine{{"device", variable("STEPCAST_FAKE_DEVICE", "NVIDIA H200")},
                             {"host", {{"launch_s", 0}, {"graph_launch_s", 0}}},
                             {"beside", beside(gpus)},
                             {"machine", {{"driver", "0.1"}}}};
  if (auto written = write_file_atomically(folder + "/gpu.json", machine.dump()); !written) {
    return written;
  }
  const ordered_json result{
      {"rank", 0},
      {"operations", operations},
      {"collectives", gpus > 1 ? collectives_of(gpus) : ordered_json::array()}};
  return write_file_atomically(folder + "/rank-0.json", result.dump());
}

}  // namespace

int main(int argc, char** argv) {
  // As mpirun numbers it; a rank of torchrun is its launcher's only one.
  RankReporter reporter(std::stoi(variable("OMPI_COMM_WORLD_RANK", "0")));
  reporter.started();
  const auto job = JsonDocument::load(argc > 1 ? argv[1] : "");
  const auto measured = job ? measure(**job) : Result<void>(failure(job.error()));
  if (!measured) {
    reporter.failed(RankFailure::kInput, to_string(measured.error()));
    return 1;
  }
  reporter.finished();
  return 0;
}
