// SPDX-License-Identifier: Apache-2.0
// LoRA and QLoRA: docs/memory.md, "Adapters". r rank, P base parameters, A adapter parameters.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "core/each.h"
#include "expert_scenarios.h"
#include "memory/states.h"
#include "program/decoder_layer.h"
#include "program/program.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

using testing::gpt;
using testing::GptCase;
using testing::scenario_from;

GptCase adapters(const std::string& mode, int rank = 8) {
  GptCase c;
  c.dropout = 0;
  c.extra_training = R"(, "mode": ")" + mode + R"(", "lora_rank": )" + std::to_string(rank);
  return c;
}

// A shipped model on one GPU.
Scenario tuned(const std::string& model, const std::string& mode, int rank,
               const std::string& framework = "megatron") {
  return scenario_from(R"({"stepcast": 1, "model": ")" + model +
                       R"(", "cluster": {"base": "dgx-h100", "gpus": 1},
                       "training": {"framework": ")" +
                       framework + R"(", "global_batch": 1, "sequence_length": 512, "mode": ")" +
                       mode + R"(", "lora_rank": )" + std::to_string(rank) + "}}");
}

double gemm_flops(const std::vector<Operation>& operations, bool of_adapters) {
  double sum = 0;
  for (const Operation& operation : operations) {
    if (!std::holds_alternative<Gemm>(operation.work)) continue;
    if (std::string(operation.name).starts_with("adapter") == of_adapters) {
      sum += flops_of(operation).value();
    }
  }
  return sum;
}

ByteCount persistent(const Program& program, MemoryCategory category) {
  return program.roles[0].persistent[static_cast<std::size_t>(category)];
}

// artidoro/qlora reports 159,907,840 trainable parameters for LLaMA-7B with rank 64 on all linear
// layers: 32 x 64 x (4 x 8,192 + 3 x 15,104).
TEST(Adapters, OfLlama7BWithRank64AreAsManyAsQloraTrains) {
  const Scenario scenario = tuned("llama-7b", "qlora", 64, "deepspeed");
  EXPECT_EQ(scenario.adapter_elements(), 159'907'840);
  EXPECT_EQ(lower(scenario).roles[0].parameters, 159'907'840);
}

// Megatron packs query, key and value, and gate and up, and has one adapter beside each: the halves
// of 4096 columns of key, value and gate are missing, 32 x 64 x 3 x 4,096.
TEST(Adapters, OfMegatronAreOneForEachPackedMatrix) {
  const Scenario scenario = tuned("llama-7b", "lora", 64);
  EXPECT_EQ(scenario.adapter_elements(), 159'907'840 - 32 * 64 * 3 * 4096);
  EXPECT_EQ(lower(scenario).roles[0].parameters, scenario.adapter_elements());
  const Block layer = lower_decoder_layer(scenario, RecomputeMode::kNone);
  int downs = 0;
  for (const Operation& operation : layer.pass(Pass::kForward).operations) {
    downs += std::string(operation.name) == "adapter_down" ? 1 : 0;
  }
  EXPECT_EQ(downs, 4);  // query to value, output, gate and up, down
}

// x of s h elements in 2 bytes, read and written, and a mask of 1: forward the rest of x, backward
// its gradient, of each adapter's inputs. Both are kept for backward.
TEST(Adapters, DropSomeOfTheirInputs) {
  GptCase c = adapters("lora");
  GptCase whole = c;
  c.extra_training += R"(, "lora_dropout": 0.1)";
  const auto dropped = [](const Block& layer, Pass pass) {
    double bytes = 0;
    for (const Operation& operation : layer.pass(pass).operations) {
      if (std::string(operation.name) == "adapter_dropout") {
        bytes += memory_bound(operation.work)->bytes;
      }
    }
    return bytes;
  };
  const Block with = lower_decoder_layer(gpt(c), RecomputeMode::kNone);
  const Block without = lower_decoder_layer(gpt(whole), RecomputeMode::kNone);
  // qkv, attention_out and up read h, down reads 4 h.
  const double inputs = static_cast<double>(c.sequence * 7 * c.hidden);
  EXPECT_DOUBLE_EQ(dropped(with, Pass::kForward), 5 * inputs);
  EXPECT_DOUBLE_EQ(dropped(with, Pass::kBackward), 5 * inputs);
  EXPECT_EQ(dropped(without, Pass::kForward), 0);
  const auto saved = [](const Block& layer) {
    return static_cast<double>(total(layer.pass(Pass::kForward).memory.after));
  };
  // Nobody else keeps the inputs of frozen matrices: the rest of x takes their place.
  EXPECT_DOUBLE_EQ(saved(with) - saved(without), inputs);
}

