// SPDX-License-Identifier: Apache-2.0
#include "recipes/megatron_arguments.h"

#include <algorithm>
#include <charconv>
#include <map>

namespace stepcast {
namespace {

using Arguments = std::map<std::string, std::string, std::less<>>;

// Arguments whose flag is called otherwise.
struct Renamed {
  std::string_view argument, flag;
};
constexpr Renamed kRenamed[] = {
    {"fp8", "--fp8-format"},
    {"fp4", "--fp4-format"},
    {"layernorm_epsilon", "--norm-epsilon"},
    {"microbatch_group_size_per_vp_stage", "--microbatch-group-size-per-virtual-pipeline-stage"},
    {"virtual_pipeline_model_parallel_size", "--num-virtual-stages-per-pipeline-rank"}};

// Arguments that are on unless a flag takes them away.
constexpr Renamed kNegated[] = {
    {"add_bias_linear", "--disable-bias-linear"},
    {"bias_dropout_fusion", "--no-bias-dropout-fusion"},
    {"bias_gelu_fusion", "--no-bias-gelu-fusion"},
    {"bias_swiglu_fusion", "--no-bias-swiglu-fusion"},
    {"gradient_accumulation_fusion", "--no-gradient-accumulation-fusion"},
    {"scatter_gather_tensors_in_pipeline", "--no-scatter-gather-tensors-in-pipeline"}};

// Arguments with a default that means nothing until another one is set.
struct Condition {
  std::string_view beginning, needed;
};
constexpr Condition kConditions[] = {{"moe_", "num_experts"},
                                     {"expert_tensor_parallel_size", "num_experts"},
                                     {"q_lora_rank", "multi_latent_attention"},
                                     {"kv_lora_rank", "multi_latent_attention"},
                                     {"qk_head_dim", "multi_latent_attention"},
                                     {"qk_pos_emb_head_dim", "multi_latent_attention"},
                                     {"v_head_dim", "multi_latent_attention"},
                                     {"rotary_scaling_factor", "multi_latent_attention"},
                                     {"rope_type", "multi_latent_attention"},
                                     {"num_query_groups", "group_query_attention"},
                                     {"fp8_", "fp8"},
                                     {"recompute_", "recompute_granularity"},
                                     {"window_attn_skip_freq", "window_size"},
                                     {"rope_scaling_factor", "use_rope_scaling"},
                                     {"optimizer_offload_fraction", "optimizer_cpu_offload"},
                                     {"wgrad_deferral_limit", "defer_embedding_wgrad_compute"},
                                     {"exp_avg_", "use_precision_aware_optimizer"},
                                     {"main_params_dtype", "use_precision_aware_optimizer"},
                                     {"data_parallel_sharding_strategy", "use_megatron_fsdp"},
                                     {"cuda_graph_scope", "cuda_graph_impl"}};

constexpr Renamed kTypes[] = {{"torch.float32", "fp32"},
                              {"torch.bfloat16", "bf16"},
                              {"torch.float16", "fp16"},
                              {"torch.uint8", "fp8"}};

bool is_off(std::string_view value) {
  return value.empty() || value == "None" || value == "False" || value == "[]";
}

bool is_on(const Arguments& arguments, std::string_view name) {
  const auto found = arguments.find(name);
  return found != arguments.end() && !is_off(found->second);
}

// "  name ........ value", and with a fork's "......default" behind it.
void read_line(std::string_view line, Arguments& out) {
  const std::size_t begin = line.find_first_not_of(" \t>");
  if (begin == std::string_view::npos) return;
  const std::size_t end = std::min(line.find_first_of(" \t", begin), line.size());
  const std::string_view name = line.substr(begin, end - begin);
  const bool is_name = std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
  const std::size_t dots = std::min(line.find_first_not_of(' ', end), line.size());
  std::size_t value = dots;
  while (value < line.size() && line[value] == '.') ++value;
  // A number may begin with a dot of its own.
  if (value == dots + 1) value = dots;
  value = std::min(line.find_first_not_of(' ', value), line.size());
  if (!is_name || name.empty()) return;
  std::string_view text = line.substr(value);
  for (const std::string_view mark : {"...default", "...updated"}) {
    if (text.ends_with(mark)) text.remove_suffix(mark.size());
  }
  while (!text.empty() && (text.back() == '.' || text.back() == ' ' || text.back() == '\r')) {
    text.remove_suffix(1);
  }
  out.emplace(name, text);
}

// "['core_attn', 'mlp']", "AttnBackend.flash", "torch.bfloat16".
std::vector<std::string> values_of(std::string_view text) {
  for (const Renamed& type : kTypes) {
    if (text == type.argument) return {std::string(type.flag)};
  }
  if (text.starts_with('[') && text.ends_with(']')) {
    std::vector<std::string> out(1);
    for (const char c : text.substr(1, text.size() - 2)) {
      if (c == ',') {
        out.emplace_back();
      } else if (c != '\'' && c != '"' && c != ' ') {
        out.back() += c;
      }
    }
    return out;
  }
  constexpr std::string_view kBackend = "AttnBackend.";
  if (text.starts_with(kBackend)) text.remove_prefix(kBackend.size());
  return {std::string(text)};
}

// A list of expert layers is one expression on the command line.
std::vector<std::string> words_of(std::string_view name, std::string_view value) {
  if (name == "moe_layer_freq") return {std::string(value)};
  return values_of(value);
}

std::string flag_of(std::string_view name) {
  const auto renamed = std::ranges::find(kRenamed, name, &Renamed::argument);
  if (renamed != std::end(kRenamed)) return std::string(renamed->flag);
  std::string out = "--" + std::string(name);
  std::ranges::replace(out, '_', '-');
  return out;
}

bool says_something(const Arguments& arguments, std::string_view name) {
  if (name == "virtual_pipeline_model_parallel_size") {
    return !is_on(arguments, "num_layers_per_virtual_pipeline_stage") &&
           !is_on(arguments, "num_virtual_stages_per_pipeline_rank") &&
           !is_on(arguments, "pipeline_model_parallel_layout");
  }
  if (name == "recompute_modules") {
    const auto how = arguments.find("recompute_granularity");
    return how != arguments.end() && how->second == "selective";
  }
  return std::ranges::all_of(kConditions, [&](const Condition& condition) {
    return !name.starts_with(condition.beginning) || is_on(arguments, condition.needed);
  });
}

}  // namespace

bool are_megatron_arguments(std::string_view text) {
  for (std::size_t at = text.find("num_layers "); at != std::string_view::npos;
       at = text.find("num_layers ", at + 1)) {
    const std::size_t dots =
        text.find_first_not_of(' ', at + std::string_view("num_layers").size());
    if (dots != std::string_view::npos && text.substr(dots).starts_with("....")) return true;
  }
  return false;
}

MegatronArguments read_megatron_arguments(std::string_view text) {
  Arguments arguments;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    read_line(text.substr(begin, end - begin), arguments);
    begin = end + 1;
  }
  MegatronArguments out;
  for (const auto& [name, value] : arguments) {
    const auto negated = std::ranges::find(kNegated, name, &Renamed::argument);
    if (negated != std::end(kNegated)) {
      if (value == "False") out.words.emplace_back(negated->flag);
      continue;
    }
    // Megatron turns it off by itself where no chunks are interleaved.
    if (name == "overlap_p2p_comm") {
      if (value == "False" && is_on(arguments, "virtual_pipeline_model_parallel_size")) {
        out.words.emplace_back("--no-overlap-p2p-communication");
      }
      continue;
    }
    if (is_off(value) || value.starts_with("--") || !says_something(arguments, name)) continue;
    out.words.push_back(flag_of(name));
    if (value == "True") {
      out.switches.push_back(out.words.back());
    } else {
      const auto values = words_of(name, value);
      out.words.insert(out.words.end(), values.begin(), values.end());
    }
  }
  if (const auto world = arguments.find("world_size"); world != arguments.end()) {
    const std::string& count = world->second;
    std::int64_t gpus = 0;
    const auto [end, error] = std::from_chars(count.data(), count.data() + count.size(), gpus);
    if (error == std::errc() && end == count.data() + count.size() && gpus > 0) out.gpus = gpus;
  }
  return out;
}

}  // namespace stepcast
