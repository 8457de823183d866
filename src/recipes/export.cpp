// SPDX-License-Identifier: Apache-2.0
#include "recipes/export.h"

#include <fmt/format.h>

#include "core/json_tree.h"
#include "core/text/escape.h"
#include "layout/choices.h"
#include "layout/framework.h"
#include "layout/framework_rules.h"
#include "layout/layout.h"
#include "layout/pipeline.h"
#include "layout/scenario.h"
#include "layout/training.h"
#include "recipes/adapter_files.h"
#include "recipes/launch_format.h"
#include "recipes/left_open.h"
#include "recipes/rank_map.h"
#include "recipes/round_trip.h"
#include "schedule/schedule.h"

namespace stepcast {
namespace {

struct Context {
  const Scenario& scenario;
  const std::string& stated;
  const ExportOptions& options;
  const DataFolders& folders;
};

// If the settings leave the model to the training program, adapters are its business. Other
// settings would have to name them, and these cannot.
Error no_adapters(const Scenario& scenario, const char* target) {
  return {ErrorCode::kIllegal,
          fmt::format("{} has no setting in {}", name_of(scenario.training.mode), target), "",
          "training.mode",
          "--to peft or torchtune; --framework deepspeed, which leaves adapters to your training "
          "program; or training.mode pretrain"};
}

Result<TripResult> written(const Context& at, const LaunchFormat& format, Launcher launcher) {
  if (at.scenario.training.trains_adapters() && !format.trains_adapters) {
    return failure(no_adapters(at.scenario, format.program));
  }
  if (Errors errors = format.check(at.scenario); !errors.empty()) return failure(errors);
  const RoundTrip trip{format.program,
                       [&](const std::vector<Setting>& remarks) {
                         return format.write(at.scenario, launcher, remarks, at.folders);
                       },
                       format.read, format.left_to_program(at.scenario)};
  return write_and_read_back(trip, at.scenario, at.stated, at.folders);
}

// The script, and beside it the framework's settings where they are a file.
Result<Exported> launch_files(const Context& at, Launcher launcher, const char* name) {
  const LaunchFormat* format = launch_format_of(at.scenario.training.framework);
  if (format == nullptr) return failure(no_launch_files(traits_of(at.scenario.training.framework)));
  const auto text = written(at, *format, launcher);
  if (!text) return failure(text.error());
  if (format->settings_file == nullptr) {
    return Exported{{{name, text->text, true}}, format->program, text->remarks, {}};
  }
  const std::string folder = launcher == Launcher::kPod ? std::string(kPodFolder) + "/" : "";
  const LaunchProgram program = format->program_with(folder + format->settings_file);
  const auto script = launch_script(at.scenario, program, launcher, {});
  if (!script) return failure(script.error());
  return Exported{{{name, *script, true}, {format->settings_file, text->text, false}},
                  format->program,
                  text->remarks,
                  {}};
}

Result<Exported> framework_file(const Context& at, const LaunchFormat& wanted) {
  const Framework framework = at.scenario.training.framework;
  const LaunchFormat* own = launch_format_of(framework);
  if (own == nullptr) return failure(no_launch_files(traits_of(framework)));
  if (own != &wanted) {
    return failure({ErrorCode::kIllegal,
                    fmt::format("{} is not what this target runs", name_of(framework)), "",
                    "training.framework",
                    fmt::format("--to {}, or --framework {}", own->name, wanted.framework)});
  }
  if (wanted.settings_file == nullptr) {
    return launch_files(at, Launcher::kTorchrun, wanted.script_file);
  }
  const auto settings = written(at, wanted, Launcher::kTorchrun);
  if (!settings) return failure(settings.error());
  return Exported{
      {{wanted.settings_file, settings->text, false}}, wanted.program, settings->remarks, {}};
}

Result<Exported> with_torchrun(const Context& at) {
  return launch_files(at, Launcher::kTorchrun, "launch.sh");
}

Result<Exported> with_slurm(const Context& at) {
  return launch_files(at, Launcher::kSlurm, "train.sbatch");
}

Result<Exported> manifest(const Context& at) {
  const auto world = world_of(at.scenario);
  if (!world) return failure(world.error());
  auto inside = launch_files(at, Launcher::kPod, "launch.sh");
  if (!inside) return failure(inside.error());
  const std::string text =
      kubernetes_manifest(*world, inside->files, at.options.pod_job, at.options.image);
  return Exported{{{"kubernetes.yaml", text, false}}, inside->framework, inside->remarks, {}};
}

Result<Exported> rank_map(const Context& at) {
  if (at.options.rank_map_as_json) {
    return Exported{{{"rank_map.json", rank_map_json(at.scenario), false}}, "", {}, {}};
  }
  return Exported{{{"rank_map.csv", rank_map_csv(at.scenario), false}}, "", {}, {}};
}

// Every stage's passes in order, as PyTorch's pipelines read them.
Result<Exported> schedule_file(const Context& at) {
  const Layout& layout = at.scenario.layout;
  if (rules_of(layout.schedule).from_file && !layout.schedule_text) {
    return failure({ErrorCode::kNotFound, fmt::format("cannot read '{}'", layout.schedule_file), "",
                    "layout.schedule", one_of(made_schedules())});
  }
  const std::int64_t micro_batches = at.scenario.micro_batches();
  const std::string csv =
      to_csv(pipeline_of(layout, micro_batches), make_schedule(layout, micro_batches));
  Exported out{{{"schedule.csv", csv, false}}, "", {}, {}};
  // The file has the order alone; the scenario that reads it says the rest.
  if (layout.virtual_stages > 1) {
    out.remarks.push_back({"layout.virtual_stages", fmt::format("{}", layout.virtual_stages), ""});
  }
  // These have another default under a file than under the schedule's name.
  Layout read_again = layout;
  read_again.schedule = schedule_named("file");
  read_again.file_form = form_of_csv(csv);
  const Training& training = at.scenario.training;
  const FrameworkTraits& traits = traits_of(training.framework);
  const auto state = [&](const char* key, bool value) {
    out.remarks.push_back({key, value ? "true" : "false", ""});
  };
  if (traits.overlap(training, read_again).pp != layout.overlap.pp) {
    state("layout.overlap.pp", layout.overlap.pp);
  }
  read_again.overlap.pp = layout.overlap.pp;
  const bool waits = at.scenario.rules.host_sync_after_p2p;
  if (traits.rules(training, read_again).host_sync_after_p2p != waits) {
    state("training.host_sync_after_p2p", waits);
  }
  if (layout.overlap.ep) state("layout.overlap.ep", false);  // an order in a file names no pairs
  if (at.scenario.training.grad_clip == GradClip::kPostValidation) {
    out.remarks.push_back(
        {"training.grad_clip", json_text(SortedJson(name_of(GradClip::kPostValidation))), ""});
  }
  return out;
}

Result<Exported> with_peft(const Context& at) {
  auto files = peft_files(at.scenario);
  if (!files) return failure(files.error());
  return Exported{std::move(*files), "", {}, {}};
}

Result<Exported> with_torchtune(const Context& at) {
  auto files = torchtune_files(at.scenario);
  if (!files) return failure(files.error());
  return Exported{std::move(*files), "", {}, {}};
}

struct Target {
  const char* name;
  Result<Exported> (*write)(const Context& at);
};
constexpr Target kTargets[] = {{"torchrun", with_torchrun},     {"slurm", with_slurm},
                               {"kubernetes", manifest},        {"peft", with_peft},
                               {"torchtune", with_torchtune},   {"rankmap", rank_map},
                               {kScheduleTarget, schedule_file}};

// A table of no framework is no launch file.
Result<Exported> completed(Result<Exported> out, const Scenario& scenario) {
  if (out && !out->framework.empty()) out->left_open = settings_left_open(scenario);
  return out;
}

}  // namespace

std::vector<std::string> export_target_names() {
  std::vector<std::string> out;
  for (const LaunchFormat* format : launch_formats()) out.emplace_back(format->name);
  for (const Target& target : kTargets) out.emplace_back(target.name);
  return out;
}

std::vector<std::string> launch_targets(const Scenario& scenario) {
  const LaunchFormat* format = launch_format_of(scenario.training.framework);
  if (format == nullptr) return {};
  const bool by_trainer = scenario.training.trains_adapters() && !format->trains_adapters &&
                          scenario.training.framework == framework_named("fsdp");
  if (by_trainer) return {"peft", "torchtune"};
  return {format->name};
}

Result<Exported> export_scenario(const Scenario& scenario, const std::string& stated,
                                 const std::string& target, const ExportOptions& options,
                                 const DataFolders& folders) {
  if (scenario.training.outer.any()) {
    return failure({ErrorCode::kNotSupported, "files that launch islands are not written yet", "",
                    "training.outer.islands",
                    "export one island, and have torchft join them (torchtitan's "
                    "fault_tolerance.semi_sync_method)"});
  }
  const Context at{scenario, stated, options, folders};
  const LaunchFormat* format = launch_format_named(target);
  if (format != nullptr) return completed(framework_file(at, *format), scenario);
  for (const Target& known : kTargets) {
    if (target == known.name) return completed(known.write(at), scenario);
  }
  return failure({ErrorCode::kBadValue, fmt::format("'{}' is no target", target), "", "--to",
                  "one of " + one_of(export_target_names())});
}

}  // namespace stepcast