// The reduction of a frozen matrix's input gradient is cut with the product before it, because no
// weight gradient runs beside it; that of a trained one stays beside the weight gradient.
TEST(Adapters, AFrozenInputGradientIsReducedWithItsProduct) {
  for (const bool frozen : {false, true}) {
    GptCase c = frozen ? adapters("lora") : GptCase{};
    c.dropout = 0;
    c.tp = 4;
    c.sequence_parallel = true;
    c.extra_layout = R"(, "overlap": {"tp": true})";
    const Block layer = lower_decoder_layer(gpt(c), RecomputeMode::kNone);
    int reductions = 0;
    for (const Operation& operation : layer.pass(Pass::kBackward).operations) {
      if (std::string(operation.name) != "mlp_input_gradient") continue;
      const auto* reduction = std::get_if<Collective>(&operation.work);
      if (reduction == nullptr) continue;
      EXPECT_EQ(reduction->overlapped, frozen);
      EXPECT_EQ(operation.stream == BlockStream::kCompute, frozen);
      ++reductions;
    }
    EXPECT_EQ(reductions, 1);
  }
}

TEST(Adapters, OfAllRanksAreThoseOfTheModel) {
  for (const int tp : {1, 2, 4}) {
    GptCase c = adapters("lora");
    c.tp = tp;
    const Scenario scenario = gpt(c);
    std::int64_t cut = 0, whole = 0, frozen = 0;
    const Program program = lower(scenario);
    for (const BlockId id : program.roles[0].chunks[0].blocks) {
      cut += program.block(id).parameters.sharded;
      whole += program.block(id).parameters.replicated;
      if (tp == 1) frozen += program.block(id).frozen.elements();
    }
    EXPECT_EQ(cut * tp + whole, scenario.adapter_elements());
    if (tp == 1) {
      EXPECT_EQ(frozen, count_parameters(scenario.model).total());
    }
  }
}

// Megatron: 2 P of weights, and of adapters alone parameters, fp32 gradients, master weights and
// moments: 18 A.
TEST(Adapters, OnlyTheyHaveGradientsAndStates) {
  const Scenario scenario = tuned("llama-7b", "lora", 16);
  const Program program = lower(scenario);
  const std::int64_t a = scenario.adapter_elements();
  const std::int64_t p = count_parameters(scenario.model).total();
  EXPECT_EQ(persistent(program, MemoryCategory::kParameters), 2 * p + 2 * a);
  EXPECT_EQ(persistent(program, MemoryCategory::kGradients), 4 * a);
  EXPECT_EQ(persistent(program, MemoryCategory::kOptimizer), 12 * a);
  EXPECT_EQ(checkpoint_bytes(scenario), 14 * a);
}

// Hu et al. 2021, section 4.2: GPT-3 takes 350 GB with LoRA of rank 4, not 1.2 TB.
TEST(Adapters, OfGpt3LeaveThe350GigabytesOfItsWeights) {
  const Scenario scenario = scenario_from(R"({"stepcast": 1, "model": "gpt3-175b",
      "cluster": {"base": "dgx-a100-80g", "nodes": 1},
      "training": {"global_batch": 1, "sequence_length": 384, "mode": "lora", "lora_rank": 4},
      "layout": {"tp": 8}})");
  const Program program = lower(scenario);
  EXPECT_NEAR(8 * static_cast<double>(total(program.roles[0].persistent)) / 1e9, 350, 5);
}

