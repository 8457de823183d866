// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <thread>

#include "calibrate/protocol/system_file.h"
#include "cli/commands.h"
#include "cli/gpu_software.h"
#include "cli/launch_run.h"
#include "cli/output.h"
#include "core/carried_files.h"
#include "core/data_name.h"
#include "core/json_tree.h"
#include "core/text/escape.h"
#include "report/number_text.h"
#include "report/text_table.h"

namespace stepcast::cli {
namespace {

namespace fs = std::filesystem;

struct DoctorFlags {
  OutputOptions output;
  std::string data;
};

struct Fact {
  std::string key;
  std::string value;
  std::string to_do = {};
};

std::string on_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::string folders = path ? path : "";
  for (std::size_t begin = 0; begin <= folders.size();) {
    const std::size_t end = std::min(folders.find(':', begin), folders.size());
    const std::string file = folders.substr(begin, end - begin) + "/" + program;
    if (::access(file.c_str(), X_OK) == 0) return file;
    begin = end + 1;
  }
  return "not found";
}

std::string files_in(const std::string& folder) {
  const auto names = data_names(folder);
  return names ? fmt::format("{}", names->size()) : names.error().front().message;
}

void add_machine(std::vector<Fact>& facts) {
  utsname system{};
  if (::uname(&system) == 0) {
    facts.push_back(
        {"system", fmt::format("{} {} {}", system.sysname, system.release, system.machine)});
  }
  facts.push_back({"processor", field_of("/proc/cpuinfo", "model name")});
  facts.push_back({"cores", fmt::format("{}", std::thread::hardware_concurrency())});
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long page = ::sysconf(_SC_PAGE_SIZE);
  if (pages > 0 && page > 0) {
    facts.push_back({"memory", gib_text(static_cast<ByteCount>(pages) * page) + " GiB"});
  }
}

void add_ranks(std::vector<Fact>& facts) {
  std::error_code none;
  const bool there = fs::exists(rank_program(), none);
  facts.push_back(
      {"stepcast-rank", there ? "beside stepcast" : "not beside stepcast",
       there ? "" : "to calibrate and validate on this machine: scripts/build.sh programs"});
  facts.push_back({"mpirun", on_path("mpirun")});
}

void add_gpus(std::vector<Fact>& facts) {
  const std::string driver = first_line("/proc/driver/nvidia/version");
  facts.push_back({"NVIDIA driver", driver.empty() ? "not loaded" : driver});
  std::size_t gpus = 0;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator("/proc/driver/nvidia/gpus", none)) {
    facts.push_back(
        {fmt::format("GPU {}", gpus++), field_of(entry.path() / "information", "Model")});
  }
  if (gpus == 0) facts.push_back({"GPUs", "none (forecasts need none)"});
  for (const SoftwareFinding& finding : gpu_software()) {
    facts.push_back({finding.what, finding.found, finding.to_do});
  }
  facts.push_back({"nvcc", on_path("nvcc")});
}

void add_data(const DataRoot& data, std::vector<Fact>& facts) {
  const fs::path topologies = data.folders.topologies;
  facts.push_back({"data", is_carried(data.root) ? "inside the program" : data.root});
  facts.push_back({"models", files_in(data.folders.models)});
  facts.push_back({"clusters", files_in((topologies / "clusters").string())});
  facts.push_back({"accelerators", files_in((topologies / "accelerators").string())});
  facts.push_back({"profiles", files_in(data.folders.profiles)});
  facts.push_back({"suites", files_in(data.suites)});
}

int run_doctor(const DoctorFlags& flags) {
  Output output(Worth::kNothing);
  output.plan("-o", flags.output.file);
  if (const Errors errors = output.check(); !errors.empty()) return report_errors(errors);
  const auto data = find_data(flags.data);
  if (!data) return report_errors(data.error());
  std::vector<Fact> facts{{"stepcast", STEPCAST_VERSION}};
  add_machine(facts);
  add_ranks(facts);
  add_gpus(facts);
  add_data(*data, facts);
  if (flags.output.format == "json") {
    Json out;
    Json to_do = Json::object();
    for (const Fact& fact : facts) {
      out[fact.key] = fact.value;
      if (!fact.to_do.empty()) to_do[fact.key] = fact.to_do;
    }
    out["to_do"] = std::move(to_do);
    output.set_main(flags.output, json_file(out, 1));
  } else {
    TextTable table({{"what", Align::kLeft}, {"found", Align::kLeft}, {"to do", Align::kLeft}});
    for (const Fact& fact : facts) table.add_row({fact.key, fact.value, fact.to_do});
    output.set_main(flags.output, table.text());
  }
  return output.commit();
}

}  // namespace

Command add_doctor(CommandLine program) {
  auto flags = std::make_shared<DoctorFlags>();
  CommandLine app = program.add_command("doctor", "what this machine and installation have");
  app.footer("Example: stepcast doctor");
  add_output_flags(app, flags->output, {"table", "json"});
  add_data_flag(app, flags->data);
  return {app, [flags] { return run_doctor(*flags); }};
}

}  // namespace stepcast::cli
