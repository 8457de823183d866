// SPDX-License-Identifier: Apache-2.0
#include "recipes/trl_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <vector>

#include "core/gathered_errors.h"
#include "core/json_tree.h"
#include "core/text/escape.h"
#include "recipes/launch_command.h"
#include "recipes/shell_script.h"
#include "recipes/yaml_json.h"
#include "recipes/yaml_settings.h"

namespace stepcast {
namespace {

using Words = std::vector<std::string>;

constexpr std::string_view kMarks[] = {"--model_name_or_path", "--per_device_train_batch_size"};

SortedJson value_of(const std::string& word) {
  if (word == "true" || word == "True") return true;
  if (word == "false" || word == "False") return false;
  double number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error == std::errc() && end == word.data() + word.size() && !word.empty()) return number;
  return word;
}

// "--a 1 --b --c=x --d 1 2" as an object, in which a dash of a name is an underscore.
SortedJson flags_of(Words::const_iterator at, Words::const_iterator end) {
  SortedJson out = SortedJson::object();
  while (at != end) {
    if (!at->starts_with("--")) {
      ++at;
      continue;
    }
    std::string name = at->substr(2);
    ++at;
    std::vector<SortedJson> values;
    if (const std::size_t equals = name.find('='); equals != name.npos) {
      values.push_back(value_of(name.substr(equals + 1)));
      name.resize(equals);
    }
    for (; at != end && !at->starts_with("--"); ++at) values.push_back(value_of(*at));
    std::ranges::replace(name, '-', '_');
    if (values.empty()) {
      out[name] = true;
    } else {
      out[name] = values.size() == 1 ? values.front() : SortedJson(values);
    }
  }
  return out;
}

bool has_mark(const std::string& word) {
  return std::ranges::any_of(kMarks, [&](std::string_view mark) {
    return word == mark || word.starts_with(std::string(mark) + "=");
  });
}

// The program stands behind the launcher's words: a file, or `trl sft`.
Words::const_iterator program_in(const Words& words) {
  const auto file =
      std::ranges::find_if(words, [](const std::string& word) { return word.ends_with(".py"); });
  if (file != words.end()) return file;
  const auto trl = std::ranges::find(words, "trl");
  return trl != words.end() ? trl : words.begin();
}

// Words of `accelerate launch` and torchrun as Accelerate's file has them.
SortedJson accelerate_of(const SortedJson& launcher) {
  SortedJson out = SortedJson::object();
  const auto is_on = [&](const char* key) {
    return launcher.contains(key) && launcher[key].is_boolean() && launcher[key].get<bool>();
  };
  const auto take = [&](const char* key, SortedJson& into, const char* as) {
    if (launcher.contains(key)) into[as] = launcher[key];
  };
  take("num_processes", out, "num_processes");
  take("mixed_precision", out, "mixed_precision");
  if (is_on("multi_gpu")) out["distributed_type"] = "MULTI_GPU";
  if (is_on("use_fsdp")) out["distributed_type"] = "FSDP";
  if (is_on("use_deepspeed")) out["distributed_type"] = "DEEPSPEED";
  for (const auto& [key, value] : launcher.items()) {
    if (key.starts_with("fsdp_")) out["fsdp_config"][key] = value;
  }
  for (const char* key : {"zero_stage", "offload_optimizer_device", "offload_param_device",
                          "gradient_clipping", "deepspeed_config_file"}) {
    if (launcher.contains(key)) out["deepspeed_config"][key] = launcher[key];
  }
  return out;
}

// The keys of `words` over those of `all`, section by section.
void lay(const SortedJson& words, SortedJson& all) {
  for (const auto& [key, value] : words.items()) {
    if (value.is_object() && all.contains(key) && all[key].is_object()) {
      lay(value, all[key]);
    } else {
      all[key] = value;
    }
  }
}

std::optional<std::int64_t> torchrun_processes(const SortedJson& launcher) {
  if (!launcher.contains("nproc_per_node") || !launcher["nproc_per_node"].is_number()) {
    return std::nullopt;
  }
  const auto count = [&](const char* key) {
    const bool is_number = launcher.contains(key) && launcher[key].is_number();
    return is_number ? std::clamp(launcher[key].get<double>(), 1.0, 1e5) : 1.0;
  };
  return static_cast<std::int64_t>(count("nproc_per_node") * count("nnodes"));
}

class ScriptReader {
 public:
  explicit ScriptReader(const ImportInput& input) : input_(input) {
    out_.file = input.file;
    out_.gpus = input.gpus;
  }

  ImportedScenario read() {
    const auto words = find_command();
    if (!words) return std::move(out_);
    const auto program = program_in(*words);
    const SortedJson launcher = flags_of(words->begin(), program);
    const SortedJson arguments = flags_of(program, words->end());
    if (const auto gpus = torchrun_processes(launcher)) out_.gpus = gpus;
    tell_other_files(launcher, arguments);
    ImportInput input = input_;
    if (!lay_over(accelerate_of(launcher), input)) return std::move(out_);
    read_trl(arguments, input, out_);
    return std::move(out_);
  }

 private:
  std::optional<Words> find_command() {
    const auto command = find_launch_command(
        input_, [](const Words& words) { return std::ranges::count_if(words, has_mark); },
        {ErrorCode::kFormat, "holds no command with the arguments of TRL or the Trainer", "", "",
         "a command with --model_name_or_path and --per_device_train_batch_size"},
        out_);
    return command ? std::optional(command->words) : std::nullopt;
  }

  void tell_other_files(const SortedJson& launcher, const SortedJson& arguments) {
    const auto tell = [&](const SortedJson& of, const char* key, const char* what) {
      if (!of.contains(key) || !of[key].is_string()) return;
      out_.warnings.push_back(fmt::format("--{}: {} is another file and is not read{}", key,
                                          of[key].get<std::string>(), what));
    };
    if (!input_.accelerate) tell(launcher, "config_file", ": give it behind this one");
    tell(arguments, "config", ": import it in place of the script");
  }

  // Words of the launcher over Accelerate's file. False after an error.
  bool lay_over(const SortedJson& words, ImportInput& input) {
    if (words.empty()) return true;
    SortedJson all = SortedJson::object();
    std::string file = input_.file;
    if (input_.accelerate) {
      file = input_.accelerate->file;
      auto root = yaml_to_json(input_.accelerate->text, file);
      if (!root) {
        append(out_.errors, root.error());
        return false;
      }
      all = std::move(*root);
    }
    lay(words, all);
    if (!all.contains("distributed_type")) {
      // Accelerate starts plain data parallelism among several processes.
      all["distributed_type"] = "MULTI_GPU";
    }
    input.accelerate = {json_text(all), file};
    return true;
  }

  const ImportInput& input_;
  ImportedScenario out_;
};

}  // namespace

bool is_trl_script(const std::string& text) {
  if (text.find(kMarks[0]) == text.npos || text.find(kMarks[1]) == text.npos) return false;
  const ShellScript script = read_shell(text, {});
  return std::ranges::any_of(script.commands, [](const Words& words) {
    return std::ranges::count_if(words, has_mark) > 1;
  });
}

ImportedScenario read_trl_script(const ImportInput& input) { return ScriptReader(input).read(); }

}  // namespace stepcast
