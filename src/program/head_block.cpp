// SPDX-License-Identifier: Apache-2.0
#include "program/head_block.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "layout/pipeline.h"
#include "layout/scenario.h"
#include "operation/steps.h"
#include "program/block_builder.h"
#include "program/fp8_operands.h"
#include "program/linear.h"
#include "program/liveness.h"
#include "program/prediction_block.h"
#include "program/prediction_module.h"
#include "program/product_weight.h"
#include "program/unit_copies.h"

namespace stepcast {
namespace {

// The logits of some tokens, and what the loss has made of them.
struct Loss {
  std::int64_t tokens = 0;
  BufferId probabilities;  // fp32, or the logits themselves where the loss leaves them in 16 bits
  BufferId statistics;     // largest logit, sum of exponentials and target logit of every token
};

struct HeadBuffers {
  BufferId input, normed;
  BufferId narrow;         // of the table's width
  LinearInput read;        // what the product with the table reads of it
  LinearInput projecting;  // what the projection to the table's width reads
  LinearOutput projected;
  Loss loss;  // of all tokens, where they are not taken in parts
};

struct HeadWeights {
  std::vector<ParameterId> norm;
  ParameterId table, bias;
  std::optional<Linear> projection;  // to a table of another width than the model (OPT-350M)
  ParameterId tokens;      // prediction modules look tokens up in it: the embedding's, or a copy
  std::int64_t ahead = 0;  // how many tokens a prediction module's are later than the model's own
};

HeadWeights declare_head(const Scenario& scenario, BlockBuilder& builder) {
  const Shape& shape = builder.shape();
  // A table that is tied to the embedding's is the same one only on the same stage.
  const bool own_table = !scenario.model.tied_embeddings || !ends_meet(scenario.layout);
  HeadWeights out;
  Parameter table{"table", shape.vocab, shape.table_width, Cut::kRows};
  const bool has_modules = scenario.model.mtp_layers > 0 && !scenario.layout.mtp_apart;
  if (has_modules && !scenario.model.tied_embeddings) {
    Parameter tokens = table;
    tokens.borrowed = scenario.layout.pp == 1;
    tokens.is_table = tokens.is_copy = true;
    out.tokens = builder.parameter(tokens);
  }
  table.borrowed = !own_table;
  table.in_fp8 = scenario.training.fp8_head;
  table.is_table = true;
  out.table = builder.parameter(table);
  if (!out.tokens.valid()) out.tokens = out.table;
  out.projection = table_projection(builder,
                                    {"project_out", "project_out_dgrad", "project_out_wgrad",
                                     "head_projected", "head_input_gradient"},
                                    shape.table_width, shape.hidden);
  if (scenario.model.final_norm) {
    out.norm = builder.norm_parameters(
        "final_norm", scenario.model.norm_bias ? "final_norm_bias" : nullptr, shape.hidden);
  }
  if (scenario.model.head_bias) out.bias = builder.vector("head_bias", shape.vocab, Cut::kRows);
  return out;
}

// Megatron and Megatron-DeepSpeed run the loss as separate fp32 kernels: cast, maximum, subtract,
// exponential, sum, divide (core/tensor_parallel/cross_entropy.py). PyTorch's cross_entropy is a
// cast, a log-softmax and a gather; backward a zeroed gradient and the log-softmax's own. A fused
// loss is one kernel in each direction, which reads the logits as they are.
struct LossTraffic {
  double forward, backward;  // bytes per logit
  std::int64_t forward_launches, backward_launches;
};
// One kernel in each direction, of this project or of flash-attn.
bool one_kernel(const Scenario& scenario) {
  return scenario.rules.fuses_neighbours || scenario.rules.takes_loss_metrics;
}

// Behind each backward Composer's trainer updates LanguageCrossEntropy and LanguagePerplexity from
// the logits (llm-foundry's use_train_metrics, true by default): each casts them to fp32 and takes
// their log-softmax. By then the activations are gone, so their memory is never the largest.
constexpr std::int64_t kMetrics = 2;

// PyTorch's loss of a vocabulary that tensor ranks share runs step by step in fp32
// (torch/distributed/tensor/parallel/loss.py): the largest, the distance from it, exponentials,
// their sum and the distance from its logarithm; backward a zeroed gradient, exponentials, their
// sum with it and a product. Each step writes a tensor.
bool loss_is_shared(const Scenario& scenario) {
  const FrameworkRules& rules = scenario.rules;
  return scenario.layout.tp > 1 && !rules.fuses_loss && !rules.loss_in_single_steps &&
         !one_kernel(scenario);
}

LossTraffic loss_traffic(const Scenario& scenario) {
  const auto element = static_cast<double>(Shape(scenario).element);
  if (loss_is_shared(scenario)) return {4 + 8 + 8 + 4 + 8, 4 + 8 + 12 + 8, 6, 4};
  // Megatron's own fusions (core/fusions/fused_cross_entropy.py): behind the cast and its maximum
  // the exponentials with their sums, and the division; backward the gradient, narrowed.
  if (scenario.rules.fuses_loss && !scenario.rules.takes_loss_metrics) {
    return {8 + 8, 4 + element, 4, 1};
  }
  if (scenario.rules.fuses_loss) {
    const double metric = (element + 4) + (4 + 4);
    return {element, 2 * element + kMetrics * metric, 1, 1 + 2 * kMetrics};
  }
  if (scenario.rules.fuses_neighbours) return {element, 2 * element, 1, 1};
  if (scenario.rules.loss_in_single_steps) return {4 + 8 + 8 + 4 + 8, 8, 14, 4};
  return {4 + 4, 4 + 12, 2, 2};
}

KernelSize loss_size(const Scenario& scenario, const BlockBuilder& builder, std::int64_t tokens,
                     bool backward) {
  const Shape& shape = builder.shape();
  const LossTraffic loss = loss_traffic(scenario);
  const KernelSize size =
      builder.size(tokens * shape.vocab, shape.vocab, backward ? loss.backward : loss.forward,
                   backward ? loss.backward_launches : loss.forward_launches);
  const bool is_counted =
      scenario.rules.loss_in_single_steps || scenario.rules.fuses_loss || loss_is_shared(scenario);
  return is_counted ? size : loss_steps().of(size);  // PyTorch's, where nothing is compiled
}

// PyTorch's log-softmax writes beside what it reads: forward its result, which backward keeps;
// backward the gradient of the loss that it is handed, and its own. Where tensor ranks share the
// vocabulary each direction has one tensor more. flash-attn's loss writes the gradient beside the
// logits.
void take_scratch(const Scenario& scenario, BlockBuilder& builder, std::int64_t tokens,
                  bool backward) {
  const std::int64_t elements = tokens * builder.shape().vocab;
  if (scenario.rules.fuses_loss) {
    if (backward && scenario.rules.takes_loss_metrics)
      builder.also_writes({builder.activation("loss_scratch", elements)});
  } else if (!scenario.rules.loss_in_single_steps && !one_kernel(scenario)) {
    const std::int64_t copies = (backward ? 2 : 1) + (loss_is_shared(scenario) ? 1 : 0);
    builder.also_writes({builder.buffer("loss_scratch", copies * elements, DataType::kFp32)});
  }
}

// The products with the table read 16 bits, unless the head is told to take fp8 (Megatron-LM,
// core/transformer/mxfp8_output_proj.py).
const OperandForm& form_of(const Scenario& scenario, const BlockBuilder& builder) {
  return scenario.training.fp8_head ? operand_form(builder) : wide_form();
}

OperandRequest of_input(const HeadWeights& weights, const BlockBuilder& builder, BufferId x) {
  const Shape& shape = builder.shape();
  return {x, shape.tokens, shape.table_width, builder.trains(weights.table), false};
}

BufferId table_for_product(const HeadWeights& weights, BlockBuilder& builder,
                           const OperandForm& form, bool backward) {
  if (!form.is_fp8()) return {};
  return matrix_for_product(builder, weights.table, builder.shape().table_elements(), backward);
}

Loss make_loss(const Scenario& scenario, const HeadWeights& weights, BlockBuilder& builder,
               const HeadBuffers& head, std::int64_t tokens) {
  const Shape& shape = builder.shape();
  const std::int64_t elements = tokens * shape.vocab;
  const OperandForm& form = form_of(scenario, builder);
  Loss out;
  out.tokens = tokens;
  const BufferId logits = builder.activation("logits", elements);
  builder.gemm("logits", GemmRole::kForward, tokens, shape.vocab, shape.table_width,
               {head.read.operand.rows, table_for_product(weights, builder, form, false)}, {logits},
               weights.bias.valid(), form.is_fp8());
  builder.uses({weights.table, weights.bias});
  out.probabilities = logits;
  if (!one_kernel(scenario)) {
    out.probabilities = builder.buffer("logits_fp32", elements, DataType::kFp32);
    builder.add("logits_cast",
                Cast{CastSubject::kLogits, false, shape.type, DataType::kFp32,
                     builder.size(elements, 0, static_cast<double>(shape.element) + 4)},
                {logits}, {out.probabilities});
  }
  out.statistics = builder.buffer("loss_statistics", 3 * tokens, DataType::kFp32);
  const DataType type = one_kernel(scenario) ? shape.type : DataType::kFp32;
  builder.add(
      "cross_entropy",
      CrossEntropy{false, type, loss_size(scenario, builder, tokens, false), {weights.ahead}},
      {logits, out.probabilities}, {out.probabilities, out.statistics});
  take_scratch(scenario, builder, tokens, false);
  if (shape.tp > 1) {
    // Maximum, target logit and sum of exponentials of every token.
    for (const CollectivePurpose purpose :
         {CollectivePurpose::kLossMaximum, CollectivePurpose::kLossTarget,
          CollectivePurpose::kLossSum}) {
      builder.collective(name_of(purpose), CollectiveKind::kAllReduce, AxisGroup::kTensor, tokens,
                         DataType::kFp32, {out.statistics}, {out.statistics}, purpose);
    }
  }
  return out;
}

HeadBuffers forward(const Scenario& scenario, const HeadWeights& weights, BlockBuilder& builder,
                    BufferId input) {
  const Shape& shape = builder.shape();
  HeadBuffers out;
  out.input = input;
  out.normed = scenario.model.final_norm
                   ? builder.norm("final_norm", weights.norm, input, shape.rows, shape.hidden)
                   : input;
  BufferId narrow = out.normed;
  if (weights.projection) {
    out.projecting = weights.projection->take(builder, out.normed, true);
    out.projected = weights.projection->forward(builder, out.projecting);
    narrow = out.projected.y;
  }
  out.narrow = narrow;
  out.read =
      form_of(scenario, builder).enter(builder, "head_input", of_input(weights, builder, narrow));
  if (scenario.training.loss_chunks == 1) {
    out.loss = make_loss(scenario, weights, builder, out, shape.tokens);
  }
  return out;
}

// The gradient of the logits, in the type of the model.
BufferId logits_gradient(const Scenario& scenario, const HeadWeights& weights,
                         BlockBuilder& builder, const Loss& loss) {
  const Shape& shape = builder.shape();
  const std::int64_t elements = loss.tokens * shape.vocab;
  builder.add("cross_entropy",
              CrossEntropy{true,
                           one_kernel(scenario) ? shape.type : DataType::kFp32,
                           loss_size(scenario, builder, loss.tokens, true),
                           {weights.ahead}},
              {loss.probabilities, loss.statistics}, {loss.probabilities});
  take_scratch(scenario, builder, loss.tokens, true);
  if (one_kernel(scenario)) return loss.probabilities;
  const BufferId gradient = builder.activation("logits_gradient", elements);
  builder.add("logits_cast",
              Cast{CastSubject::kLogits, true, DataType::kFp32, shape.type,
                   builder.size(elements, 0, static_cast<double>(shape.element) + 4)},
              {loss.probabilities}, {gradient});
  return gradient;
}

// The product of it that flows back, into the place of these tokens. Returns what it read.
LinearInput flow_back(const Scenario& scenario, const HeadWeights& weights, BlockBuilder& builder,
                      const OperandRequest& of_logits, BufferId into) {
  const Shape& shape = builder.shape();
  const OperandForm& form = form_of(scenario, builder);
  const LinearInput flows = form.take_gradient(builder, of_logits);
  builder.gemm("logits_dgrad", GemmRole::kInputGradient, of_logits.tokens, shape.table_width,
               shape.vocab, {flows.operand.rows, table_for_product(weights, builder, form, true)},
               {into}, false, form.is_fp8());
  builder.uses({weights.table});
  return flows;
}

// Some tokens after the others, so that only their logits are held: from the product with the table
// to the sum of its gradient.
BufferId backward_in_chunks(const Scenario& scenario, const HeadWeights& weights,
                            BlockBuilder& builder, const HeadBuffers& saved) {
  const Shape& shape = builder.shape();
  const std::int64_t chunks = scenario.training.loss_chunks, width = shape.table_width;
  const bool trained = builder.trains(weights.table);
  const OperandForm& form = form_of(scenario, builder);
  const OperandRequest of_x = of_input(weights, builder, saved.narrow);
  const LinearInput x =
      trained ? form.gather_again(builder, "head_input", of_x, saved.read) : LinearInput{};
  const BufferId partial = builder.activation("head_input_gradient", shape.tokens * width);
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    const std::int64_t tokens = shape.tokens * (chunk + 1) / chunks - shape.tokens * chunk / chunks;
    builder.into(Pass::kInputGradient, Phase::kForward);
    const Loss loss = make_loss(scenario, weights, builder, saved, tokens);
    builder.into_input_gradients();
    const BufferId gradient = logits_gradient(scenario, weights, builder, loss);
    const OperandRequest of_logits{gradient, tokens, shape.vocab, trained, false};
    const LinearInput flows = flow_back(scenario, weights, builder, of_logits, partial);
    if (trained) {
      const BufferId of_output = form.by_columns(builder, of_logits, flows.operand);
      builder.add_weight_gradient("logits_wgrad", weights.table, shape.vocab, width,
                                  {of_output, form.input_by_columns(builder, of_x, x)},
                                  form.is_fp8(), tokens);
    }
    if (scenario.model.head_bias) {
      builder.bias_gradient(weights.bias, tokens, shape.vocab, {gradient});
    }
  }
  return builder.enter_backward("head_input_gradient", partial);
}

BufferId backward_at_once(const Scenario& scenario, const HeadWeights& weights,
                          BlockBuilder& builder, const HeadBuffers& saved) {
  const Shape& shape = builder.shape();
  const BufferId gradient = logits_gradient(scenario, weights, builder, saved.loss);
  const bool trained = builder.trains(weights.table);
  const bool waits = scenario.layout.defer_head_wgrad > 0;
  const OperandForm& form = form_of(scenario, builder);
  const OperandRequest of_x = of_input(weights, builder, saved.narrow);
  const auto gather = [&] { return form.gather_again(builder, "head_input", of_x, saved.read); };
  LinearInput x = trained && !waits ? gather() : LinearInput{};
  const std::int64_t width = shape.table_width;
  const OperandRequest of_logits{gradient, shape.tokens, shape.vocab, trained, false};
  const BufferId partial = builder.activation("head_input_gradient", shape.tokens * width);
  const LinearInput flows = flow_back(scenario, weights, builder, of_logits, partial);
  const BufferId reduced = builder.enter_backward("head_input_gradient", partial);
  if (trained) {
    // A gradient that waits keeps this rank's share of the input and gathers it when its turn comes
    // (Megatron-LM, core/utils.py: drain_embedding_wgrad_compute).
    if (waits) builder.among_weight_gradients([&] { x = gather(); });
    const BufferId of_output = form.by_columns(builder, of_logits, flows.operand);
    builder.weight_gradient("logits_wgrad", weights.table, shape.vocab, width,
                            {of_output, form.input_by_columns(builder, of_x, x)}, !form.is_fp8(),
                            form.is_fp8());
  }
  if (scenario.model.head_bias) {
    builder.bias_gradient(weights.bias, shape.tokens, shape.vocab, {gradient});
  }
  return reduced;
}

// The gradient of what forward() read.
BufferId backward(const Scenario& scenario, const HeadWeights& weights, BlockBuilder& builder,
                  const HeadBuffers& saved) {
  const Shape& shape = builder.shape();
  builder.into_input_gradients();
  BufferId reduced = scenario.training.loss_chunks == 1
                         ? backward_at_once(scenario, weights, builder, saved)
                         : backward_in_chunks(scenario, weights, builder, saved);
  if (weights.projection) {
    const LinearInput flowing = weights.projection->take_gradient(builder, reduced);
    const LinearGradient wide = weights.projection->input_gradient(builder, flowing);
    weights.projection->weight_gradient(builder, flowing, saved.projecting, saved.projected, wide);
    reduced = wide.x;
  }
  if (!scenario.model.final_norm) return reduced;
  return builder.norm_backward("final_norm", weights.norm, saved.input, reduced, BufferId{},
                               shape.rows, shape.hidden);
}

// The prediction modules of a head, each with its norm and its loss.
class Predictions {
 public:
  Predictions(const Scenario& scenario, const HeadWeights& weights, BlockBuilder& builder)
      : scenario_(scenario), builder_(builder) {
    for (std::int64_t depth = 0; depth < scenario.model.mtp_layers; ++depth) {
      HeadWeights own = weights;
      own.ahead = depth + 1;
      if (!scenario.layout.mtp_apart) {
        modules_.push_back(
            std::make_unique<PredictionModule>(scenario, weights.tokens, own.ahead, builder));
      }
      if (scenario.model.final_norm) {
        own.norm = builder.norm_parameters("mtp_final_norm", nullptr, builder.shape().hidden);
      }
      weights_.push_back(std::move(own));
    }
  }

