// SPDX-License-Identifier: Apache-2.0
// A mixture of experts in the place of a dense MLP (docs/moe.md): the router chooses experts for
// every token, a dispatcher brings tokens to the ranks of their experts, those compute, and the
// results come back and are summed. The order is Megatron's
// (megatron/core/transformer/moe/moe_layer.py).
#pragma once

#include <optional>

#include "layout/recomputed_modules.h"
#include "program/shared_expert.h"
#include "program/token_dispatch.h"

namespace stepcast {

struct Scenario;

class ExpertLayer {
 public:
  ExpertLayer(const Scenario& scenario, BlockBuilder& builder);

  // Returns what joins the residual stream; `input` is the norm's output. `kept`: of the products
  // of the shared expert.
  BufferId forward(BufferId input, const KeptProducts& kept = {});
  // Makes again what torchtitan_op drops: all up to what backward reads, and if it `runs_on`, up to
  // what joins the residual stream, which it returns. torchtitan compiles no layer of experts
  // whole: up to there operations run whose results nobody reads, and kept ones wait for that.
  BufferId make_again(BufferId input, bool runs_on);
  // The gradient of `input`, which holds what forward() read.
  BufferId backward(BufferId gradient, BufferId input, const RecomputedModules& again);
  // The norm before is made again, so that in fp8 the shared expert keeps no copy of its output.
  void cast_input_again(bool again) {
    if (shared_) shared_->cast_input_again(again);
  }

 private:
  // Backward reads these buffers of the latest forward.
  struct Saved {
    BufferId logits;
    Routing routing;
    BufferId input;  // rows in the order of the experts
    BufferId up, activated;
    BufferId up_fp8;  // `up` while it waits, where it does so in fp8
    AdapterOutputs up_adapters, down_adapters;
    Operand entered, left;  // what the products read of rows and of activations
  };
  // Gradients of the experts' rows and of the weights by which the rows count.
  struct RowGradients {
    BufferId rows, weights;
  };

  void route(BufferId input);
  BufferId route_backward(BufferId input, BufferId weight_gradient);
  void activate();
  bool stores_in_fp8() const;
  void restore_up();
  bool is_fused() const { return model_.moe->fused_mlp && in_fp8(); }
  // Rows that have room while they wait for backward; layers in 16 bits have no stash.
  std::int64_t kept() const { return is_fused() ? shape_.kept : shape_.held; }
  std::int64_t beyond_stash() const { return shape_.held - kept(); }
  void pad_stashed(ByteCount bytes);
  ByteCount stashed_bytes(std::int64_t rows) const;
  void copy_stashed(bool backward);
  BufferId compute() {
    compute_up();
    return compute_down();
  }
  void compute_up();
  BufferId compute_down();
  RowGradients compute_backward(BufferId gradient, const RecomputedModules& again);
  bool applies_bias_in_steps() const;
  void apply_bias(BufferId rows);
  void apply_bias_backward(BufferId gradient, BufferId weights);
  BufferId add(const char* name, BufferId a, BufferId b, bool backward);
  template <class Write>
  void recompute(const Write& write);

  ParameterId declare(Parameter one, Adapters* adapters = nullptr);
  bool in_fp8() const;
  BufferId matrices(ParameterId weight, std::int64_t outputs, std::int64_t inputs, bool backward);
  Operand operand(BufferId x, std::int64_t columns, bool backward);
  CopyRoom room(std::int64_t columns, bool backward) const;
  BufferId down_backward(const Operand& of_output, BufferId weights, Operand& of_up);
  GroupedGemm product(GemmRole role, std::int64_t outputs, std::int64_t inputs) const;
  ExpertActivation activation(bool backward) const;
  double element() const { return static_cast<double>(builder_.shape().element); }
  std::int64_t width() const { return builder_.shape().hidden; }

  const Scenario& scenario_;
  const Model& model_;
  BlockBuilder& builder_;
  ExpertShape shape_;
  TokenDispatch dispatch_;
  Adapters up_adapters_, down_adapters_;
  ParameterId router_, router_bias_, up_, up_bias_, down_, down_bias_;
  std::optional<SharedExpert> shared_;
  bool hides_shared_ = false;  // the shared expert runs beside the exchanges
  Saved saved_;
};

}  // namespace stepcast
