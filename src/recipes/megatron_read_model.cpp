// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/json_tree.h"
#include "recipes/megatron.h"
#include "recipes/megatron_read.h"
#include "recipes/megatron_text.h"

namespace stepcast {
namespace {

// GPT-2's own tokenizer is the only one whose size its name says.
constexpr std::int64_t kGpt2Vocab = 50257;

void read_vocab(FlagList& flags) {
  ImportedScenario& out = flags.imported();
  const auto type = flags.text("--tokenizer-type");
  const auto size = flags.integer("--vocab-size");
  const auto padded = flags.integer("--padded-vocab-size");
  if (size) {
    const bool adds_one = type == "NullTokenizer";  // an end-of-document token of its own
    out.set_integer("model.vocab", *size + (adds_one ? 1 : 0), "--vocab-size");
  } else if (padded) {
    out.set_integer("model.vocab", *padded, "--padded-vocab-size");
  } else if (type == "GPT2BPETokenizer" || (!type && flags.has("--merge-file"))) {
    out.set_integer("model.vocab", kGpt2Vocab, "--tokenizer-type");
  } else {
    out.warnings.push_back(
        "the vocabulary is in the tokenizer's files, not in the flags: --set model.vocab=N");
  }
  if (const auto multiple = flags.integer("--make-vocab-size-divisible-by")) {
    out.set_integer("model.vocab_multiple", *multiple, "--make-vocab-size-divisible-by");
  }
}

void read_attention(FlagList& flags) {
  ImportedScenario& out = flags.imported();
  const bool grouped = flags.given("--group-query-attention");
  const auto groups = flags.integer("--num-query-groups");
  if (grouped) {
    out.set_integer("model.kv_heads", groups.value_or(1), "--num-query-groups");
  } else if (groups) {
    out.warnings.push_back("--num-query-groups has no effect without --group-query-attention");
  }
  if (const auto channels = flags.integer("--kv-channels")) {
    out.set_integer("model.head_dim", *channels, "--kv-channels");
  }
  if (flags.given("--qk-layernorm")) out.set_flag("model.query_key_norm", true, "--qk-layernorm");
  if (flags.given("--multi-latent-attention")) {
    const char* origin = "--multi-latent-attention";
    out.set_integer("model.mla.q_lora_rank", flags.integer("--q-lora-rank").value_or(0), origin);
    out.set_integer("model.mla.kv_lora_rank", flags.integer("--kv-lora-rank").value_or(32), origin);
    out.set_integer("model.mla.qk_nope_head_dim", flags.integer("--qk-head-dim").value_or(128),
                    origin);
    out.set_integer("model.mla.qk_rope_head_dim",
                    flags.integer("--qk-pos-emb-head-dim").value_or(64), origin);
    out.set_integer("model.mla.v_head_dim", flags.integer("--v-head-dim").value_or(128), origin);
  }
}

void read_position(FlagList& flags) {
  ImportedScenario& out = flags.imported();
  auto type = flags
                  .choice("--position-embedding-type",
                          {"learned_absolute", "rope", "mrope", "relative", "none"})
                  .value_or("learned_absolute");
  if (flags.given("--use-rotary-position-embeddings")) type = "rope";
  if (flags.given("--no-position-embedding") && type != "rope") type = "none";
  if (type == "relative" || type == "mrope") {
    out.fail(ErrorCode::kNotSupported, "--position-embedding-type",
             fmt::format("{} is not supported yet", type), "learned_absolute, rope or none");
    return;
  }
  out.set_word("model.position", type == "learned_absolute" ? "learned" : type,
               "--position-embedding-type");
}

void read_numerics(FlagList& flags) {
  ImportedScenario& out = flags.imported();
  const auto number = [&](const char* flag, const char* path) {
    if (const auto value = flags.number(flag)) out.set_number(path, *value, flag);
  };
  number("--norm-epsilon", "model.norm_epsilon");
  number("--rotary-base", "model.rope_base");
  const auto type = flags.choice("--rope-type", {"rope", kYarn});
  const auto factor = flags.number("--rotary-scaling-factor");
  if (type == kYarn) {
    out.set_word("model.rope_scaling", kYarn, "--rope-type");
    out.set_number("model.rope_factor", factor.value_or(1), "--rotary-scaling-factor");
  }
  const double usual = 8;
  const auto of_llama = flags.number("--rope-scaling-factor");
  if (flags.given("--use-rope-scaling")) {
    out.set_word("model.rope_scaling", kLlamaScaling, "--use-rope-scaling");
    out.set_number("model.rope_factor", of_llama.value_or(usual), "--rope-scaling-factor");
  }
}

void read_mlp(FlagList& flags) {
  ImportedScenario& out = flags.imported();
  const bool swiglu = flags.given("--swiglu");
  const bool gated = flags.given("--quick-geglu") || swiglu;
  flags.given("--squared-relu");  // two matrices, as gelu
  out.set_word("model.mlp", gated ? "swiglu" : "gelu", gated ? "--swiglu" : "");
  if (const auto ffn = flags.integer("--ffn-hidden-size")) {
    out.set_integer("model.ffn", *ffn, "--ffn-hidden-size");
  } else if (const auto hidden = out.integer("model.hidden")) {
    // The width that keeps the parameters of 4 x hidden, in whole multiples of 64.
    const std::int64_t kept = 8 * *hidden / 3 / 64 * 64;
    out.set_integer("model.ffn", swiglu ? kept : 4 * *hidden, "--ffn-hidden-size");
  }
}

void read_biases(FlagList& flags) {
  ImportedScenario& out = flags.imported();
  const bool biases = !flags.given("--disable-bias-linear");
  const bool qkv = flags.given("--add-qkv-bias");
  out.set_flag("model.biases", biases, "--disable-bias-linear");
  if (qkv && !biases) out.set_flag("model.qkv_bias", true, "--add-qkv-bias");
  const auto norm = flags.choice("--normalization", {"LayerNorm", "RMSNorm"});
  const bool rms = norm == "RMSNorm";
  out.set_word("model.norm", rms ? "rmsnorm" : "layernorm", "--normalization");
  if (!rms && !biases) out.set_flag("model.norm_bias", true, "--normalization");
  out.set_flag("model.tied_embeddings", !flags.given("--untie-embeddings-and-output-weights"),
               "--untie-embeddings-and-output-weights");
}

void read_dropout(FlagList& flags) {
  ImportedScenario& out = flags.imported();
  const auto attention = flags.number("--attention-dropout");
  const auto hidden = flags.number("--hidden-dropout");
  if (!attention && !hidden) return;
  constexpr double kUsual = 0.1;
  const double of_hidden = hidden.value_or(kUsual);
  if (attention.value_or(kUsual) != of_hidden) {
    out.warnings.push_back(fmt::format(
        "--attention-dropout {} and --hidden-dropout {} differ: a scenario has one, the latter",
        attention.value_or(kUsual), of_hidden));
  }
  out.set_number("model.dropout", of_hidden, "--hidden-dropout");
}

void read_windows(FlagList& flags) {
  ImportedScenario& out = flags.imported();
  auto size = flags.text("--window-size");
  const auto frequency = flags.integer("--window-attn-skip-freq");
  if (!size) return;
  std::erase_if(*size, [](char c) { return c == '(' || c == ')' || c == ' '; });
  const std::string left = size->substr(0, size->find(','));
  const bool count =
      !left.empty() && left.size() < 10 &&
      std::all_of(left.begin(), left.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!count) {
    out.fail(ErrorCode::kBadValue, "--window-size", fmt::format("'{}' is no window", *size),
             "LEFT,RIGHT, as in 128,0");
    return;
  }
  // So many earlier tokens, and the token itself.
  out.set_integer("model.attention_window", std::stoll(left) + 1, "--window-size");
  if (frequency) {
    out.set_integer("model.attention_window_every", *frequency, "--window-attn-skip-freq");
  }
}

// Dense layers first, or one expert layer in so many, or a list of its own.
void set_expert_layers(const std::vector<bool>& pattern, ImportedScenario& out) {
  const char* origin = "--moe-layer-freq";
  const auto first = std::find(pattern.begin(), pattern.end(), true);
  if (std::all_of(first, pattern.end(), [](bool expert) { return expert; })) {
    out.set_integer("model.moe.dense_layers", first - pattern.begin(), origin);
    return;
  }
  const std::size_t every = static_cast<std::size_t>(first - pattern.begin()) + 1;
  bool regular = every > 1;
  std::string list;
  for (std::size_t layer = 0; layer < pattern.size(); ++layer) {
    regular = regular && pattern[layer] == ((layer + 1) % every == 0);
    if (pattern[layer]) list += fmt::format("{}{}", list.empty() ? "" : ",", layer);
  }
  if (regular) {
    out.set_integer("model.moe.layer_every", static_cast<std::int64_t>(every), origin);
  } else {
    out.set_json("model.moe.layer_list", "[" + list + "]", origin);
  }
}

// Buffers of rows that are sized beforehand, each by a factor of the balanced case. A negative one
// of the stash changes where Megatron takes that case from, not what it is
// (core/transformer/moe/paged_stash.py, whose usual factor is 1.1).
void read_room_for_rows(FlagList& flags) {
  constexpr double kUsualStash = 1.1;
  ImportedScenario& out = flags.imported();
  const auto room = flags.number("--moe-expert-rank-capacity-factor");
  const auto stash = flags.number("--moe-paged-stash-buffer-size-factor-cuda");
  if (room) {
    out.set_number("model.moe.rank_capacity_factor", *room, "--moe-expert-rank-capacity-factor");
  }
  if (flags.given("--moe-paged-stash")) {
    out.set_number("model.moe.stash_factor", std::abs(stash.value_or(kUsualStash)),
                   "--moe-paged-stash-buffer-size-factor-cuda");
  }
}

void read_expert_sizes(FlagList& flags) {
  ImportedScenario& out = flags.imported();
  const auto experts = flags.integer("--num-experts", 0);
  const auto pattern = flags.text("--moe-layer-freq");
  if (experts.value_or(0) == 0) return;
  out.set_integer("model.moe.experts", *experts, "--num-experts");
  out.set_integer("model.moe.top_k", flags.integer("--moe-router-topk").value_or(2),
                  "--moe-router-topk");
  if (const auto ffn = flags.integer("--moe-ffn-hidden-size")) {
    out.set_integer("model.moe.ffn", *ffn, "--moe-ffn-hidden-size");
  }
  if (const auto shared = flags.integer("--moe-shared-expert-intermediate-size")) {
    out.set_integer("model.moe.shared_ffn", *shared, "--moe-shared-expert-intermediate-size");
    out.set_flag("model.moe.shared_gate", flags.given("--moe-shared-expert-gate"),
                 "--moe-shared-expert-gate");
  }
  const std::int64_t layers = out.integer("model.layers").value_or(0);
  if (const auto list = pattern ? read_layer_pattern(*pattern, layers) : std::nullopt) {
    set_expert_layers(*list, out);
  } else if (pattern) {
    out.fail(ErrorCode::kBadValue, "--moe-layer-freq", fmt::format("'{}' is not read", *pattern),
             fmt::format("a count, or a list of 0 and 1 for {} layers, as ([0]*3+[1]*58)", layers));
  }
  if (flags.given("--moe-router-enable-expert-bias")) {
    out.set_flag("model.moe.router_bias", true, "--moe-router-enable-expert-bias");
  }
  if (const auto capacity = flags.number("--moe-expert-capacity-factor")) {
    out.set_number("model.moe.capacity_factor", *capacity, "--moe-expert-capacity-factor");
    if (!flags.given("--moe-pad-expert-input-to-capacity")) {
      out.warnings.push_back(
          "--moe-expert-capacity-factor without --moe-pad-expert-input-to-capacity: stepcast pads "
          "the input of every expert to its capacity");
    }
  }
  const auto dispatcher =
      flags.choice("--moe-token-dispatcher-type", {"allgather", "alltoall", "flex"});
  const auto backend = flags.choice("--moe-flex-dispatcher-backend", {"deepep", "hybridep"});
  const bool deepep = flags.given("--moe-enable-deepep");  // its older name
  std::string way = dispatcher.value_or("allgather");
  if (way == "flex" && (backend || deepep)) way = backend.value_or("deepep");
  out.set_word("model.moe.dispatcher", way, "--moe-token-dispatcher-type");
  for (const auto& [flag, ways] :
       {std::pair("--moe-deepep-num-sms", std::array{"deepep", "flex"}),
        std::pair("--moe-hybridep-num-sms", std::array{"hybridep", ""})}) {
    const auto sms = flags.integer(flag);
    if (sms && std::ranges::find(ways, way) != ways.end()) {
      out.set_integer("model.moe.dispatcher_sms", *sms, flag);
    }
  }
  read_room_for_rows(flags);
  // How routing is scored and products are grouped is stepcast's own assumption.
  for (const char* known :
       {"--moe-grouped-gemm", "--moe-router-score-function", "--moe-router-pre-softmax",
        "--moe-router-dtype", "--moe-router-load-balancing-type"}) {
    flags.given(known);
  }
}

}  // namespace

void read_megatron_model(FlagList& flags) {
  read_vocab(flags);
  read_attention(flags);
  read_position(flags);
  read_numerics(flags);
  read_mlp(flags);
  read_biases(flags);
  read_dropout(flags);
  read_windows(flags);
  if (const auto mtp = flags.integer("--mtp-num-layers")) {
    flags.imported().set_integer("model.mtp_layers", *mtp, "--mtp-num-layers");
  }
  read_expert_sizes(flags);
}

}  // namespace stepcast