// Dettmers et al. 2023, section 3: 64 weights to an 8-bit scale, 256 scales to an fp32 one: 4.127
// bits; without the second quantisation 0.373 bits more, 3 GB for 65B.
TEST(FourBitBase, TakesFourBitsAndAnEighthOfOne) {
  EXPECT_NEAR(8 * kFourBitBytes, 4.127, 5e-4);
  EXPECT_NEAR((4 + 32.0 / 64 - 8 * kFourBitBytes) / 8 * 65e9 / 1e9, 3.0, 0.05);
  const FrozenWeights weights{.plain = 10, .four_bit = 64 * 256};
  EXPECT_EQ(weights.bytes(DataType::kBf16), 20 + 64 * 256 / 2 + 256 + 4);
}

// Linear layers of the decoder are packed; tables, head and norms stay in 16 bits.
TEST(FourBitBase, HoldsTheLinearLayersOfTheDecoder) {
  const Scenario scenario = tuned("llama-7b", "qlora", 16);
  const Program program = lower(scenario);
  FrozenWeights frozen;
  for (const BlockId id : program.roles[0].chunks[0].blocks) {
    frozen.plain += program.block(id).frozen.plain;
    frozen.four_bit += program.block(id).frozen.four_bit;
  }
  const std::int64_t h = 4096, ffn = 11008, layers = 32;
  EXPECT_EQ(frozen.four_bit, layers * (4 * h * h + 3 * h * ffn));
  EXPECT_EQ(frozen.plain, 2 * 32000 * h + (2 * layers + 1) * h);
  EXPECT_EQ(persistent(program, MemoryCategory::kParameters),
            frozen.bytes(DataType::kBf16) + 2 * scenario.adapter_elements());
}

// Forward 2 per weight and token, backward the gradient of the input alone: 2 x forward. Adapters
// three times their forward.
TEST(Adapters, TheBaseIsMultipliedTwiceAndTheyThreeTimes) {
  for (const int tp : {1, 4}) {
    GptCase c = adapters("lora");
    c.tp = tp;
    c.attention = "flash";
    const Block layer = lower_decoder_layer(gpt(c), RecomputeMode::kNone);
    const double base = 24.0 * c.sequence * c.hidden * c.hidden / tp;
    EXPECT_DOUBLE_EQ(gemm_flops(layer.pass(Pass::kForward).operations, false), base);
    EXPECT_DOUBLE_EQ(gemm_flops(layer.pass(Pass::kBackward).operations, false), base);
    const double own = gemm_flops(layer.pass(Pass::kForward).operations, true);
    EXPECT_DOUBLE_EQ(gemm_flops(layer.pass(Pass::kBackward).operations, true), 2 * own);
    if (tp == 1) {
      EXPECT_DOUBLE_EQ(
          own, 2.0 * c.sequence * static_cast<double>(gpt(c).adapter_elements()) / c.layers);
    }
  }
}

TEST(Adapters, NoWeightOfTheBaseHasAGradient) {
  const Program program = lower(gpt(adapters("lora")));
  int gradients = 0;
  for (const Block& block : program.blocks) {
    for (const Operation& operation : block.pass(Pass::kBackward).operations) {
      const auto* gemm = std::get_if<Gemm>(&operation.work);
      if (gemm == nullptr || gemm->role != GemmRole::kWeightGradient) continue;
      EXPECT_TRUE(std::string(operation.name).starts_with("adapter")) << operation.name;
      ++gradients;
    }
  }
  EXPECT_GT(gradients, 0);
}