  // Each module reads what the one before it hands to its norm.
  void forward(BufferId hidden) {
    for (std::size_t depth = 0; depth < weights_.size(); ++depth) {
      if (!modules_.empty()) {
        hidden = modules_[depth]->forward(hidden, scenario_.layout.recompute.mode);
      }
      saved_.push_back(stepcast::forward(scenario_, weights_[depth], builder_, hidden));
    }
  }

  // Outputs of the modules' final norms.
  std::vector<BufferId> normed() const {
    std::vector<BufferId> out;
    for (const HeadBuffers& saved : saved_) out.push_back(saved.normed);
    return out;
  }

  // Returns what the modules add to the gradient of the hidden state; invalid if there are none.
  BufferId backward() {
    const RecomputeMode mode = scenario_.layout.recompute.mode;
    BufferId gradient;
    for (std::size_t depth = modules_.size(); depth-- > 0;) {
      const BufferId own = stepcast::backward(scenario_, weights_[depth], builder_, saved_[depth]);
      gradient = gradient.valid() ? sum(gradient, own) : own;
      if (mode == RecomputeMode::kFull) modules_[depth]->recompute();
      builder_.into_input_gradients();
      gradient = modules_[depth]->backward(gradient, mode);
    }
    return gradient;
  }

  // Modules apart: the gradient of all hidden states, of which `own` is the model's.
  BufferId joined(BufferId own) {
    const Shape& shape = builder_.shape();
    std::vector<BufferId> all{own};
    for (std::size_t depth = 0; depth < weights_.size(); ++depth) {
      all.push_back(stepcast::backward(scenario_, weights_[depth], builder_, saved_[depth]));
    }
    const std::int64_t elements = hidden_states_of_head(scenario_) * shape.rows * shape.hidden;
    const BufferId out = builder_.activation("hidden_gradients", elements);
    builder_.into_input_gradients();
    builder_.add(
        "join_hidden_gradients",
        JoinRows{false, shape.type,
                 builder_.size(elements, shape.hidden, 2 * static_cast<double>(shape.element))},
        {}, {out});
    builder_.last().reads = all;
    return out;
  }

