// SPDX-License-Identifier: Apache-2.0
#include "cli/calibrate_import.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "calibrate/imported_profile.h"
#include "calibrate/profile_writer.h"
#include "cluster/cluster.h"
#include "core/atomic_file.h"
#include "cost/collective_model.h"

namespace stepcast::cli {
namespace {

// Of the scenario flags only --cluster; the others would go unheard.
Errors deaf_flags(const ScenarioFlags& flags) {
  Errors errors;
  for (const auto& value : flags.values) {
    if (value->option->count() == 0 || value->path == "cluster") continue;
    errors.push_back({ErrorCode::kIllegal, "has no effect on an import", "", value->flag,
                      "only --cluster says something of the measured machine"});
  }
  if (!flags.sets.empty()) {
    errors.push_back({ErrorCode::kIllegal, "has no effect on an import", "", "--set",
                      "only --cluster says something of the measured machine"});
  }
  return errors;
}

Result<ClusterSpec> measured_cluster(const ScenarioFlags& flags, const DataFolders& folders) {
  std::string name;
  for (const auto& value : flags.values) {
    if (value->path == "cluster") name = value->value;
  }
  if (name.empty()) {
    return failure({ErrorCode::kMissingKey, "is not given: what was measured?", "", "--cluster",
                    "a cluster of the measured devices, such as dgx-h100; see: stepcast show "
                    "clusters"});
  }
  const auto document = JsonDocument::from(nlohmann::json(name), "--cluster");
  const Cluster cluster = read_cluster(document->root(), folders.topologies);
  if (!document->ok()) return failure(document->errors());
  if (cluster.spec.accelerator.is_cpu()) {
    return failure({ErrorCode::kIllegal, "processors are measured, not imported", "", "--cluster",
                    "calibrate --backend cpu"});
  }
  return cluster.spec;
}

Result<Profile> base_of(const Accelerator& device, const DataFolders& folders) {
  if (device.profile.empty()) return data_sheet_profile(device);
  auto profile = load_profile(device.profile, folders.profiles);
  const bool missing = !profile && profile.error().front().code == ErrorCode::kNotFound;
  return missing ? data_sheet_profile(device) : profile;
}

std::string held_out_text(const FitError& error) {
  if (error.median <= 0) return "";
  return fmt::format(", held out {:.1f} %, 90 % below {:.1f} %", 100 * error.median,
                     100 * error.p90);
}

void tell(const Imported& imported, const ShippedProfile& profile, const OutputOptions& output) {
  for (const CurveNote& curve : profile.notes) {
    if (curve.form.median <= 0 && curve.held_out.median <= 0) continue;
    note(output, fmt::format("{}: fit {:.1f} %{}", curve.operation, 100 * curve.form.median,
                             held_out_text(curve.held_out)));
  }
  for (const CollectiveTable& table : profile.collectives) {
    note(output, fmt::format("{} of {} GPUs in {} NVLink domains, {} sizes{}",
                             exchange_names()[static_cast<std::size_t>(table.group.exchange)],
                             table.group.group.ranks, table.group.group.domains,
                             table.samples.size(), held_out_text(table.held_out)));
  }
  for (const auto& [why, count] : imported.left_out) {
    note(output, fmt::format("left out {}: {}", count, why));
  }
}

}  // namespace

int import_profile(const std::vector<std::string>& files, const ScenarioFlags& flags,
                   const DataFolders& folders, const OutputOptions& output) {
  if (const Errors deaf = deaf_flags(flags); !deaf.empty()) return report_errors(deaf);
  const auto cluster = measured_cluster(flags, folders);
  if (!cluster) return report_errors(cluster.error());
  const auto imported = import_files(files, *cluster);
  if (!imported) return report_errors(imported.error());
  auto base = base_of(cluster->accelerator, folders);
  if (!base) return report_errors(base.error());
  const std::string name = std::filesystem::path(output.file).stem().string();
  const auto profile = make_imported_profile(*imported, *cluster, std::move(*base), name);
  if (!profile) return report_errors(profile.error());
  const auto written = write_file_atomically(output.file, profile_text(*profile));
  if (!written) return report_errors(written.error());
  tell(*imported, *profile, output);
  note(output, fmt::format("wrote {0} (use it with --profile {0})", output.file));
  return kOk;
}

}  // namespace stepcast::cli
