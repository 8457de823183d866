// SPDX-License-Identifier: Apache-2.0
#include "program/shared_expert.h"

#include "layout/scenario.h"
#include "operation/steps.h"
#include "program/stored_input.h"

namespace stepcast {

SharedExpert::SharedExpert(const Scenario& scenario, BlockBuilder& builder)
    : model_(scenario.model),
      builder_(builder),
      ffn_(scenario.model.moe->shared_ffn / builder.shape().tp),
      stores_in_fp8_(scenario.training.fp8_activation_input) {
  const std::int64_t h = builder.shape().hidden;
  const std::array<std::int64_t, 3> parts{ffn_, ups() - ffn_, 0};
  const bool adapts = scenario.training.lora_targets.has(AdapterTarget::kMlp);
  up_ = Linear(
      builder,
      {"shared_up", "shared_up_dgrad", "shared_up_wgrad", "shared_up", "shared_input_gradient"},
      {"shared_up", ups(), h, Cut::kRows, Initial::kNormal, parts}, adapts);
  down_ = Linear(builder,
                 {"shared_down", "shared_down_dgrad", "shared_down_wgrad", "shared_output",
                  "shared_activated_gradient"},
                 {"shared_down", h, ffn_, Cut::kColumns}, adapts);
  if (model_.moe->shared_gate) gate_ = builder.vector("shared_gate", h, Cut::kNone);
}

Activation SharedExpert::activation(bool backward) const {
  const Shape& shape = builder_.shape();
  const double element = static_cast<double>(shape.element);
  const auto each = static_cast<double>(halves());
  const double passes = backward ? 2 * each + 1 : each + 1;
  return {model_.mlp,
          backward,
          false,
          false,
          shape.type,
          activation_steps(model_.mlp, backward, element)
              .of(builder_.size(shape.tokens * ffn_, ffn_, passes * element))};
}

void SharedExpert::forward_up(BufferId input) {
  saved_ = {};
  saved_.entered = up_.enter(builder_, "shared_input", input, true);
  saved_.up = up_.forward(builder_, saved_.entered, {}, up_.split(kept_, dropped()));
  activate();
  if (stores_in_fp8_) saved_.up_fp8 = store_in_fp8(builder_, saved_.up.y, up_elements());
}

void SharedExpert::activate() {
  saved_.activated = builder_.activation("shared_activated", builder_.shape().tokens * ffn_);
  builder_.add("shared_activation", activation(false), {saved_.up.y, saved_.up.apart},
               {saved_.activated});
}

BufferId SharedExpert::forward_down(BufferId input) {
  saved_.left = down_.take(builder_, saved_.activated, true);
  saved_.down =
      down_.forward(builder_, saved_.left, {}, down_.split(kept_, down_.dropped(kept_, last())));
  saved_.output = builder_.leave_region("shared_reduced", saved_.down.y);
  return gated(input);
}

BufferId SharedExpert::gated(BufferId input) {
  if (!gate_.valid()) return saved_.output;
  const Shape& shape = builder_.shape();
  const double e = static_cast<double>(shape.element);
  const std::int64_t elements = shape.rows * shape.hidden;
  const BufferId gated = builder_.activation("shared_gated", elements);
  builder_.add("shared_gate",
               SharedGate{false, shape.type, builder_.size(elements, shape.hidden, 3 * e, 3)},
               {input, saved_.output}, {gated});
  builder_.uses({gate_});
  return gated;
}

// The gate's backward reads the output; where ranks have reduced and scattered it, it is kept.
BufferId SharedExpert::make_again(BufferId input, bool runs_on) {
  saved_.entered = up_.enter(builder_, "shared_input", input, true);
  saved_.up = up_.make_again(builder_, saved_.entered, saved_.up, {}, dropped());
  activate();
  saved_.left = down_.take(builder_, saved_.activated, true);
  const bool whole = builder_.shape().tp == 1, read = runs_on || (whole && gate_.valid());
  if (kept_.has(last())) {
    const LinearOutput& held = saved_.down;
    builder_.last().reads.push_back(held.bare.valid() ? held.bare : held.y);
  }
  saved_.down =
      down_.make_again(builder_, saved_.left, saved_.down, {}, down_.dropped(kept_, last()), read);
  if (read && whole) saved_.output = saved_.down.y;
  return runs_on ? gated(input) : BufferId{};
}

void SharedExpert::backward_down(BufferId gradient, BufferId input) {
  const Shape& shape = builder_.shape();
  const double e = static_cast<double>(shape.element);
  BufferId output = gradient;
  if (gate_.valid()) {
    const std::int64_t elements = shape.rows * shape.hidden;
    output = builder_.activation("shared_output_gradient", elements);
    builder_.add("shared_gate",
                 SharedGate{true, shape.type, builder_.size(elements, shape.hidden, 4 * e, 5)},
                 {input, saved_.output, gradient}, {output});
    builder_.uses({gate_});
  }
  const LinearInput whole = down_.leave_backward(builder_, "shared_output_gradient", output);
  const LinearGradient activated = down_.input_gradient(builder_, whole, saved_.down);
  down_.weight_gradient(builder_, whole, saved_.left, saved_.down, activated);
  if (stores_in_fp8_) saved_.up.y = restore_from_fp8(builder_, saved_.up_fp8, up_elements());
  up_gradient_ = builder_.activation("shared_up_gradient", up_elements());
  builder_.add("shared_activation", activation(true), {saved_.up.y, saved_.up.apart, activated.x},
               {up_gradient_});
}

BufferId SharedExpert::backward_up(BufferId input) {
  const LinearInput entered = up_.renewed(saved_.entered, input);
  const LinearInput again = up_.gather_again(builder_, "shared_input", entered);
  const LinearInput flowing = up_.take_gradient(builder_, up_gradient_);
  const LinearGradient partial = up_.input_gradient(builder_, flowing, saved_.up);
  const BufferId reduced = builder_.enter_backward("shared_input_gradient", partial.x);
  up_.weight_gradient(builder_, flowing, again, saved_.up, partial);
  return reduced;
}

}  // namespace stepcast
