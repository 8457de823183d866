// SPDX-License-Identifier: Apache-2.0
// Stands in for stepcast-gpu where there is no GPU: every kernel takes half of the peak of the
// scenario's device, or STEPCAST_FAKE_SPEED times that; attention is cuDNN's, and by own kernels it
// takes four times as long. STEPCAST_FAKE_DEVICE names the device, of
// which there are STEPCAST_FAKE_GPUS. An all-reduce among the ranks of the job takes 20 us and 1 ms
// per MB. A run computes nothing: every instruction takes 1 ms and every step half a second.
// STEPCAST_FAKE names what goes wrong.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "calibrate/cpu_measurements.h"
#include "calibrate/gpu_run.h"
#include "calibrate/protocol/needed_shapes.h"
#include "calibrate/protocol/operation_json.h"
#include "calibrate/protocol/protocol.h"
#include "core/atomic_file.h"
#include "core/json_tree.h"
#include "core/text/escape.h"
#include "core/write_rows.h"
#include "cost/attention_cost.h"
#include "cost/gemm_cost.h"
#include "launch/rank_report.h"
#include "layout/read_scenario.h"
#include "layout/scenario.h"
#include "operation/signature.h"
#include "program/program.h"

namespace {

using namespace stepcast;

constexpr double kOwnAttention = 4;  // times what cuDNN's takes

std::string variable(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : otherwise;
}

std::string device() { return variable("STEPCAST_FAKE_DEVICE", "NVIDIA H200"); }

double seconds_at_peak(const Operation& operation, const Accelerator& device) {
  if (const auto gemm = product_of(operation.work)) {
    return flops_of(*gemm) / matrix_peak(device, gemm->input).value();
  }
  if (const auto* attention = std::get_if<Attention>(&operation.work)) {
    return flops_of(*attention) / matrix_peak(device, attention->type).value();
  }
  if (const auto* grouped = std::get_if<GroupedGemm>(&operation.work)) {
    return flops_of(*grouped) / matrix_peak(device, grouped->input).value();
  }
  return memory_bound(operation.work)->bytes / device.memory_bandwidth.value();
}

Json collectives_of(std::int64_t ranks) {
  Json points = Json::array();
  for (std::int64_t bytes = 1 << 12; bytes <= 1 << 24; bytes *= 4) {
    Measurement measured;
    measured.median_s = measured.mean_s = measured.p10_s = measured.p90_s =
        20e-6 + 1e-9 * static_cast<double>(bytes);
    measured.n = 10;
    measured.stopped = Stop::kPrecise;
    points.push_back({{"bytes", bytes}, {"measurement", measurement_json(measured)}});
  }
  return Json::array({{{"collective", "all_reduce"},
                       {"placement", std::vector<int>(static_cast<std::size_t>(ranks), 0)},
                       {"concurrent", 1},
                       {"points", points}}});
}

// A product takes a quarter longer beside an all-reduce.
GpuRun run_of(std::int64_t ranks) {
  GpuRun out;
  out.device = device();
  out.machine["driver"] = "0.1";
  out.beside.copies.to_host = GpuRun::Beside{1.01, 1.02, 5.5e10};
  if (ranks > 1) out.beside.all_reduce = GpuRun::Beside{1.25, 1.1, std::nullopt, ranks, 64 << 20};
  return out;
}

int own_rank() {
  return std::stoi(variable("OMPI_COMM_WORLD_RANK", "0"));  // as mpirun numbers it
}

DataFolders folders_of(const SortedJson& data) {
  return {data["models"].get_text(), data["topologies"].get_text(), data["profiles"].get_text()};
}

Result<void> measure(JsonDocument& job) {
  const SortedJson& root = job.root().raw();
  const double fraction = 0.5 * std::stod(variable("STEPCAST_FAKE_SPEED", "1"));
  Json operations = Json::array();
  for (const auto& stated : root["scenarios"]) {
    const auto document = JsonDocument::from(stated, "job");
    const auto& data = root["data"];
    const auto scenario = read_scenario(*document, folders_of(data));
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
      if (!std::holds_alternative<Attention>(kernel.operation.work)) continue;
      measured.median_s *= kOwnAttention;
      operations.back()["kernel"] = "cudnn";
      operations.back()["other"] = json_of(OtherKernel{"stepcast-own", measured, {}});
    }
  }
  if (own_rank() != 0) return {};
  const auto gpus = root["gpus"].get<std::int64_t>();
  const std::string folder = root["results"].get_text();
  const std::string about_gpu = gpu_run_text(run_of(gpus));
  if (auto written = write_file_atomically(folder + "/gpu.json", about_gpu); !written) {
    return written;
  }
  const Json result{{"rank", 0},
                    {"operations", operations},
                    {"collectives", gpus > 1 ? collectives_of(gpus) : Json::array()}};
  return write_file_atomically(folder + "/rank-0.json", json_text(result));
}