  BufferId sum(BufferId a, BufferId b) {
    const Shape& shape = builder_.shape();
    const std::int64_t elements = shape.rows * shape.hidden;
    const BufferId out = builder_.activation("hidden_gradient", elements);
    const double bytes = 3 * static_cast<double>(shape.element);
    builder_.add(
        "add_prediction_gradient",
        ResidualAdd{true, false, false, shape.type, builder_.size(elements, shape.hidden, bytes)},
        {a, b}, {out});
    return out;
  }

 private:
  const Scenario& scenario_;
  BlockBuilder& builder_;
  std::vector<std::unique_ptr<PredictionModule>> modules_;
  std::vector<HeadWeights> weights_;
  std::vector<HeadBuffers> saved_;
};

}  // namespace

Block lower_head(const Scenario& scenario, BackwardForm form) {
  const Shape shape(scenario);
  Block block;
  block.kind = BlockKind::kHead;
  block.form = form;
  BlockBuilder builder(scenario.rules, shape, gradient_mode(scenario), block);
  const std::int64_t states = hidden_states_of_head(scenario);
  block.input = builder.activation("head_input", states * shape.rows * shape.hidden);
  const HeadWeights weights = declare_head(scenario, builder);
  Predictions predictions(scenario, weights, builder);
  builder.into(Pass::kForward, Phase::kForward);
  copy_gathered_unit(scenario, builder);
  predictions.forward(block.input);
  const HeadBuffers saved = forward(scenario, weights, builder, block.input);
  const BufferId own = backward(scenario, weights, builder, saved);
  if (states > 1) {
    block.input_gradient = predictions.joined(own);
  } else {
    const BufferId predicted = predictions.backward();
    block.input_gradient = predicted.valid() ? predictions.sum(own, predicted) : own;
  }
  copy_unit_gradients(scenario, builder);
  std::vector<BufferId> apart = predictions.normed();
  apart.push_back(saved.normed);
  cast_in_norms(builder, apart);
  finish_block(block);
  return block;
}

}  // namespace stepcast