// Every linear layer's input is kept for its adapter as it was for its weight; x A^T beside it, for
// query to value, output, up and down: 4 r of 2 bytes per token.
TEST(Adapters, KeepWhatTrainingKeepsAndTheirNarrowProducts) {
  GptCase c = adapters("lora", 8);
  GptCase full;
  full.dropout = 0;
  const auto saved = [](const GptCase& one) {
    return total(
        lower_decoder_layer(gpt(one), RecomputeMode::kNone).pass(Pass::kForward).memory.after);
  };
  EXPECT_EQ(saved(c), saved(full) + 2 * 4 * 8 * c.sequence);
}

TEST(FourBitBase, IsExpandedBeforeEachOfItsProducts) {
  const GptCase c = adapters("qlora");
  const Block layer = lower_decoder_layer(gpt(c), RecomputeMode::kFull);
  const auto expanded = [](const std::vector<Operation>& operations) {
    int products = 0;
    for (std::size_t i = 0; i < operations.size(); ++i) {
      const auto* cast = std::get_if<Cast>(&operations[i].work);
      if (cast == nullptr || cast->subject != CastSubject::kFourBitWeight) continue;
      // The product behind it reads what it wrote.
      EXPECT_TRUE(std::holds_alternative<Gemm>(operations[i + 1].work));
      EXPECT_EQ(operations[i + 1].reads.back(), operations[i].writes.front());
      // Weights of a product of m tokens: n x k.
      const Gemm& gemm = std::get<Gemm>(operations[i + 1].work);
      const double elements = static_cast<double>(gemm.n * gemm.k);
      EXPECT_DOUBLE_EQ(memory_bound(operations[i].work)->bytes, elements * (kFourBitBytes + 2));
      ++products;
    }
    return products;
  };
  EXPECT_EQ(expanded(layer.pass(Pass::kForward).operations), 4);
  EXPECT_EQ(expanded(layer.pass(Pass::kBackward).operations),
            8);  // four products again, four gradients
}

// Reduced, and gathered again, are adapters alone.
TEST(Adapters, OnlyTheirGradientsAreReduced) {
  GptCase c = adapters("lora");
  c.dp = 4;
  c.zero = 1;
  const Scenario scenario = gpt(c);
  const std::int64_t a = scenario.adapter_elements();
  ByteCount reduced = 0, gathered = 0;
  const Program program = lower(scenario);
  for (const Instruction& instruction : program.roles[0].instructions) {
    const auto* call = instruction.as<CollectiveCall>();
    if (call == nullptr || call->group != AxisGroup::kData) continue;
    (call->purpose == Purpose::kParameters ? gathered : reduced) += call->message.bytes;
  }
  EXPECT_EQ(reduced, 4 * a);
  EXPECT_EQ(gathered, 2 * a);
}

// The half of an adapter that a rank holds whole saw a part of the features.
TEST(Adapters, WholeHalvesAreSummedOverTensorRanks) {
  GptCase c = adapters("lora");
  c.tp = 4;
  const Scenario scenario = gpt(c);
  const Program program = lower(scenario);
  std::int64_t whole = 0;
  for (const BlockId id : program.roles[0].chunks[0].blocks) {
    whole += program.block(id).parameters.replicated;
  }
  // A of query to value and of up; B of output and down.
  EXPECT_EQ(whole, c.layers * 8 * (2 * c.hidden + 2 * c.hidden));
  ByteCount summed = 0;
  for (const Instruction& instruction : program.roles[0].instructions) {
    const auto* call = instruction.as<CollectiveCall>();
    if (call != nullptr && call->purpose == Purpose::kReplicatedGradients)
      summed += call->message.bytes;
  }
  EXPECT_EQ(summed, 4 * whole);
}

