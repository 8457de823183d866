// SPDX-License-Identifier: Apache-2.0
#include "recipes/megatron_read.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>

#include "cluster/nccl_settings.h"
#include "core/json.h"
#include "core/json_tree.h"
#include "core/text/escape.h"
#include "layout/nearest.h"
#include "recipes/launch_command.h"
#include "recipes/megatron.h"
#include "recipes/megatron_arguments.h"
#include "recipes/megatron_bridge.h"
#include "recipes/shell_script.h"

namespace stepcast {
namespace {

std::optional<std::int64_t> count_of(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && value > 0 && value < (1 << 20) ? std::optional(value) : std::nullopt;
}

struct CommandLine {
  std::vector<std::string> launcher;
  std::vector<std::string> program;
  std::map<std::string, std::string> environment = {};
  // Printed with the arguments that nobody set: only those that are switched on are worth a word.
  std::optional<MegatronArguments> printed = {};
};

std::int64_t known_flags(const std::vector<std::string>& words) {
  return std::count_if(words.begin(), words.end(), [](const std::string& word) {
    const std::string flag = word.substr(0, word.find('='));
    const auto& counts = megatron_counts();
    return std::any_of(counts.begin(), counts.end(),
                       [&](const MegatronCount& count) { return flag == count.flag; });
  });
}

// The program's arguments stand behind its file; without a file all are the program's.
CommandLine split(const std::vector<std::string>& words) {
  const auto file = std::find_if(words.begin(), words.end(),
                                 [](const std::string& word) { return word.ends_with(".py"); });
  if (file == words.end()) return {{}, words};
  return {{words.begin(), file}, {file + 1, words.end()}};
}

// MODEL_ARGS of Megatron's own test recipes: flags as keys.
std::vector<std::string> words_of_yaml(const YAML::Node& flags) {
  std::vector<std::string> words;
  for (const auto& entry : flags) {
    if (!entry.second.IsScalar() && !entry.second.IsSequence()) continue;
    const auto value = entry.second.IsScalar() ? entry.second.as<std::string>() : "";
    if (value == "false" || value == "False") continue;
    words.push_back(entry.first.as<std::string>());
    if (value == "true" || value == "True") continue;
    if (entry.second.IsScalar()) words.push_back(value);
    for (const auto& item : entry.second) words.push_back(item.as<std::string>());
  }
  return words;
}

std::optional<CommandLine> find_in_yaml(const std::string& text) {
  if (text.find("MODEL_ARGS:") == std::string::npos) return std::nullopt;
  try {
    const YAML::Node root = YAML::Load(text);
    const YAML::Node flags = root["MODEL_ARGS"];
    if (flags && flags.IsMap()) return CommandLine{{}, words_of_yaml(flags)};
  } catch (const YAML::Exception&) {
    // Not YAML: a shell script may use the name too.
  }
  return std::nullopt;
}

std::optional<CommandLine> find_printed(const std::string& text) {
  const auto bridge = arguments_of_bridge(text);
  if (!bridge && !are_megatron_arguments(text)) return std::nullopt;
  CommandLine out;
  out.printed = read_megatron_arguments(bridge.value_or(text));
  out.program = out.printed->words;
  return out;
}

CommandLine find_in_script(const ImportInput& input, ImportedScenario& out) {
  const auto command =
      find_launch_command(input, known_flags,
                          {ErrorCode::kFormat, "holds no command with Megatron's flags", "", "",
                           "a command with --num-layers, --tensor-model-parallel-size and others"},
                          out);
  if (!command) return {};
  CommandLine line = split(command->words);
  line.environment = command->environment;
  return line;
}

std::optional<std::int64_t> launcher_count(const std::vector<std::string>& words,
                                           std::initializer_list<std::string_view> names) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    for (const std::string_view name : names) {
      if (words[i] == name && i + 1 < words.size()) return count_of(words[i + 1]);
      if (words[i].size() > name.size() && words[i].starts_with(name) &&
          words[i][name.size()] == '=') {
        return count_of(std::string_view(words[i]).substr(name.size() + 1));
      }
    }
  }
  return std::nullopt;
}

// The options of "#SBATCH" lines, as words.
std::vector<std::string> batch_options(const std::string& text) {
  constexpr std::string_view kBatchMark = "#SBATCH ";
  std::vector<std::string> out;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    if (!line.starts_with(kBatchMark)) continue;
    const ShellScript options = read_shell(line.substr(kBatchMark.size()), {});
    if (options.too_large) continue;
    for (const auto& words : options.commands) out.insert(out.end(), words.begin(), words.end());
  }
  return out;
}

std::optional<std::int64_t> world_of_file(const ImportInput& input, const CommandLine& line) {
  if (line.printed) return line.printed->gpus;
  const auto batch = batch_options(input.text);
  auto nodes = launcher_count(line.launcher, {"--nnodes"});
  if (!nodes) nodes = launcher_count(batch, {"--nodes", "-N"});
  auto each = launcher_count(line.launcher, {"--nproc-per-node", "--nproc_per_node"});
  if (!each) each = launcher_count(batch, {"--gpus-per-node", "--ntasks-per-node"});
  if (!nodes || !each) return std::nullopt;
  return capped_product({*nodes, *each});
}

void list_printed_leftovers(const FlagList& flags, const MegatronArguments& printed,
                            ImportedScenario& out) {
  std::vector<std::string> names;
  for (const std::string& flag : flags.unasked()) {
    const auto& switches = printed.switches;
    const bool is_switch = std::find(switches.begin(), switches.end(), flag) != switches.end();
    if (is_switch && !is_megatron_flag_without_cost(flag)) names.push_back(flag);
  }
  if (names.empty()) return;
  out.warnings.push_back(
      fmt::format("switched on, not in a scenario, and may change the cost of a step: {}",
                  fmt::join(names, ", ")));
}

