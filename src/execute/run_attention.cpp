// SPDX-License-Identifier: Apache-2.0
#include <string_view>

#include "core/assert.h"
#include "execute/operation_call.h"
#include "kernels/cpu/attention.h"

namespace stepcast {
namespace {

using cpu::AttentionShape;
using Input = cpu::Heads<const float>;
using Output = cpu::Heads<float>;

enum class Part { kQuery, kKey, kValue };

class AttentionCall {
 public:
  explicit AttentionCall(const OperationCall& call)
      : call_(call),
        shape_{call.shape.batch,    call.shape.heads,    call.shape.kv_heads,
               call.shape.sequence, call.shape.head_dim, true},
        query_(shape_.heads * shape_.head_dim),
        key_(shape_.kv_heads * shape_.head_dim) {}

  const AttentionShape& shape() const { return shape_; }
  Input context(std::size_t i) const { return {call_.read(i), query_}; }
  Output written_context() const { return {call_.write(0), query_}; }

  // A buffer of its own, or a part of the packed projection.
  Input input(std::size_t i, Part part) const {
    const BufferId id = call_.operation.reads[i];
    if (call_.buffer(id).elements == call_.shape.tokens * packed()) {
      return {call_.data(id) + begin(part), packed()};
    }
    return {call_.data(id), part == Part::kQuery ? query_ : key_};
  }
  Output packed_output(Part part) const { return {call_.write(0) + begin(part), packed()}; }

 private:
  std::int64_t packed() const { return query_ + 2 * key_; }
  std::int64_t begin(Part part) const {
    return part == Part::kQuery ? 0 : part == Part::kKey ? query_ : query_ + key_;
  }

  const OperationCall& call_;
  AttentionShape shape_;
  std::int64_t query_, key_;  // widths
};

}  // namespace

void run_attention(const OperationCall& call, const Attention& attention) {
  const AttentionCall own(call);
  const Input query = own.input(0, Part::kQuery), key = own.input(1, Part::kKey),
              value = own.input(2, Part::kValue);
  if (!attention.backward) {
    cpu::attention<float>(own.shape(), query, key, value, own.written_context(), call.write(1));
    return;
  }
  cpu::attention_backward<float>(own.shape(), query, key, value, own.context(3), call.read(4),
                                 own.context(5), own.packed_output(Part::kQuery),
                                 own.packed_output(Part::kKey), own.packed_output(Part::kValue),
                                 call.write(1));
}

void run_unfused_attention(const OperationCall& call) {
  const AttentionCall own(call);
  const AttentionShape& shape = own.shape();
  const std::string_view name = call.operation.name;
  if (name == "scores") {
    cpu::attention_scores<float>(shape, own.input(0, Part::kQuery), own.input(1, Part::kKey),
                                 call.write(0));
  } else if (name == "softmax" && !call.backward()) {
    cpu::masked_softmax<float>(shape, call.read(0), call.write(0));
  } else if (name == "context") {
    cpu::attention_context<float>(shape, call.read(0), own.input(1, Part::kValue), call.write(0));
  } else if (name == "context_transpose" && !call.backward()) {
    cpu::context_transpose<float>(shape, call.read(0), own.written_context());
  } else if (name == "context_transpose") {
    cpu::context_transpose_backward<float>(shape, own.context(0), call.write(0));
  } else if (name == "context_dgrad") {
    cpu::probabilities_gradient<float>(shape, call.read(0), own.input(1, Part::kValue),
                                       call.write(0));
  } else if (name == "value_grad") {
    cpu::value_gradient<float>(shape, call.read(0), call.read(1), call.write(0));
  } else if (name == "softmax") {
    cpu::masked_softmax_backward<float>(shape, call.read(1), call.read(0), call.write(0));
  } else if (name == "query_grad") {
    cpu::query_gradient<float>(shape, call.read(0), own.input(1, Part::kKey), call.write(0));
  } else if (name == "key_grad") {
    cpu::key_gradient<float>(shape, call.read(0), own.input(1, Part::kQuery), call.write(0));
  } else if (name == "qkv_gather") {
    cpu::gather_qkv_gradient<float>(shape, call.read(0), call.read(1), call.read(2),
                                    own.packed_output(Part::kQuery), own.packed_output(Part::kKey),
                                    own.packed_output(Part::kValue));
  } else {
    STEPCAST_ASSERT(false, "every operation of unfused attention is run");
  }
}

}  // namespace stepcast