Result<void> list(JsonDocument& job) {
  const int count = std::stoi(variable("STEPCAST_FAKE_GPUS", "1"));
  const Json out{{"devices", std::vector<std::string>(static_cast<std::size_t>(count), device())}};
  const std::string folder = job.root().raw()["results"].get_text();
  return write_file_atomically(folder + "/devices.json", json_text(out));
}

Json steps_of(const Role& role, int steps) {
  Json out = Json::array();
  for (int step = 0; step < steps; ++step) {
    const double begin = 1000 + 0.5 * step;
    Json spans = Json::array();
    double now = begin;
    for (std::size_t i = 0; i < role.instructions.size(); ++i, now += 1e-3) {
      spans.push_back({now, now + 1e-3});
    }
    out.push_back({{"begin_s", begin}, {"end_s", now}, {"loss_sum", 1.0}, {"spans", spans}});
  }
  return out;
}

// Writes the result of rank `rank` of the layout, which runs alone or not.
Result<void> train(JsonDocument& job, std::int32_t rank, const std::string& fate) {
  const SortedJson& root = job.root().raw();
  const auto document = JsonDocument::from(root["scenario"], "job");
  const auto& data = root["data"];
  const auto scenario = read_scenario(*document, folders_of(data));
  if (!scenario) return failure(scenario.error());
  const GridPoint point = RankGrid(scenario->layout).point(RankId(rank));
  const Program program = lower(*scenario);
  Json out{{"rank", rank},
           {"host", "fake"},
           {"stage", point.pp},
           {"tp", point.tp},
           {"dp", point.dp},
           {"steps",
            steps_of(program.roles[static_cast<std::size_t>(point.pp)], root["steps"].get<int>())},
           {"operations", Json::array()},
           {"peak_memory_bytes", 1 << 20},
           {"memory_bytes", {{"parameters", 1 << 20}}},
           {"pool_used_bytes", 2 << 20},
           {"device_used_bytes", 3 << 20}};
  for (const char* signature : {"gemm", "collective all_reduce"}) {
    out["operations"].push_back({{"signature", signature},
                                 {"name", signature},
                                 {"phase", "forward"},
                                 {"calls_per_step", 8},
                                 {"median_s", 1e-3},
                                 {"total_s_per_step", 8e-3}});
    if (is_signature_of_collective(signature)) {
      out["operations"].back().update({{"group", "tp"}, {"exposed_s_per_step", 8e-3}});
    }
  }
  if (root["check_numerics"].get<bool>()) {
    out["numerics"] = {{"loss_relative_error", fate == "inexact" ? 2e-2 : 5e-3}};
    if (scenario->training.precision == DataType::kFp32) {
      out["numerics"] = {{"loss_relative_error", 1e-6}, {"parameter_relative_error", 1e-6}};
    }
  }
  const std::string folder = root["results"].get_text();
  return write_file_atomically(folder + "/rank-" + std::to_string(rank) + ".json", json_text(out));
}

// Adds a line, as a process that tries a point does, and returns how many have.
int note_in_journal(const std::string& folder) {
  const std::string file = folder + "/rank-0.jsonl";
  std::ofstream(file, std::ios::app) << "a point\n";
  std::ifstream lines(file);
  return static_cast<int>(std::count(std::istreambuf_iterator<char>(lines), {}, '\n'));
}

Result<void> work(JsonDocument& job, std::int32_t rank) {
  const SortedJson& root = job.root().raw();
  const std::string task = root["task"].get_text(), fate = variable("STEPCAST_FAKE", "");
  if (fate == "no driver") {
    return failure({ErrorCode::kNotSupported, "no NVIDIA driver is loaded", "", "", ""});
  }
  if (task == "devices") return list(job);
  if (task == "calibrate" && fate == "break" && note_in_journal(root["journal"].get_text()) <= 2) {
    return failure({ErrorCode::kIo, "gemm has broken the GPU for this process", "", "", ""});
  }
  if (task == "calibrate") return measure(job);
  if (fate == "die") std::abort();
  return train(job, root.value("rank", rank), fate);
}

}  // namespace

int main(int argc, char** argv) {
  const std::int32_t rank = own_rank();
  RankReporter reporter(rank);
  reporter.started();
  const auto job = JsonDocument::load(argc > 1 ? argv[1] : "");
  if (variable("STEPCAST_FAKE", "") == "numerics" && job && (*job)->root().raw()["task"] == "run") {
    reporter.failed(RankFailure::kNumerics, "losses differ from one rank's by 0.02");
    return 1;
  }
  const auto done = job ? work(**job, rank) : Result<void>(failure(job.error()));
  if (!done) {
    const bool is_input = done.error().front().code != ErrorCode::kIo;
    reporter.failed(is_input ? RankFailure::kInput : RankFailure::kInternal,
                    is_input ? to_string(done.error()) : done.error().front().message);
    return 1;
  }
  reporter.finished();
  return 0;
}
