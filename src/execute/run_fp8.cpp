// SPDX-License-Identifier: Apache-2.0
// Copies in fp8 that products read: with scales of tensors now (current) or of the step before
// (delayed). docs/fp8.md says which copies there are.
#include <algorithm>

#include "core/assert.h"
#include "execute/call_kernel.h"
#include "execute/live_arrays.h"
#include "execute/operation_call.h"
#include "execute/run_by_kind.h"
#include "program/executor_workspace.h"
#include "program/fp8_operands.h"

namespace stepcast {
namespace {

class Fp8Call {
 public:
  explicit Fp8Call(const OperationCall& call) : call_(call), kernels_(call.kernels()) {}

  bool run(const Cast& cast) {
    switch (cast.subject) {
      case CastSubject::kScale:
        find_largest(cast);
        return true;
      case CastSubject::kOperand:
        is_scaled(cast.from) ? turn(cast.size.elements) : cast_operand(cast);
        return true;
      case CastSubject::kWeight:
        cast_weight();
        return true;
      default:
        return false;
    }
  }

  // A norm may find the largest element of what it writes, or write fp8 itself.
  bool run(const Normalization& norm) {
    if (!call_.shape.fp8 || norm.backward) return false;
    if (makes_fp8(call_.block, call_.operation)) {
      norm_to_fp8(norm);
      return true;
    }
    const Buffer& first = call_.buffer(call_.operation.writes[0]);
    if (first.elements == norm.size.elements) return false;
    Operation plain = call_.operation;
    plain.writes.erase(plain.writes.begin());
    const OperationCall inner = call_.with(plain);
    LiveArrays arrays(inner);
    call(norm, arrays, kernels_);
    kernels_.find_largest({.x = inner.write(norm.residual ? 1 : 0),
                           .count = norm.size.elements,
                           .largest = call_.write(0).as<float>()});
    return true;
  }

 private:
  // A factor belongs to the copies alone, and goes with the last of them.
  Tensor new_figure() const { return call_.memory.make_uncounted(1, DataType::kFp32); }

  void find_largest(const Cast& cast) {
    const Operation& operation = call_.operation;
    if (!operation.reads.empty()) {
      kernels_.find_largest(
          {.x = call_.read(0), .count = cast.size.elements, .largest = call_.write(0).as<float>()});
    } else if (operation.parameters.empty()) {
      call_.state.fp8_matrices()->find_largest(parameters());
    } else {
      find_largest_of_matrix();
    }
  }

  Fp8Matrices::Parameters parameters() const {
    return [this](std::int64_t element) { return call_.state.parameters(element); };
  }
  const Parameter& matrix() const {
    return call_.block.weights[call_.operation.parameters[0].index()];
  }

  // A unit was gathered for its products.
  void find_largest_of_matrix() {
    const Tensor largest = new_figure();
    kernels_.find_largest({.x = call_.weight(0),
                           .count = matrix().elements(),
                           .largest = largest->array().as<float>()});
    call_.instance.matrix_largest = largest;
  }

  void cast_weight() {
    const bool finds_scale = call_.shape.fp8.recipe->finds_scale;
    if (call_.operation.parameters.empty()) {
      Fp8Matrices& all = *call_.state.fp8_matrices();
      if (!finds_scale) all.find_largest(parameters());
      return all.cast(parameters());
    }
    if (!finds_scale) find_largest_of_matrix();
    const Tensor factor = new_figure(), largest = std::move(call_.instance.matrix_largest);
    const auto& cast = std::get<Cast>(call_.operation.work);
    const bool turned = cast.backward && call_.shape.fp8.has_two_copies();
    const Array copy = call_.write(0);
    kernels_.cast_to_fp8({.x = call_.weight(0),
                          .rows = matrix().rows,
                          .columns = matrix().columns,
                          .format = Fp8Format::kE4m3,
                          .largest = largest->array().as<const float>(),
                          .factor = factor->array().as<float>(),
                          .by_rows = turned ? Array{} : copy,
                          .by_columns = turned ? copy : Array{}});
    call_.tensor(call_.operation.writes[0]).stand_for(Fp8Format::kE4m3, factor);
  }

