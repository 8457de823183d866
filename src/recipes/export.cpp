// SPDX-License-Identifier: Apache-2.0
#include "recipes/export.h"

#include <fmt/format.h>

#include "layout/choices.h"
#include "recipes/deepspeed.h"
#include "recipes/launch_script.h"
#include "recipes/megatron.h"
#include "recipes/rank_map.h"
#include "recipes/round_trip.h"
#include "recipes/torchtitan.h"

namespace stepcast {
namespace {

constexpr const char* kDeepSpeedFile = "ds_config.json";
constexpr const char* kTorchtitanFile = "torchtitan.toml";

struct Context {
  const Scenario& scenario;
  const std::string& stated;
  const DataFolders& folders;
};

// Where the settings leave the model to the training program, adapters are its business. Elsewhere
// the settings would have to name them.
Error no_adapters(const Scenario& scenario, const char* target) {
  return {ErrorCode::kIllegal,
          fmt::format("{} has no setting in {}", name_of(scenario.training.mode), target), "",
          "training.mode",
          "--framework deepspeed, which leaves adapters to your training program, --to rankmap, or "
          "training.mode pretrain"};
}

Result<TripResult> megatron_script(const Context& at, Launcher launcher) {
  if (at.scenario.training.trains_adapters()) {
    return failure(no_adapters(at.scenario, "Megatron-LM"));
  }
  if (Errors errors = check_megatron(at.scenario); !errors.empty()) return failure(errors);
  const LaunchProgram program = megatron_program(at.scenario);
  const RoundTrip trip{"Megatron-LM",
                       [&](const std::vector<Setting>& remarks) {
                         return launch_script(at.scenario, program, launcher, remarks);
                       },
                       read_megatron,
                       {"training.no_sync", "training.software"}};
  return write_and_read_back(trip, at.scenario, at.stated, at.folders);
}

Result<TripResult> deepspeed_settings(const Context& at) {
  if (Errors errors = check_deepspeed(at.scenario); !errors.empty()) return failure(errors);
  std::vector<std::string> left = {
      "training.sequence_length",     "training.attention",       "training.compile",
      "training.cuda_graphs",         "training.no_sync",         "training.mode",
      "training.lora_rank",           "layout.sequence_parallel", "layout.order",
      "layout.account_for_embedding", "layout.account_for_loss",  "layout.stage_layers"};
  // The pipeline's own checkpointing is a key; elsewhere the model's code decides.
  if (at.scenario.layout.pp == 1) left.emplace_back("layout.recompute");
  const RoundTrip trip{"DeepSpeed",
                       [&](const std::vector<Setting>& remarks) {
                         return Result<std::string>(write_deepspeed(at.scenario, remarks));
                       },
                       read_deepspeed, left};
  return write_and_read_back(trip, at.scenario, at.stated, at.folders);
}

Result<TripResult> torchtitan_settings(const Context& at) {
  if (at.scenario.training.trains_adapters()) {
    return failure(no_adapters(at.scenario, "torchtitan"));
  }
  if (Errors errors = check_torchtitan(at.scenario); !errors.empty()) return failure(errors);
  const RoundTrip trip{
      "torchtitan",
      [&](const std::vector<Setting>& remarks) {
        return Result<std::string>(write_torchtitan(at.scenario, remarks, at.folders.models));
      },
      read_torchtitan,
      {"training.no_sync", "training.cuda_graphs"}};
  return write_and_read_back(trip, at.scenario, at.stated, at.folders);
}

LaunchProgram deepspeed_program(const std::string& folder) {
  return {{"TRAIN_SCRIPT=\"${TRAIN_SCRIPT:?names your training program}\"",
           fmt::format("CONFIG=\"${{CONFIG:-{}{}}}\"", folder, kDeepSpeedFile)},
          "\"$TRAIN_SCRIPT\"",
          {{"TRAIN_ARGS", {"--deepspeed", "--deepspeed_config \"$CONFIG\""}}}};
}

LaunchProgram torchtitan_program(const std::string& folder) {
  return {{fmt::format("CONFIG=\"${{CONFIG:-{}{}}}\"", folder, kTorchtitanFile)},
          "-m torchtitan.train",
          {{"TRAIN_ARGS", {"--job.config_file \"$CONFIG\""}}}};
}

Error native_has_no_launcher() {
  return {ErrorCode::kIllegal, "native is stepcast's own executor, which no launcher starts", "",
          "training.framework", "megatron, fsdp or deepspeed; stepcast validate runs native"};
}

// The script, and beside it the framework's settings where they are a file.
Result<Exported> launch_files(const Context& at, Launcher launcher, const char* name) {
  const Framework framework = at.scenario.training.framework;
  if (framework == Framework::kNative) return failure(native_has_no_launcher());
  if (framework == Framework::kMegatron) {
    auto script = megatron_script(at, launcher);
    if (!script) return failure(script.error());
    return Exported{{{name, script->text, true}}, "Megatron-LM", script->remarks};
  }
  const bool deepspeed = framework == Framework::kDeepSpeed;
  const auto settings = deepspeed ? deepspeed_settings(at) : torchtitan_settings(at);
  if (!settings) return failure(settings.error());
  const std::string folder = launcher == Launcher::kPod ? std::string(kPodFolder) + "/" : "";
  const LaunchProgram program = deepspeed ? deepspeed_program(folder) : torchtitan_program(folder);
  const auto script = launch_script(at.scenario, program, launcher, {});
  if (!script) return failure(script.error());
  return Exported{{{name, *script, true},
                   {deepspeed ? kDeepSpeedFile : kTorchtitanFile, settings->text, false}},
                  deepspeed ? "DeepSpeed" : "torchtitan",
                  settings->remarks};
}

Result<Exported> framework_file(const Context& at, ExportTarget target) {
  const Framework wanted = target == ExportTarget::kMegatron    ? Framework::kMegatron
                           : target == ExportTarget::kDeepSpeed ? Framework::kDeepSpeed
                                                                : Framework::kFsdp;
  const Framework framework = at.scenario.training.framework;
  if (framework == Framework::kNative) return failure(native_has_no_launcher());
  if (framework != wanted) {
    const char* own = framework == Framework::kFsdp ? "torchtitan" : name_of(framework);
    return failure({ErrorCode::kIllegal,
                    fmt::format("{} is not what this target runs", name_of(framework)), "",
                    "training.framework",
                    fmt::format("--to {}, or --framework {}", own, name_of(wanted))});
  }
  if (target == ExportTarget::kMegatron) {
    return launch_files(at, Launcher::kTorchrun, "megatron.sh");
  }
  const bool deepspeed = target == ExportTarget::kDeepSpeed;
  const auto settings = deepspeed ? deepspeed_settings(at) : torchtitan_settings(at);
  if (!settings) return failure(settings.error());
  return Exported{{{deepspeed ? kDeepSpeedFile : kTorchtitanFile, settings->text, false}},
                  deepspeed ? "DeepSpeed" : "torchtitan",
                  settings->remarks};
}

Result<Exported> manifest(const Context& at, const ExportOptions& options) {
  const auto world = world_of(at.scenario);
  if (!world) return failure(world.error());
  auto inside = launch_files(at, Launcher::kPod, "launch.sh");
  if (!inside) return failure(inside.error());
  const std::string text =
      kubernetes_manifest(*world, inside->files, options.pod_job, options.image);
  return Exported{{{"kubernetes.yaml", text, false}}, inside->framework, inside->remarks};
}

}  // namespace

std::vector<std::string> export_target_names() {
  return {"megatron", "deepspeed", "torchtitan", "torchrun", "slurm", "kubernetes", "rankmap"};
}

Result<Exported> export_scenario(const Scenario& scenario, const std::string& stated,
                                 ExportTarget target, const ExportOptions& options,
                                 const DataFolders& folders) {
  const Context at{scenario, stated, folders};
  switch (target) {
    case ExportTarget::kMegatron:
    case ExportTarget::kDeepSpeed:
    case ExportTarget::kTorchtitan:
      return framework_file(at, target);
    case ExportTarget::kTorchrun:
      return launch_files(at, Launcher::kTorchrun, "launch.sh");
    case ExportTarget::kSlurm:
      return launch_files(at, Launcher::kSlurm, "train.sbatch");
    case ExportTarget::kKubernetes:
      return manifest(at, options);
    case ExportTarget::kRankMap:
      if (options.rank_map_as_json) {
        return Exported{{{"rank_map.json", rank_map_json(scenario), false}}, "", {}};
      }
      return Exported{{{"rank_map.csv", rank_map_csv(scenario), false}}, "", {}};
  }
  return failure({ErrorCode::kBadValue, "is no target", "", "--to", ""});
}

}  // namespace stepcast