// FSDP gathers the frozen weights with the adapters and reduces nothing but adapters.
TEST(Adapters, UnderFsdpTheBaseIsShardedAndGathered) {
  GptCase c = adapters("qlora");
  c.framework = "fsdp";
  c.zero = 3;
  c.dp = 4;
  const Scenario scenario = gpt(c);
  const Program program = lower(scenario);
  const Block layer = lower_decoder_layer(scenario, RecomputeMode::kNone);
  FrozenWeights frozen;
  for (const BlockId id : program.roles[0].chunks[0].blocks) {
    frozen.plain += program.block(id).frozen.plain;
    frozen.four_bit += program.block(id).frozen.four_bit;
  }
  const std::int64_t a = scenario.adapter_elements();
  EXPECT_EQ(persistent(program, MemoryCategory::kParameters),
            4 * a / 4 + (frozen.bytes(DataType::kBf16) + 3) / 4);
  for (const Instruction& instruction : program.roles[0].instructions) {
    const std::string name = instruction.name;
    if (name == "gather_unit") {
      EXPECT_EQ(instruction.bytes(),
                2 * layer.parameters.total() + layer.frozen.bytes(DataType::kBf16));
    }
    if (name == "reduce_unit") {
      EXPECT_EQ(instruction.bytes(), 4 * layer.parameters.total());
    }
    EXPECT_NE(name, "reduce_root");
  }
}

// A tied table on both ends of a pipeline is frozen on both.
TEST(Adapters, AFrozenTiedTableIsReducedByNobody) {
  for (const int zero : {0, 1}) {
    GptCase c = adapters("lora");
    c.pp = 2;
    c.dp = 2;
    c.zero = zero;
    for (const Role& role : each_of(lower(gpt(c)).roles)) {
      for (const Instruction& instruction : role.instructions) {
        const auto* call = instruction.as<CollectiveCall>();
        EXPECT_FALSE(call != nullptr && call->purpose == Purpose::kTiedTable);
        EXPECT_GE(instruction.bytes(), 0);
      }
    }
  }
}

std::int64_t trained(const Scenario& scenario) {
  std::int64_t sum = 0;
  for (const Role& role : lower(scenario).roles) sum += role.parameters;
  return sum;
}

testing::ExpertCase adapted_experts() {
  testing::ExpertCase c;
  c.shared_ffn = 256;
  c.dense_layers = 1;
  c.dp = 1;
  c.global_batch = 2;
  c.zero = 0;
  c.more_training = R"(,"mode":"lora","lora_rank":8)";
  return c;
}

// One layer dense, one of 16 experts: attention 2 x (4 h + 4 h), of Megatron 2 x (h + 3 h + 2 h);
// MLPs of inputs and outputs, gate and up as one matrix where they are packed.
TEST(Adapters, OfExpertsAreOneForEach) {
  testing::ExpertCase c = adapted_experts();
  const std::int64_t h = c.hidden, f = c.ffn, dense = 4 * h, shared = c.shared_ffn;
  const std::int64_t expert = h + 2 * f + f + h;  // gate and up packed
  c.zero = 3;
  c.more_training += R"(,"framework":"fsdp")";
  std::string text = text_of(c);
  text.erase(text.find(R"(,"framework":"megatron")"), 23);
  const Scenario own = scenario_from(text);
  EXPECT_EQ(own.adapter_elements(), 8 * (2 * 8 * h + (2 * (h + dense) + dense + h) +
                                         (2 * (h + shared) + shared + h) + 16 * expert));
  EXPECT_EQ(trained(own), own.adapter_elements());
  // A token meets those of four experts.
  EXPECT_EQ(own.adapter_elements() - own.active_adapter_elements(), 8 * 12 * expert);
}

// Megatron-Bridge has one adapter beside all experts of a rank.
TEST(Adapters, OfMegatronsExpertsAreOneForTheExpertsOfARank) {
  testing::ExpertCase c = adapted_experts();
  const std::int64_t h = c.hidden, f = c.ffn, dense = 4 * h, shared = c.shared_ffn;
  const Scenario one = testing::with_experts(c);
  EXPECT_EQ(one.adapter_elements(),
            8 * (2 * 6 * h + (h + 3 * dense + h) + (h + 3 * shared + h) + (h + 3 * f + h)));
  EXPECT_EQ(trained(one), one.adapter_elements());
  c.dp = c.ep = 4;
  c.global_batch = 8;
  const Scenario four = testing::with_experts(c);
  EXPECT_EQ(four.adapter_elements() - one.adapter_elements(), 3 * 8 * (h + 3 * f + h));
  EXPECT_EQ(trained(four), one.adapter_elements());
}

