// SPDX-License-Identifier: Apache-2.0
#include "program/expert_layer.h"

#include "layout/scenario.h"
#include "operation/steps.h"
#include "program/product_weight.h"
#include "program/stored_input.h"

namespace stepcast {

ExpertLayer::ExpertLayer(const Scenario& scenario, BlockBuilder& builder)
    : scenario_(scenario),
      model_(scenario.model),
      builder_(builder),
      shape_(scenario, builder.shape()),
      dispatch_(shape_, builder) {
  const std::int64_t h = width();
  router_ = builder.parameter({"router", shape_.experts, h});
  if (model_.moe->router_bias) {
    Parameter bias{"router_bias", shape_.experts, 1, Cut::kNone, Initial::kZeros};
    bias.balances = true;
    router_bias_ = builder.parameter(bias);
  }
  const std::array<std::int64_t, 3> ups{shape_.ffn, shape_.ups - shape_.ffn, 0};
  up_ = declare({"experts_up", shape_.ups, h, Cut::kRows, Initial::kNormal, ups}, &up_adapters_);
  down_ = declare({"experts_down", h, shape_.ffn, Cut::kColumns}, &down_adapters_);
  if (model_.mlp_bias) {
    up_bias_ = declare({"experts_up_bias", shape_.ups, 1, Cut::kRows, Initial::kZeros, ups});
    down_bias_ = declare({"experts_down_bias", h, 1, Cut::kNone, Initial::kZeros});
  }
  if (model_.moe->shared_ffn > 0) shared_.emplace(scenario, builder);
  hides_shared_ = shared_ && scenario.layout.overlap.shared_experts;
}

// Declares what each expert has one of, and adapters beside it.
ParameterId ExpertLayer::declare(Parameter one, Adapters* adapters) {
  const bool is_cut = shape_.tensor > 1 || shape_.replicas == AxisGroup::kData;
  if (!is_cut) one.cut = Cut::kNone;
  one.replicas = shape_.replicas;
  Parameter all = one;
  all.rows *= shape_.local;
  all.copies = shape_.local;
  if (one.initial == Initial::kNormal) store_matrix(builder_, all);
  const ParameterId out = builder_.parameter(all);
  if (adapters != nullptr && scenario_.training.lora_targets.has(AdapterTarget::kMlp)) {
    const bool shares = builder_.rules().shares_expert_adapters;
    *adapters = Adapters::of_experts(builder_, one, shares ? 1 : shape_.local, shape_.rows);
  }
  return out;
}

bool ExpertLayer::in_fp8() const { return operand_form(builder_).is_fp8(); }

GroupedGemm ExpertLayer::product(GemmRole role, std::int64_t outputs, std::int64_t inputs) const {
  const Shape& shape = builder_.shape();
  const DataType read = builder_.multiplied(in_fp8());
  return {role, shape_.local, shape_.rows, outputs, inputs, read, shape.type, false};
}

// The matrices of all experts as a product reads them: expanded, where they are held in four bits.
BufferId ExpertLayer::matrices(ParameterId weight, std::int64_t outputs, std::int64_t inputs,
                               bool backward) {
  return matrix_for_product(builder_, weight, shape_.local * outputs * inputs, backward);
}

// Copies that wait for backward have less room than those that are worked on.
CopyRoom ExpertLayer::room(std::int64_t columns, bool backward) const {
  const std::int64_t waiting = backward ? shape_.held : kept();
  const bool apart = builder_.fp8().has_two_copies();
  return {(apart ? shape_.held : waiting) * columns, waiting * columns};
}

// The products of all experts read this operand: `x` itself, or in fp8 its copies. The casts of the
// fused kernels take all experts at once.
Operand ExpertLayer::operand(BufferId x, std::int64_t columns, bool backward) {
  if (!in_fp8()) return {x, x};
  const InGroups groups(builder_, is_fused() ? 1 : shape_.local);
  const Operand out = cast_operand(builder_, x, shape_.rows * columns, backward, true, false,
                                   room(columns, backward));
  if (!backward) pad_stashed(builder_.fp8().copy_bytes(beyond_stash() * columns));
  return out;
}

// The input's and the activation's copies by columns and the first product's output.
ByteCount ExpertLayer::stashed_bytes(std::int64_t rows) const {
  if (rows == 0) return 0;
  return builder_.fp8().copy_bytes(rows * (width() + shape_.ffn)) +
         rows * shape_.ups * builder_.shape().element;
}

// While the kernel written last works on what will be stashed, that has the whole room.
void ExpertLayer::pad_stashed(ByteCount bytes) {
  if (bytes > 0) builder_.also_writes({builder_.buffer("beyond_stash", bytes, DataType::kInt8)});
}

// Copies of rows alone, into pages or out of them. Megatron issues them on a stream of their own,
// and the layer after waits for them (core/transformer/moe/paged_stash.py). Their grid of 2048
// blocks takes every SM as any kernel does, so they count as kernels in turn.
void ExpertLayer::copy_stashed(bool backward) {
  if (!shape_.stashed || !is_fused()) return;
  const std::int64_t elements = shape_.rows * (width() + shape_.ffn + shape_.ups);
  const double bytes = 2 * static_cast<double>(stashed_bytes(shape_.rows));
  builder_.add(backward ? "unstash_rows" : "stash_rows", UnitCopy{backward, elements, bytes},
               {saved_.up}, {});
}

// A bias that no fused kernel takes.
bool ExpertLayer::applies_bias_in_steps() const {
  return down_bias_.valid() && builder_.rules().biased_experts_in_steps && !is_fused();
}

// The output's bias, times the routing weights, where the product does not add it.
void ExpertLayer::apply_bias(BufferId rows) {
  if (!applies_bias_in_steps()) return;
  const InGroups groups(builder_, shape_.local);
  const Steps steps = weighted_bias_steps(false, element());
  builder_.add("experts_apply_bias",
               ExpertBias{false, builder_.shape().type,
                          builder_.size(shape_.rows * width(), width(), steps.bytes)},
               {rows, dispatch_.weights()}, {rows});
  builder_.uses({down_bias_});
}

// The output's bias adds to the gradients of the routing weights, here unless in a fused kernel; in
// steps its own gradient is made too.
void ExpertLayer::apply_bias_backward(BufferId gradient, BufferId weights) {
  if (!down_bias_.valid() || is_fused()) return;
  const bool in_steps = applies_bias_in_steps();
  const InGroups groups(builder_, in_steps ? shape_.local : 1);
  const double bytes = in_steps ? weighted_bias_steps(true, element()).bytes : element();
  builder_.add(
      "experts_apply_bias",
      ExpertBias{true, builder_.shape().type, builder_.size(shape_.rows * width(), width(), bytes)},
      {gradient, dispatch_.weights()}, {weights});
  if (in_steps) {
    builder_.also_writes({builder_.buffer("biased_rows", shape_.held * width(), DataType::kFp32)});
  }
  builder_.uses({down_bias_});
}

// In steps the rows are multiplied by their weights in a kernel of their own.
ExpertActivation ExpertLayer::activation(bool backward) const {
  const double ups = model_.mlp == Mlp::kSwiglu ? 2 : 1;
  const double passes = backward ? 2 * ups + 1 : ups + 1;
  Steps steps = activation_steps(model_.mlp, backward, element());
  steps.bytes += 2 * element();
  ++steps.launches;
  const bool clamps = applies_bias_in_steps() && model_.mlp == Mlp::kSwiglu;
  const double bytes = clamps ? clamped_steps(backward, element()).bytes : passes * element();
  const KernelSize size = builder_.size(shape_.rows * shape_.ffn, shape_.ffn, bytes);
  return {model_.mlp, backward, builder_.shape().type, steps.of(size)};
}

BufferId ExpertLayer::add(const char* name, BufferId a, BufferId b, bool backward) {
  const std::int64_t elements = shape_.tokens * width();
  const BufferId sum = builder_.activation(name, elements);
  builder_.add(name,
               ResidualAdd{backward, false, false, builder_.shape().type,
                           builder_.size(elements, width(), 3 * element())},
               {a, b}, {sum});
  return sum;
}

// Logits in fp32; then the scores, the choice and the loss that balances experts: a dozen kernels
// unless they are fused.
void ExpertLayer::route(BufferId input) {
  const InPart part(builder_, GraphPart::kRouter);
  const std::int64_t scores = shape_.tokens * shape_.experts;
  saved_.logits = builder_.buffer("router_logits", scores, DataType::kFp32);
  builder_.add("router",
               Gemm{GemmRole::kForward, 1, shape_.tokens, shape_.experts, width(),
                    builder_.shape().product, DataType::kFp32, false, false},
               {input}, {saved_.logits});
  builder_.uses({router_});
  Routing& routing = saved_.routing;
  routing.probabilities = builder_.buffer("router_probabilities", scores, DataType::kFp32);
  routing.chosen = builder_.buffer("routing_map", scores, DataType::kInt8);
  builder_.add("router_scores",
               RouterScores{false, shape_.top_k, DataType::kFp32,
                            builder_.size(scores, shape_.experts, 4 + 4 + 1, 12)},
               {saved_.logits}, {routing.probabilities, routing.chosen});
  builder_.uses({router_bias_});  // it takes part in the choice alone
}

BufferId ExpertLayer::route_backward(BufferId input, BufferId weight_gradient) {
  const InPart part(builder_, GraphPart::kRouter);
  const std::int64_t scores = shape_.tokens * shape_.experts;
  const BufferId logits = builder_.buffer("router_logits_gradient", scores, DataType::kFp32);
  builder_.add(
      "router_scores",
      RouterScores{true, shape_.top_k, DataType::kFp32,
                   builder_.size(scores, shape_.experts, 4 + 4 + 1 + 4, 8)},
      {saved_.logits, saved_.routing.probabilities, saved_.routing.chosen, weight_gradient},
      {logits});
  if (router_bias_.valid() && builder_.trains(router_bias_)) {
    builder_.add("router_load",
                 RouterLoad{builder_.gradient_type(), builder_.size(scores, shape_.experts, 1)},
                 {saved_.routing.chosen}, {});
    builder_.uses({router_bias_});
  }
  const BufferId out = builder_.activation("router_input_gradient", shape_.tokens * width());
  builder_.gemm("router_dgrad", GemmRole::kInputGradient, shape_.tokens, width(), shape_.experts,
                {logits}, {out});
  builder_.uses({router_});
  builder_.weight_gradient("router_wgrad", router_, shape_.experts, width(), {logits, input}, false,
                           false, shape_.tokens);
  return out;
}

void ExpertLayer::activate() {
  saved_.activated = builder_.activation("experts_activated", shape_.held * shape_.ffn);
  builder_.add("experts_activation", activation(false), {saved_.up, dispatch_.weights()},
               {saved_.activated});
  saved_.left = operand(saved_.activated, shape_.ffn, false);
}

void ExpertLayer::compute_up() {
  saved_.up = builder_.activation("experts_up", kept() * shape_.ups);
  GroupedGemm up = product(GemmRole::kForward, shape_.ups, width());
  up.bias = up_bias_.valid();
  saved_.entered = operand(saved_.input, width(), false);
  const BufferId ups = matrices(up_, shape_.ups, width(), false);
  if (is_fused()) {
    builder_.add("experts_up", up, {saved_.entered.rows, ups, dispatch_.weights()}, {saved_.up});
    saved_.left = operand_buffers(builder_, room(shape_.ffn, false), false, true);
    builder_.also_writes({saved_.left.rows, saved_.left.columns});
    pad_stashed(stashed_bytes(beyond_stash()));
  } else {
    builder_.add("experts_up", up, {saved_.entered.rows, ups}, {saved_.up});
  }
  builder_.uses({up_, up_bias_});
  saved_.up_adapters = up_adapters_.forward(builder_, saved_.input, saved_.up);
  if (is_fused()) return;
  activate();
  if (stores_in_fp8()) saved_.up_fp8 = store_in_fp8(builder_, saved_.up, shape_.held * shape_.ups);
}

bool ExpertLayer::stores_in_fp8() const { return scenario_.training.fp8_activation_input; }

void ExpertLayer::restore_up() {
  if (!saved_.up_fp8.valid()) return;
  saved_.up = restore_from_fp8(builder_, saved_.up_fp8, shape_.held * shape_.ups);
}

BufferId ExpertLayer::compute_down() {
  const BufferId out = builder_.activation("experts_output", shape_.held * width());
  GroupedGemm down = product(GemmRole::kForward, width(), shape_.ffn);
  down.bias = down_bias_.valid() && !applies_bias_in_steps();
  const BufferId downs = matrices(down_, width(), shape_.ffn, false);
  // A row's bias counts by its weight, as the row does.
  const BufferId weights = down.bias ? dispatch_.weights() : BufferId{};
  builder_.add("experts_down", down, {saved_.left.rows, downs, weights}, {out});
  pad_stashed(stashed_bytes(beyond_stash()));
  builder_.uses({down_, down_bias_});
  saved_.down_adapters = down_adapters_.forward(builder_, saved_.activated, out);
  apply_bias(out);
  copy_stashed(false);
  return out;
}

// The gradient of the activation. The fused kernel goes on to that of the first product's output,
// whose copies it writes into `of_up`, and of the routing weights.
BufferId ExpertLayer::down_backward(const Operand& of_output, BufferId weights, Operand& of_up) {
  const BufferId downs = matrices(down_, width(), shape_.ffn, true);
  const GroupedGemm own = product(GemmRole::kInputGradient, width(), shape_.ffn);
  if (is_fused()) {
    of_up = operand_buffers(builder_, room(shape_.ups, true), true, true);
    builder_.add("experts_down_dgrad", own, {of_output.rows, downs, saved_.up, dispatch_.weights()},
                 {of_up.rows});
    builder_.also_writes({of_up.columns, weights});
    pad_stashed(stashed_bytes(beyond_stash()));
    builder_.uses({down_});
    return {};
  }
  const BufferId activated =
      builder_.activation("experts_activated_gradient", shape_.held * shape_.ffn);
  builder_.add("experts_down_dgrad", own, {of_output.rows, downs}, {activated});
  builder_.uses({down_});
  return activated;
}

ExpertLayer::RowGradients ExpertLayer::compute_backward(BufferId gradient,
                                                        const RecomputedModules& again) {
  const bool activates =
      again.has(RecomputedModule::kExpertActivation) && !again.has(RecomputedModule::kExperts);
  if (activates) {
    recompute([&] {
      restore_up();
      activate();
    });
  } else {
    restore_up();
  }
  copy_stashed(true);
  RowGradients out{builder_.activation("experts_input_gradient", shape_.held * width()),
                   builder_.buffer("row_weights_gradient", shape_.held, DataType::kFp32)};
  apply_bias_backward(gradient, out.weights);
  const Operand of_output = operand(gradient, width(), true);
  Operand of_up;
  const BufferId activated = down_backward(of_output, out.weights, of_up);
  const AdapterGradients of_down =
      down_adapters_.input_gradient(builder_, gradient, activated, saved_.down_adapters);
  down_adapters_.weight_gradient(builder_, saved_.activated, saved_.down_adapters, of_down);
  builder_.weight_gradient("experts_down_wgrad", down_,
                           product(GemmRole::kWeightGradient, width(), shape_.ffn),
                           {of_output.columns, saved_.left.columns});
  if (down_bias_.valid()) {
    builder_.bias_gradient(down_bias_, shape_.rows, width(), {gradient, dispatch_.weights()});
  }
  BufferId up;
  if (!is_fused()) {
    up = builder_.activation("experts_up_gradient", shape_.held * shape_.ups);
    // It adds to what the bias has given of the weights' gradients.
    const BufferId given = down_bias_.valid() ? out.weights : BufferId{};
    builder_.add("experts_activation", activation(true),
                 {saved_.up, dispatch_.weights(), activated, given}, {up, out.weights});
  }
  if (up_bias_.valid()) {
    builder_.bias_gradient(up_bias_, shape_.rows, shape_.ups, {is_fused() ? of_up.rows : up});
  }
  if (!is_fused()) of_up = operand(up, shape_.ups, true);
  const BufferId ups = matrices(up_, shape_.ups, width(), true);
  builder_.add("experts_up_dgrad", product(GemmRole::kInputGradient, shape_.ups, width()),
               {of_up.rows, ups}, {out.rows});
  builder_.uses({up_});
  const AdapterGradients of_ups =
      up_adapters_.input_gradient(builder_, up, out.rows, saved_.up_adapters);
  up_adapters_.weight_gradient(builder_, saved_.input, saved_.up_adapters, of_ups);
  builder_.weight_gradient("experts_up_wgrad", up_,
                           product(GemmRole::kWeightGradient, shape_.ups, width()),
                           {of_up.columns, saved_.entered.columns});
  return out;
}

BufferId ExpertLayer::forward(BufferId input, const KeptProducts& kept) {
  saved_ = {};
  BufferId shared;
  if (shared_ && !hides_shared_) shared = shared_->forward(input, kept);
  route(input);
  if (hides_shared_) dispatch_.beside([&] { shared_->forward_up(input); });
  saved_.input = dispatch_.bring(input, saved_.routing);
  if (hides_shared_) dispatch_.beside([&] { shared = shared_->forward_down(input); });
  const BufferId routed = dispatch_.take_back(compute());
  dispatch_.beside({});
  return shared.valid() ? add("add_shared", routed, shared, false) : routed;
}

// The shared expert comes behind the routed ones, as torchtitan runs it (models/common/moe.py).
BufferId ExpertLayer::make_again(BufferId input, bool runs_on) {
  route(input);
  saved_.input = dispatch_.bring_again(input, saved_.routing);
  compute_up();
  if (runs_on || shared_ || down_adapters_.any()) dispatch_.send_back_again(compute_down());
  if (!runs_on) dispatch_.drop_returned();
  const BufferId shared = shared_ ? shared_->make_again(input, runs_on) : BufferId{};
  if (!runs_on) return {};
  const BufferId routed = dispatch_.take_back_again();
  return shared_ ? add("add_shared", routed, shared, false) : routed;
}

template <class Write>
void ExpertLayer::recompute(const Write& write) {
  builder_.into(Pass::kInputGradient, Phase::kRecompute);
  write();
  builder_.into_input_gradients();
}

BufferId ExpertLayer::backward(BufferId gradient, BufferId input, const RecomputedModules& again) {
  if (again.has(RecomputedModule::kExperts)) {
    recompute([&] { forward(input); });
  } else if (again.has(RecomputedModule::kSharedExperts) && shared_) {
    recompute([&] { shared_->forward(input); });
  }
  BufferId shared;
  if (hides_shared_) dispatch_.beside([&] { shared_->backward_down(gradient, input); });
  const RowGradients rows = compute_backward(dispatch_.bring_gradient(gradient), again);
  if (hides_shared_) dispatch_.beside([&] { shared = shared_->backward_up(input); });
  const BufferId routed = dispatch_.take_gradient_back(rows.rows, rows.weights);
  dispatch_.beside({});
  BufferId out = add("add_router_gradient", routed, route_backward(input, rows.weights), true);
  if (shared_ && !hides_shared_) shared = shared_->backward(gradient, input);
  if (shared_) out = add("add_shared_gradient", out, shared, true);
  return out;
}

}  // namespace stepcast
