// SPDX-License-Identifier: Apache-2.0
// The arrays of an operation of a running program, by their place in it.
#pragma once

#include "execute/kernel_arrays.h"
#include "execute/operation_call.h"
#include "execute/sequence_places.h"
#include "operation/product.h"
#include "program/block.h"

namespace stepcast {

// Heads lie inside the packed projection, in that of queries and keys, where values lie apart, or
// in a buffer of their own.
inline HeadArray heads_in(const OperationCall& call, BufferId id, HeadSide side,
                          const HeadSpec& spec) {
  const std::int64_t elements = call.buffer(id).elements;
  if (elements == spec.tokens * spec.packed()) {
    return {call.data(id).from(spec.begin(side)), spec.packed()};
  }
  const std::int64_t both = spec.query + spec.key;
  if (elements == spec.tokens * both && side != HeadSide::kValue) {
    return {call.data(id).from(spec.begin(side)), both};
  }
  return {call.data(id), spec.width(side)};
}

class LiveArrays final : public KernelArrays {
 public:
  explicit LiveArrays(const OperationCall& call) : call_(call) {}

  Array read(std::size_t i, const ArraySpec&) override { return call_.read(i); }
  Array write(std::size_t i, const ArraySpec&) override { return call_.write(i); }
  bool has_write(std::size_t i) const override { return i < call_.operation.writes.size(); }
  bool reads_more_than(std::size_t count) const override {
    return call_.operation.reads.size() > count;
  }
  HeadArray read_heads(std::size_t i, HeadSide side, const HeadSpec& spec) override {
    return heads_in(call_, call_.operation.reads[i], side, spec);
  }
  HeadArray write_heads(HeadSide side, const HeadSpec& spec) override {
    const bool packed =
        call_.buffer(call_.operation.writes[0]).elements == spec.tokens * spec.packed();
    if (packed) return {call_.write(0).from(spec.begin(side)), spec.packed()};
    return {call_.write(static_cast<std::size_t>(side)), spec.width(side)};
  }
  RowArray read_rows(std::size_t i, const RowSpec& spec) override {
    return {call_.read(i), call_.buffer(call_.operation.reads[i]).elements / spec.rows};
  }
  RowArray write_rows(std::size_t i, const RowSpec& spec) override {
    return {call_.write(i), call_.buffer(call_.operation.writes[i]).elements / spec.rows};
  }
  ProductOperand operand(std::size_t i, const ArraySpec&) override { return call_.operand(i); }
  ProductOperand matrix(const ArraySpec& spec, bool backward) override {
    if (!is_scaled(spec.type)) return {weight(0, spec)};
    // A copy of a gathered matrix is made for each product.
    if (call_.operation.reads.size() > 1) return call_.operand(1);
    return call_.fp8_matrix(backward);
  }
  bool has_copies_by_columns() const override { return call_.shape.fp8.has_two_copies(); }
  // A product that makes some outputs again reads the second part of its weight alone.
  Array weight(std::size_t i, const ArraySpec& spec) override {
    const ParameterId id = call_.operation.parameters[i];
    const Parameter& whole = call_.block.weights[id.index()];
    const bool second = std::holds_alternative<Gemm>(call_.operation.work) &&
                        spec.elements < whole.elements() &&
                        spec.elements == whole.parts[1] * whole.columns;
    return second ? call_.weight(i).from(whole.parts[0] * whole.columns) : call_.weight(i);
  }
  GradientPlace gradient(std::size_t i, const ArraySpec&) override { return call_.gradient(i); }
  Array tokens(std::int64_t, std::int64_t, std::int64_t ahead) override { return text(ahead); }
  Array targets(std::int64_t, std::int64_t, std::int64_t ahead) override { return text(ahead + 1); }

  RankPart part() const override;

 private:
  Array text(std::int64_t later) const {
    return call_.micro_batch->text[static_cast<std::size_t>(later)]->array();
  }

  const OperationCall& call_;
};

}  // namespace stepcast