// Grouped products of each expert's adapter, and none of gradients of the frozen experts.
TEST(Adapters, OfExpertsRunAsGroupedProducts) {
  testing::ExpertCase c = adapted_experts();
  c.shared_ffn = c.dense_layers = 0;
  c.zero = 3;
  c.more_training += R"(,"framework":"fsdp")";
  std::string text = text_of(c);
  text.erase(text.find(R"(,"framework":"megatron")"), 23);
  const Scenario scenario = scenario_from(text);
  const Block layer = lower_decoder_layer(scenario, RecomputeMode::kNone, BackwardForm::kWhole,
                                          LayerKind{.experts = true});
  const double rows = c.sequence * c.top_k, h = c.hidden, f = c.ffn;
  double adapters = 0, experts = 0;
  for (const Pass pass : {Pass::kForward, Pass::kBackward}) {
    for (const Operation& operation : layer.pass(pass).operations) {
      if (!std::holds_alternative<GroupedGemm>(operation.work)) continue;
      const bool own = std::string(operation.name).starts_with("adapter");
      (own ? adapters : experts) += flops_of(operation).value();
    }
  }
  EXPECT_EQ(adapters, 3 * 2 * rows * 8 * (h + 2 * f + f + h));
  EXPECT_EQ(experts, 2 * 2 * rows * 3 * h * f);
}

// The projections down and up of queries, keys and values, and the one of the output.
TEST(Adapters, OfLatentAttentionAreBesideEachProjection) {
  testing::ExpertCase c = adapted_experts();
  c.shared_ffn = 0;
  c.dense_layers = c.layers;
  c.more_model = R"(,"mla":{"q_lora_rank":384,"kv_lora_rank":128,"qk_nope_head_dim":64,)"
                 R"("qk_rope_head_dim":32,"v_head_dim":64})";
  c.more_training += R"(,"lora_targets":["qkv"])";
  const std::int64_t h = c.hidden, a = c.heads;
  const std::int64_t widths = (h + 384) + (384 + a * 96) + (h + 128 + 32) + (128 + a * (64 + 64));
  const Scenario qkv = testing::with_experts(c);
  EXPECT_EQ(qkv.adapter_elements(), 2 * 8 * widths);
  EXPECT_EQ(trained(qkv), qkv.adapter_elements());
  // Whole on each tensor rank: adapters of projections down, and A of those up.
  c.tp = 2;
  const Program program = lower(testing::with_experts(c));
  std::int64_t whole = 0;
  for (const BlockId id : program.roles[0].chunks[0].blocks) {
    whole += program.block(id).parameters.replicated;
  }
  EXPECT_EQ(whole, 2 * 8 * ((h + 384) + 384 + (h + 128 + 32) + 128));
}

// In four bits all experts of a rank are expanded for their product.
TEST(Adapters, OfQloraExpandTheExperts) {
  testing::ExpertCase c = adapted_experts();
  c.shared_ffn = c.dense_layers = 0;
  c.more_training = R"(,"mode":"qlora")";
  const Block layer = lower_decoder_layer(testing::with_experts(c), RecomputeMode::kNone,
                                          BackwardForm::kWhole, LayerKind{.experts = true});
  const std::int64_t h = c.hidden, f = c.ffn;
  EXPECT_EQ(layer.frozen.four_bit, 4 * h * h + 16 * 3 * h * f);
  std::int64_t largest = 0;
  for (const Buffer& buffer : layer.buffers) {
    if (std::string(buffer.name) == "expanded_weight") largest = std::max(largest, buffer.elements);
  }
  EXPECT_EQ(largest, 16 * 2 * h * f);
}

}  // namespace
}  // namespace stepcast
