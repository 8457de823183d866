// SPDX-License-Identifier: Apache-2.0
#include "recipes/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "acceptance/threshold_file.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/scenario_flags.h"
#include "cli/stated_scenario.h"
#include "core/text/written.h"
#include "graphs/chakra_writer.h"
#include "graphs/graph_groups.h"
#include "predict/timed_orders.h"
#include "replay/program_graph.h"

namespace stepcast::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kAcceptance = "acceptance";  // thresholds of the forecast
constexpr const char* kChakra = "chakra";          // its program as execution traces

struct ExportFlags {
  ScenarioFlags scenario;
  OutputOptions output;
  std::string data;
  std::vector<std::string> targets;
  std::string pods = "jobset";
  std::string rank_map = "csv";
  ExportOptions options;
};

void add_files(std::vector<LaunchFile>& files, const std::vector<LaunchFile>& more) {
  for (const LaunchFile& file : more) {
    const bool there = std::any_of(files.begin(), files.end(),
                                   [&](const LaunchFile& old) { return old.name == file.name; });
    if (!there) files.push_back(file);
  }
}

void print_remarks(const OutputOptions& output, const Exported& exported) {
  // A table of no framework leaves some keys to the scenario that reads it.
  const std::string why = exported.framework.empty()
                              ? "beside the file a scenario states"
                              : "not expressible in " + exported.framework + ":";
  for (const Setting& remark : exported.remarks) {
    note(output, fmt::format("note: {} {}={}", why, remark.path, remark.value));
  }
  for (const std::string& one : exported.left_open) {
    note(output, "note: no scenario says, set for a real run: " + one);
  }
}

// The writers of launch files escape names for the format of each.
int write_files(const ExportFlags& flags, const std::vector<LaunchFile>& files, bool to_folder) {
  Output output;
  output.protect("SCENARIO", flags.scenario.file);
  for (const LaunchFile& file : files) {
    const std::string path =
        to_folder ? (fs::path(flags.output.file) / file.name).string() : flags.output.file;
    output.plan("-o", path);
    if (path.empty()) {
      output.set_as_it_is("", Written::escaped(file.text));
    } else {
      output.set_file(path, Written::escaped(file.text));
    }
  }
  if (const Errors errors = output.check(); !errors.empty()) return report_errors(errors);
  if (const int code = output.commit(); code != kOk) return code;
  for (const LaunchFile& file : files) {
    if (!file.executable || flags.output.file.empty()) continue;
    fs::path path = flags.output.file;
    if (to_folder) path /= file.name;
    std::error_code none;  // a file that cannot be made executable is still the file
    fs::permissions(path, fs::perms::owner_exec | fs::perms::group_exec, fs::perm_options::add,
                    none);
  }
  return kOk;
}

// PREFIX.RANK.et of every rank, and the groups that ASTRA-sim reads beside them. The set is
// complete, so nothing has to be looked for among files of other targets.
Errors add_traces(const ExportFlags& flags, const DataFolders& folders,
                  std::vector<LaunchFile>& files) {
  const auto scenario = scenario_from_flags(flags.scenario, folders);
  if (!scenario) return scenario.error();
  const auto graph = program_graph(*scenario, folders);
  if (!graph) return graph.error();
  for (std::size_t r = 0; r < graph->ranks.size(); ++r) {
    files.push_back(
        {fmt::format("trace.{}.et", r), chakra_text(*graph, static_cast<std::int32_t>(r)), false});
  }
  files.push_back({"groups.json", rank_groups_text(graph->groups), false});
  return {};
}

int write_all_files(const ExportFlags& flags, const std::vector<LaunchFile>& files) {
  std::error_code none;
  const std::string& where = flags.output.file;
  const bool folder =
      !where.empty() && (files.size() > 1 || where.ends_with("/") || fs::is_directory(where, none));
  if (where.empty() && files.size() > 1) {
    std::vector<std::string> names;
    for (const LaunchFile& file : files) names.push_back(file.name);
    constexpr std::size_t kNamed = 8;
    if (names.size() > kNamed) names.resize(kNamed);
    if (files.size() > kNamed) names.emplace_back("...");
    return report_errors(
        {{ErrorCode::kMissingKey,
          fmt::format("is required for {} files ({})", files.size(), fmt::join(names, ", ")), "",
          "-o", "a folder"}});
  }
  const bool made = folder && fs::create_directory(where, none);
  if (folder && !fs::is_directory(where, none)) {
    return report_errors({{ErrorCode::kIo, fmt::format("'{}' cannot be a folder", where), "", "-o",
                           "a folder, or a name in one that exists"}});
  }
  const int code = write_files(flags, files, folder);
  if (code != kOk && made) fs::remove(where, none);
  return code;
}