  // Rows are those of tokens, where a copy by columns asks for them.
  void cast_operand(const Cast& cast) {
    const Operation& operation = call_.operation;
    const std::int64_t elements = cast.size.elements;
    const std::int64_t rows = operation.writes.size() > 1 ? call_.shape.tokens : 1;
    const Fp8Format format = cast.backward ? Fp8Format::kE5m2 : Fp8Format::kE4m3;
    const Tensor factor = new_figure();
    kernels_.cast_to_fp8({.x = call_.read(0),
                          .rows = rows,
                          .columns = elements / rows,
                          .format = format,
                          .largest = largest_before_cast(elements),
                          .factor = factor->array().as<float>(),
                          .by_rows = call_.write(0),
                          .by_columns = operation.writes.size() > 1 ? call_.write(1) : Array{}});
    for (const BufferId id : operation.writes) call_.tensor(id).stand_for(format, factor);
  }

  // The one that another operation has found; or that of the step before, while this one's is
  // noted.
  const float* largest_before_cast(std::int64_t elements) {
    if (call_.operation.reads.size() > 1) return call_.read(1).as<const float>();
    const Fp8History::Figures known = figures();
    kernels_.find_largest(
        {.x = call_.read(0), .count = elements, .largest = known.latest, .joins = true});
    return known.before;
  }

  Fp8History::Figures figures() const {
    STEPCAST_ASSERT(call_.fp8_history != nullptr, "scales are found, or known from before");
    return call_.fp8_history->of({call_.place.chunk, call_.place.block, call_.operation.writes[0]});
  }

  void turn(std::int64_t elements) {
    const std::int64_t rows = call_.shape.tokens;
    kernels_.transpose_fp8(
        {.from = call_.read(0), .to = call_.write(0), .rows = rows, .columns = elements / rows});
    call_.tensor(call_.operation.writes[0])
        .stand_for_the_same(call_.tensor(call_.operation.reads[0]));
  }

  // Some rows at a time, through room for as many in the model's type.
  void norm_to_fp8(const Normalization& norm) {
    const Operation& operation = call_.operation;
    const std::int64_t rows = norm.size.rows(), width = norm.size.width;
    const std::int64_t most = std::min(rows, rows_of_norms_to_fp8(width, norm.type));
    const std::int64_t stride = call_.buffer(operation.reads[0]).elements / rows;
    const Tensor wide = call_.memory.make_temporary(most * width, norm.type, Stream::kCompute);
    const Tensor factor = new_figure();
    const Fp8History::Figures known = figures();
    for (std::int64_t row = 0; row < rows; row += most) {
      const std::int64_t count = std::min(most, rows - row);
      kernels_.norm({.kind = norm_kind(norm.norm),
                     .x = call_.read(0).from(row * stride),
                     .weight = call_.weight(0),
                     .bias = norm.bias ? call_.weight(1) : Array{},
                     .y = wide->array(),
                     .rows = count,
                     .width = width,
                     .x_stride = stride,
                     .y_stride = width});
      kernels_.find_largest(
          {.x = wide->array(), .count = count * width, .largest = known.latest, .joins = true});
      kernels_.cast_to_fp8({.x = wide->array(),
                            .rows = count,
                            .columns = width,
                            .format = Fp8Format::kE4m3,
                            .largest = known.before,
                            .factor = factor->array().as<float>(),
                            .by_rows = call_.write(0).from(row * width)});
    }
    if (operation.writes.size() > 1) {
      kernels_.transpose_fp8(
          {.from = call_.write(0), .to = call_.write(1), .rows = rows, .columns = width});
    }
    for (const BufferId id : operation.writes) {
      call_.tensor(id).stand_for(Fp8Format::kE4m3, factor);
    }
  }

  const OperationCall& call_;
  Kernels& kernels_;
};

}  // namespace

bool run_on_fp8(const OperationCall& call) { return run_by_kind<Fp8Call>(call); }

}  // namespace stepcast
