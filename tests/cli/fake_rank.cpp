// SPDX-License-Identifier: Apache-2.0
// Stands in for stepcast-rank where its launch, files and errors are tested: computes nothing, and
// writes a run in which every instruction takes 1 ms and every step half a second. STEPCAST_FAKE
// names what goes wrong.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "core/atomic_file.h"
#include "core/json.h"
#include "launch/rank_report.h"
#include "layout/rank_grid.h"
#include "layout/read_scenario.h"
#include "layout/scenario.h"
#include "program/program.h"

namespace {

using nlohmann::json;
using namespace stepcast;

constexpr double kPeriod = 0.5;
constexpr double kInstruction = 1e-3;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

json steps_of(const Role& role, int steps) {
  json out = json::array();
  for (int step = 0; step < steps; ++step) {
    const double begin = 1000 + kPeriod * step;
    json spans = json::array();
    double now = begin;
    for (std::size_t i = 0; i < role.instructions.size(); ++i, now += kInstruction) {
      spans.push_back({now, now + kInstruction});
    }
    out.push_back({{"begin_s", begin}, {"end_s", now}, {"loss_sum", 1.0}, {"spans", spans}});
  }
  return out;
}

json result_of(const json& job, const Scenario& scenario, RankId rank, const std::string& fate) {
  const GridPoint point = RankGrid(scenario.layout).point(rank);
  const Program program = lower(scenario);
  const Role& role = program.roles[static_cast<std::size_t>(point.pp)];
  json out{{"rank", rank.value},
           {"host", "fake"},
           {"stage", point.pp},
           {"tp", point.tp},
           {"dp", point.dp},
           {"steps", steps_of(role, job["steps"])},
           {"operations",
            {{{"signature", "gemm"},
              {"name", "qkv"},
              {"phase", "forward"},
              {"calls_per_step", 8},
              {"median_s", 1e-3},
              {"total_s_per_step", 8e-3}}}},
           {"peak_memory_bytes", 1 << 20},
           {"memory_bytes", {{"parameters", 1 << 20}}}};
  if (job["check_numerics"]) {
    out["numerics"] = {{"loss_relative_error", fate == "inexact" ? 1e-3 : 1e-7},
                       {"parameter_relative_error", 1e-7}};
  }
  if (fate == "short") out["steps"][0]["spans"].erase(0);
  return out;
}

int run(const json& job, RankId rank, RankReporter& reporter) {
  const std::string fate = variable("STEPCAST_FAKE");
  if (fate == "hang") {
    while (true) std::this_thread::sleep_for(std::chrono::hours(1));
  }
  if (rank.value == 1 && fate == "die") {
    std::fputs("about to die\n", stderr);
    std::raise(SIGABRT);
  }
  if (fate == "numerics") {
    reporter.failed(RankFailure::kNumerics, "the loss of step 2 is not finite");
    return 1;
  }
  const auto document = std::move(*JsonDocument::parse(job["scenario"].dump(), "job"));
  const auto scenario = read_scenario(
      *document, {job["data"]["models"], job["data"]["topologies"], job["data"]["profiles"]});
  if (!scenario) {
    reporter.failed(RankFailure::kInput, to_string(scenario.error()));
    return 1;
  }
  const std::string path =
      job["results"].get<std::string>() + "/rank-" + std::to_string(rank.value) + ".json";
  if (!write_file_atomically(path, result_of(job, *scenario, rank, fate).dump())) return 1;
  reporter.finished();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const RankId rank(std::atoi(variable("OMPI_COMM_WORLD_RANK").c_str()));
  RankReporter reporter(rank.value);
  reporter.started();
  std::ifstream file(argc > 1 ? argv[1] : "");
  const json job = json::parse(file, nullptr, false);
  if (job.is_discarded()) {
    reporter.failed(RankFailure::kInput, "no job");
    return 1;
  }
  return run(job, rank, reporter);
}