void list_leftovers(const FlagList& flags, ImportedScenario& out) {
  for (const std::string& flag : flags.unasked()) {
    if (is_megatron_flag_without_cost(flag)) {
      out.without_effect.push_back(flag);
    } else {
      out.warnings.push_back(flag + " is not in a scenario, and may change the cost of a step");
    }
  }
}

// Variables that decide how NCCL moves data; the rest names devices, or is for people and failures.
bool tunes_nccl(std::string_view name) {
  for (const char* one :
       {"NCCL_ALGO", "NCCL_PROTO", "NCCL_BUFFSIZE", "NCCL_NTHREADS", "NCCL_MIN_NCHANNELS",
        "NCCL_MAX_NCHANNELS", "NCCL_MIN_CTAS", "NCCL_MAX_CTAS", "NCCL_P2P_DISABLE",
        "NCCL_SHM_DISABLE", "NCCL_IB_DISABLE", "NCCL_NET_GDR_LEVEL", "NCCL_P2P_NET_CHUNKSIZE",
        "NCCL_COLLNET_ENABLE", "NCCL_MNNVL_ENABLE"}) {
    if (name == one) return true;
  }
  return false;
}

// Whether the variable is a key of `software`.
bool take_nccl(const std::string& name, const std::string& value, ImportedScenario& out) {
  const auto number = value == "0" ? std::optional<std::int64_t>(0) : count_of(value);
  const SortedJson json = number ? SortedJson(*number) : SortedJson(value);
  SortedJson object = SortedJson::object();
  object[name] = json;
  const auto document = JsonDocument::from(std::move(object), "");
  read_software(document->root());
  if (!document->ok()) return false;
  out.set_json("software." + name, json_text(json), name);
  return true;
}

void read_environment(const std::map<std::string, std::string>& environment,
                      ImportedScenario& out) {
  std::vector<std::string> tuned;
  for (const auto& [name, value] : environment) {
    if (name == "CUDA_DEVICE_MAX_CONNECTIONS") {
      // With several queues a product that was issued after a transfer begins before it.
      const bool is_one = count_of(value).value_or(1) == 1;
      if (!is_one && out.degree("layout.tp") > 1) {
        out.set_flag("training.async_tensor_backward", false, name);
      }
    } else if (name == "CUDA_LAUNCH_BLOCKING") {
      if (value == "1") out.set_flag("training.launch_blocking", true, name);
    } else if (name == "NCCL_NET") {
      tuned.push_back(fmt::format("{}={}", name, value));
    } else if (tunes_nccl(name) || (name == "NCCL_NVLS_ENABLE" && value == "0")) {
      if (take_nccl(name, value, out)) continue;
      tuned.push_back(fmt::format("{}={}", name, value));
    } else {
      out.without_effect.push_back(name);
    }
  }
  if (tuned.empty()) return;
  out.warnings.push_back(fmt::format(
      "the script's environment is not in a scenario, and may change the cost of a step: {}",
      fmt::join(tuned, ", ")));
}

// A line of the script, or around it, that moves power of the memory to the cores.
void read_boost_slider(const std::string& text, ImportedScenario& out) {
  constexpr std::string_view kSlider = "boost-slider --vboost";
  const std::size_t at = text.find(kSlider);
  if (at == std::string::npos) return;
  const std::size_t level = text.find_first_not_of(" =", at + kSlider.size());
  const bool on = level != std::string::npos && text[level] >= '1' && text[level] <= '9';
  if (on) out.set_flag("training.vboost", true, "nvidia-smi boost-slider --vboost");
}

void read_counts(FlagList& flags, ImportedScenario& out) {
  for (const MegatronCount& count : megatron_counts()) {
    if (const auto value = flags.integer(count.flag)) {
      out.set_integer(count.path, *value, count.flag);
    }
  }
}

}  // namespace

ImportedScenario read_megatron_overrides(const ImportInput& input) {
  ImportedScenario out;
  out.file = input.file;
  out.gpus = input.gpus;
  const MegatronArguments arguments = read_megatron_arguments(input.text);
  FlagList flags(arguments.words, out);
  read_counts(flags, out);
  read_megatron_layout(flags);
  read_megatron_training(flags);
  list_printed_leftovers(flags, arguments, out);
  return out;
}

ImportedScenario read_megatron(const ImportInput& input) {
  ImportedScenario out;
  out.file = input.file;
  out.gpus = input.gpus;
  const auto yaml = find_in_yaml(input.text);
  const auto printed = yaml ? std::nullopt : find_printed(input.text);
  const CommandLine line = yaml ? *yaml : printed ? *printed : find_in_script(input, out);
  if (!out.errors.empty()) return out;
  if (const auto world = world_of_file(input, line)) out.gpus = world;
  FlagList flags(line.program, out);
  for (const char* required : {"--num-layers", "--hidden-size", "--num-attention-heads",
                               "--seq-length", "--micro-batch-size"}) {
    if (!flags.has(required)) {
      out.fail(ErrorCode::kMissingKey, required, "is required by Megatron and missing");
    }
  }
  read_counts(flags, out);
  read_boost_slider(input.text, out);
  read_megatron_model(flags);
  read_megatron_layout(flags);
  read_megatron_training(flags);
  if (line.printed) {
    list_printed_leftovers(flags, *line.printed, out);
  } else {
    list_leftovers(flags, out);
    read_environment(line.environment, out);
  }
  for (const Setting& remark : settings_in_remarks(input.text)) out.settings.push_back(remark);
  return out;
}

}  // namespace stepcast