int run_export(const ExportFlags& flags) {
  const auto data = find_data(flags.data);
  if (!data) return report_errors(data.error());
  auto stated = stated_legal_scenario(flags.scenario, data->folders);
  if (!stated) return report_errors(stated.error());
  note_readings(flags.output, {&stated->scenario});
  if (std::ranges::find(flags.targets, kScheduleTarget) != flags.targets.end()) {
    const Errors errors = keep_timed_orders(data->folders, stated->scenario);
    if (!errors.empty()) return report_errors(errors);
  }
  ExportOptions options = flags.options;
  options.pod_job = flags.pods == "jobset" ? PodJob::kJobSet : PodJob::kPyTorchJob;
  options.rank_map_as_json = flags.rank_map == "json";

  std::vector<LaunchFile> files;
  std::vector<Exported> parts;
  for (const std::string& target : flags.targets) {
    if (target == kAcceptance) {
      const auto thresholds = make_thresholds(stated->scenario, data->folders);
      if (!thresholds) return report_errors(thresholds.error());
      add_files(files, {{"acceptance.json", threshold_file(*thresholds).text(), false},
                        {"acceptance.sh", threshold_script(*thresholds), true}});
      continue;
    }
    if (target == kChakra) {
      if (const Errors errors = add_traces(flags, data->folders, files); !errors.empty()) {
        return report_errors(errors);
      }
      continue;
    }
    auto part = export_scenario(stated->scenario, stated->text, target, options, data->folders);
    if (!part) return report_errors(name_flags(part.error(), flags.scenario));
    add_files(files, part->files);
    const bool said = std::any_of(parts.begin(), parts.end(), [&](const Exported& old) {
      return old.framework == part->framework;
    });
    if (!said) parts.push_back(std::move(*part));
  }
  if (const int code = write_all_files(flags, files); code != kOk) return code;
  for (const Exported& part : parts) print_remarks(flags.output, part);
  return kOk;
}

}  // namespace

Command add_export(CommandLine program) {
  auto flags = std::make_shared<ExportFlags>();
  CommandLine app = program.add_command("export", "write the files that launch a scenario");
  app.footer(
      "Examples:\n"
      "  stepcast export scenario.json --to megatron -o train.sh\n"
      "  stepcast export scenario.json --to slurm,rankmap -o run/\n"
      "  stepcast export plan.json --place 1 --to torchtitan -o run/\n"
      "  stepcast export scenario.json --to chakra -o traces/\n"
      "Keys that the target cannot express are listed on standard error and in the file.");
  add_scenario_flags(app, flags->scenario);
  auto names = export_target_names();
  names.emplace_back(kAcceptance);
  names.emplace_back(kChakra);
  app.add("--to", flags->targets, one_of(names) + "; several with commas")
      .required()
      .splits_at(',')
      .one_word()
      .one_of(names)
      .type_name("TARGET");
  app.add("--place", flags->scenario.place, "the file is a plan as JSON: export this place of it")
      .type_name("N")
      .within(1, 1000);
  app.add("--pods", flags->pods, "for kubernetes: jobset or pytorchjob")
      .one_of({"jobset", "pytorchjob"})
      .shows_default();
  app.add("--image", flags->options.image, "for kubernetes: the container's image")
      .type_name("NAME")
      .shows_default();
  app.add("--rank-map", flags->rank_map, "for rankmap: csv or json")
      .one_of({"csv", "json"})
      .shows_default();
  app.add("-o,--output", flags->output.file,
          "write to a file, or into a folder (needed for several files)")
      .type_name("PATH");
  app.add_switch("--quiet", flags->output.quiet, "print no notes on standard error");
  add_data_flag(app, flags->data);
  return within_memory_limit({app, [flags] { return run_export(*flags); }});
}

}  // namespace stepcast::cli
