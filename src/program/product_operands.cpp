// SPDX-License-Identifier: Apache-2.0
#include "program/product_operands.h"

namespace stepcast {
namespace {

LinearInput as_it_is(BufferId x, BufferId share = {}) { return {x, {x, x}, share}; }

class WideForm final : public OperandForm {
 public:
  bool is_fp8() const override { return false; }

  LinearInput enter(BlockBuilder& builder, const char* name,
                    const OperandRequest& request) const override {
    return as_it_is(builder.enter_region(name, request.x, request.width), request.x);
  }
  LinearInput take(BlockBuilder&, const OperandRequest& request) const override {
    return as_it_is(request.x);
  }
  LinearInput leave_backward(BlockBuilder& builder, const char* name,
                             const OperandRequest& request) const override {
    return as_it_is(builder.leave_backward(name, request.x));
  }
  LinearInput take_gradient(BlockBuilder&, const OperandRequest& request) const override {
    return as_it_is(request.x);
  }
  LinearInput gather_again(BlockBuilder& builder, const char* name, const OperandRequest& request,
                           const LinearInput& saved) const override {
    LinearInput out = saved;
    out.x = builder.gather_again(name, saved.share.valid() ? saved.share : saved.x, saved.x,
                                 request.width);
    out.operand.columns = out.x;
    return out;
  }
  LinearInput renewed(const LinearInput& saved, const OperandRequest& request) const override {
    if (!saved.share.valid()) return as_it_is(request.x);
    const bool is_whole = saved.x == saved.share;
    return is_whole ? as_it_is(request.x, request.x)
                    : LinearInput{saved.x, saved.operand, request.x};
  }
  BufferId input_by_columns(BlockBuilder&, const OperandRequest&,
                            const LinearInput& input) const override {
    return input.operand.columns;
  }
  BufferId by_columns(BlockBuilder&, const OperandRequest&, const Operand& operand) const override {
    return operand.columns;
  }
};

// Adapters read 16 bits: where there are some, 16 bits are gathered, and each rank casts all of it.
class Fp8Form final : public OperandForm {
 public:
  bool is_fp8() const override { return true; }

  LinearInput enter(BlockBuilder& builder, const char* name,
                    const OperandRequest& request) const override {
    const Shape& shape = builder.shape();
    if (!shape.sequence_parallel) return take(builder, request);
    if (request.also_wide) {
      OperandRequest whole = request;
      whole.x = builder.enter_region(name, request.x, request.width);
      return {whole.x, cast(builder, whole, false, request.for_weights), request.x};
    }
    const bool both = request.for_weights && builder.fp8().recipe->scales_by_direction;
    const Operand share =
        cast_operand(builder, request.x, shape.rows * request.width, false, both, true);
    LinearInput out;
    out.operand.rows =
        gather_copy(builder, name, share.rows, shape.tokens * request.width, BlockStream::kCompute);
    out.share = both ? share.columns : share.rows;
    return out;
  }
  LinearInput take(BlockBuilder& builder, const OperandRequest& request) const override {
    const bool again = casts_again(builder, request);
    const Operand operand = cast(builder, request, false, request.for_weights && !again);
    return {request.also_wide || again ? request.x : BufferId{}, operand, {}};
  }
  LinearInput leave_backward(BlockBuilder& builder, const char* name,
                             const OperandRequest& request) const override {
    const Shape& shape = builder.shape();
    if (!shape.sequence_parallel || request.also_wide) {
      OperandRequest whole = request;
      whole.x = builder.leave_backward(name, request.x);
      return take_gradient(builder, whole);
    }
    const std::int64_t elements = shape.tokens * request.width;
    const bool both = request.for_weights && builder.fp8().recipe->scales_by_direction;
    const Operand share =
        cast_operand(builder, request.x, shape.rows * request.width, true, both, true);
    LinearInput out;
    if (both) {
      out.operand.columns =
          gather_copy(builder, name, share.columns, elements, builder.backward_stream());
    }
    out.operand.rows = gather_copy(builder, name, share.rows, elements, BlockStream::kCompute);
    return out;
  }
  LinearInput take_gradient(BlockBuilder& builder, const OperandRequest& request) const override {
    return {request.x, cast(builder, request, true, request.for_weights), {}};
  }
  LinearInput gather_again(BlockBuilder& builder, const char* name, const OperandRequest& request,
                           const LinearInput& saved) const override {
    const Shape& shape = builder.shape();
    LinearInput out = saved;
    if (request.also_wide) {
      out.x = builder.gather_again(name, saved.share.valid() ? saved.share : saved.x, saved.x,
                                   request.width);
      return out;
    }
    // It was whole from the beginning, or is kept as it was gathered.
    const bool by_direction = builder.fp8().recipe->scales_by_direction;
    const bool kept = builder.rules().keeps_gathered_inputs && !by_direction;
    if (!saved.share.valid() || kept) return out;
    const BufferId copy = gather_copy(builder, name, saved.share, shape.tokens * request.width,
                                      builder.backward_stream());
    out.operand = by_direction ? Operand{{}, copy} : Operand{copy, {}};
    return out;
  }
  // Copies in fp8 are kept.
  LinearInput renewed(const LinearInput& saved, const OperandRequest& request) const override {
    if (request.also_wide || !saved.x.valid()) return saved;
    return {request.x, saved.operand, saved.share};
  }
  BufferId input_by_columns(BlockBuilder& builder, const OperandRequest& request,
                            const LinearInput& input) const override {
    if (!casts_again(builder, request) || !request.for_weights || !input.x.valid()) {
      return by_columns(builder, request, input.operand);
    }
    OperandRequest again = request;
    again.x = input.x;
    Operand operand;
    builder.among_weight_gradients([&] { operand = cast(builder, again, false, true); });
    return operand.columns;
  }
  BufferId by_columns(BlockBuilder& builder, const OperandRequest& request,
                      const Operand& operand) const override {
    if (operand.columns.valid() || !request.for_weights) return operand.columns;
    BufferId out;
    builder.among_weight_gradients(
        [&] { out = transposed(builder, operand.rows, request.tokens * request.width, true); });
    return out;
  }

 private:
  // torchao's products keep their inputs in 16 bits and cast them again backward
  // (torchao/float8/float8_linear.py: matmul_with_hp_or_float8_args saves input_hp). Transformer
  // Engine's modules keep what they have cast. Under sequence parallelism shares are kept as they
  // are gathered.
  static bool casts_again(const BlockBuilder& builder, const OperandRequest& request) {
    if (request.cast_again) return true;
    const FrameworkRules& rules = builder.rules();
    return rules.gradients_by_unit && !rules.norms_into_products &&
           !builder.shape().sequence_parallel;
  }
  static Operand cast(BlockBuilder& builder, const OperandRequest& request, bool backward,
                      bool by_columns) {
    return cast_operand(builder, request.x, request.tokens * request.width, backward, by_columns,
                        false);
  }
};

}  // namespace

const OperandForm& wide_form() {
  static const WideForm wide;
  return wide;
}

// A matrix of four bits is expanded into 16, and its products read 16.
const OperandForm& operand_form(const BlockBuilder& builder) {
  static const Fp8Form fp8;
  if (builder.fp8() && builder.shape().mode != TrainingMode::kQlora) return fp8;
  return wide_form();
}

}  // namespace stepcast
