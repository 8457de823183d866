// SPDX-License-Identifier: Apache-2.0
#include "program/context_attention.h"

#include <algorithm>

namespace stepcast {
namespace {

// Attention on this rank once heads have been exchanged among `exchange` of the cp ranks: all heads
// where none are, the whole sequence where all of them exchange.
struct Part {
  Part(const Shape& of, const ContextHeads& own)
      : shape(of),
        exchange(of.cp_exchange),
        ring(of.cp / of.cp_exchange),
        rows(of.sequence * exchange),
        heads(own.heads / exchange),
        kv_heads(of.ring_in_fp32 ? heads : own.kv_heads / exchange),
        copies{of.ring_in_fp32 ? own.heads / own.kv_heads : 0},
        key_dim(own.key_dim),
        value_dim(own.value_dim),
        span(own.span),
        query(of.batch * rows * heads * key_dim),
        context(of.batch * rows * heads * value_dim),
        key(of.batch * rows * kv_heads * key_dim),
        value(of.batch * rows * kv_heads * value_dim),
        type(of.fp8_attention ? of.attention_fp8.type : of.type) {}

  AxisGroup ring_group() const {
    return exchange == 1 ? AxisGroup::kContext : AxisGroup::kContextOuter;
  }
  AxisGroup exchange_group() const {
    return ring == 1 ? AxisGroup::kContext : AxisGroup::kContextInner;
  }
  Attention attention(bool backward, std::int64_t queries, std::int64_t keys, bool causal) const {
    const DataType read = type == shape.type ? shape.product : type;
    Attention out{backward, shape.batch, heads, kv_heads, queries, keys, key_dim, causal, read};
    if (value_dim != key_dim) out.value_dim = {value_dim};
    if (span.sinks.valid()) out.sinks = {1};
    return out;
  }
  // Over the whole sequence, where each rank has a share of the heads.
  Attention whole(bool backward) const {
    Attention out = attention(backward, rows, rows, true);
    out.window = span.window;
    out.chunk = span.chunk;
    return out;
  }
  // Keys that a query of a sequence of so many tokens sees, on average.
  std::int64_t seen(std::int64_t tokens) const {
    std::int64_t out = tokens / 2;
    if (span.chunk && span.chunk.value < tokens) out = span.chunk.value / 2;
    if (span.window && span.window.value < tokens) {
      const std::int64_t window = span.window.value;
      out = std::min(out, window - window * window / (2 * tokens));
    }
    return std::max<std::int64_t>(1, out);
  }
  std::int64_t statistics() const { return shape.batch * heads * rows; }
  std::int64_t key_value() const { return key + value; }
  // Each of so many ranks has `own_rows` of a sequence.
  ContextSizes sizes(std::int64_t own_rows, std::int64_t ranks) const {
    return {shape.batch, own_rows, heads, kv_heads, key_dim, value_dim, ranks};
  }
  ContextSizes ring_sizes() const { return sizes(rows, ring); }

  const Shape& shape;
  std::int64_t exchange, ring;
  std::int64_t rows;  // of a sequence, on this rank
  std::int64_t heads, kv_heads;
  OptionalCount copies;  // of the model's keys, where kv_heads are more
  std::int64_t key_dim, value_dim;
  AttentionSpan span;
  std::int64_t query, context, key, value;  // elements
  DataType type;                            // of what the kernels read
  // Results of a ring's steps, and gradients that travel, are summed in this.
  DataType summed() const { return shape.ring_in_fp32 ? DataType::kFp32 : shape.type; }
};

// One step of the ring. The own block is causal. In blocks from ranks before this one, all queries
// see the half from the sequence's begin; in those behind, the second half of the queries sees all.
// Which are which depends on the rank, and all do the same work: here they take turns. In memory
// they differ: the last rank's queries see something in every step, and so its results are whole.
// Buffers are as large as that rank's, whose memory is the most.
struct RingStep {
  RingStep(const Part& part, std::int64_t index)
      : number{index + 1},
        causal(index == 0),
        queries(index > 0 && index % 2 == 0 ? part.rows / 2 : part.rows),
        keys(index % 2 == 1 ? part.rows / 2 : part.rows) {}
  OptionalCount number;
  bool causal;
  std::int64_t queries, keys;
  Attention attention(const Part& part, bool backward) const {
    Attention out = part.attention(backward, queries, keys, causal);
    out.ring_step = number;
    // Every document is cut as a sequence is, so a step meets the same part of each.
    const std::int64_t span = part.shape.document_span.value;
    if (span > 0) out.chunk = {std::max<std::int64_t>(1, span * keys / (part.rows * part.ring))};
    return out;
  }
  std::int64_t query_elements(const Part& part) const { return part.query / part.rows * queries; }
  std::int64_t context_elements(const Part& part) const {
    return part.context / part.rows * queries;
  }
  std::int64_t key_elements(const Part& part) const { return part.key_value() / part.rows * keys; }
};

// A kernel that reads and writes each element once.
struct Moved {
  const char* name;
  ContextMove move;
  ContextTensor of;
  bool backward;
  std::int64_t elements;
};
void copy(BlockBuilder& builder, const Moved& moved, const ContextSizes& sizes,
          OptionalCount copies, DataType type, BlockBuilder::Buffers reads,
          BlockBuilder::Buffers writes) {
  const double bytes = 2.0 * static_cast<double>(size_of(type));
  builder.add(moved.name,
              ContextCopy{moved.move, moved.of, moved.backward, sizes, copies, type,
                          builder.size(moved.elements, 0, bytes)},
              reads, writes);
}

// One kernel reads both, or only the new one where it is the first, and writes the sum.
KernelSize one_merge(const BlockBuilder& builder, std::int64_t elements, bool first) {
  const double bytes = (first ? 2.0 : 3.0) * static_cast<double>(builder.shape().element);
  return builder.size(elements, 0, bytes);
}

// PyTorch's kernels, one by one. Forward a result is cast to fp32; then its distance from the sum
// is taken, scaled and subtracted, and five kernels renew the statistics. Backward it is added, to
// zeros at first. Where only half of the rows took part, both halves are then put together.
KernelSize merge_in_steps(const BlockBuilder& builder, bool backward, std::int64_t elements,
                          std::int64_t whole, bool first) {
  const double narrow = static_cast<double>(builder.shape().element);
  const double wide = static_cast<double>(size_of(DataType::kFp32));
  double bytes = narrow + wide;
  std::int64_t launches = 1;
  if (backward) {
    bytes += (first ? 2 : 1) * wide;
    launches += first ? 1 : 0;
  } else if (!first) {
    bytes += (3 + 2 + 3) * wide;
    launches += 3 + 5;
  }
  KernelSize out = builder.size(elements, 0, bytes, launches);
  if (elements < whole) {
    out.bytes += 2 * wide * static_cast<double>(whole);
    ++out.launches;
  }
  return out;
}

// `whole`: elements of all rows; `elements`: of those that this step, or this piece, had.
struct Merged {
  const char* name;
  ContextTensor of;
  bool backward;
  std::int64_t elements, whole;
  bool first;
  OptionalCount ring_step, piece = {};
};
void merge(BlockBuilder& builder, const Part& part, const Merged& one, BlockBuilder::Buffers reads,
           BlockBuilder::Buffers writes) {
  const Shape& shape = builder.shape();
  const KernelSize size =
      shape.ring_in_fp32 ? merge_in_steps(builder, one.backward, one.elements, one.whole, one.first)
                         : one_merge(builder, one.elements, one.first);
  builder.add(one.name,
              PartialMerge{one.of, one.backward, part.ring_sizes(), one.first, one.ring_step,
                           one.piece, shape.type, size},
              reads, writes);
}

// The sum in the model's type; of keys and values also over the query heads that share them.
void narrow(BlockBuilder& builder, const Part& part, const char* name, ContextTensor of,
            bool backward, std::int64_t elements, BufferId from, BufferId to) {
  const Shape& shape = builder.shape();
  const auto bytes = static_cast<double>(size_of(DataType::kFp32) + shape.element);
  builder.add(name,
              ContextCopy{ContextMove::kNarrow, of, backward, part.ring_sizes(), part.copies,
                          shape.type, builder.size(elements, 0, bytes)},
              {from}, {to});
}

// Tensors of this rank's tokens with all heads, for those of all tokens with its share of the
// heads, or back. Each is copied into the order of the receivers, sent, and copied into that of the
// sequence; copies run beside the messages of the tensors before.
struct Exchanged {
  const char* name;
  ContextTensor of;
  std::int64_t elements;
  BufferId from, to;
};
enum class Target { kShareOfHeads, kOwnTokens };
void exchange(BlockBuilder& builder, const Part& part, bool backward, Target target, DataType type,
              const std::vector<Exchanged>& tensors) {
  const bool to_heads = target == Target::kShareOfHeads;
  const ContextMove leaving = to_heads ? ContextMove::kSplitHeads : ContextMove::kSplitTokens;
  const ContextMove coming = to_heads ? ContextMove::kJoinTokens : ContextMove::kJoinHeads;
  const ContextSizes sizes = part.sizes(part.rows / part.exchange, part.exchange);
  std::vector<BufferId> arrived;
  for (const Exchanged& tensor : tensors) {
    const BufferId sent = builder.buffer("exchange_sent", tensor.elements, type);
    arrived.push_back(builder.buffer("exchange_received", tensor.elements, type));
    copy(builder, {"exchange_order", leaving, tensor.of, backward, tensor.elements}, sizes, {},
         type, {tensor.from}, {sent});
    builder.collective(tensor.name, CollectiveKind::kAllToAll, part.exchange_group(),
                       tensor.elements, type, {sent}, {arrived.back()},
                       CollectivePurpose::kActivations, BlockStream::kCommunication);
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    copy(builder, {"sequence_order", coming, tensors[i].of, backward, tensors[i].elements}, sizes,
         {}, type, {arrived[i]}, {tensors[i].to});
  }
}

QkvBuffers exchange_in(BlockBuilder& builder, const Part& part, const QkvBuffers& qkv) {
  if (part.exchange == 1) return qkv;
  const QkvBuffers out{builder.buffer("query_by_heads", part.query, part.type),
                       builder.buffer("key_by_heads", part.key, part.type),
                       builder.buffer("value_by_heads", part.value, part.type)};
  exchange(builder, part, false, Target::kShareOfHeads, part.type,
           {{"exchange_query", ContextTensor::kQuery, part.query, qkv.query, out.query},
            {"exchange_key", ContextTensor::kKey, part.key, qkv.key, out.key},
            {"exchange_value", ContextTensor::kValue, part.value, qkv.value, out.value}});
  return out;
}

// Each message brings the keys and values of the next step while the step before is computed. The
// results of the steps are merged at the end, until when all keys and values stay
// (context_parallel.py in Transformer Engine); PyTorch merges each at once.
void ring_forward(BlockBuilder& builder, const Part& part, const QkvBuffers& qkv,
                  CoreAttentionBuffers& out, BufferId context) {
  BufferId key_value = builder.buffer("key_value", part.key_value(), part.type);
  copy(builder,
       {"pack_key_value", ContextMove::kPack, ContextTensor::kKeyValue, false, part.key_value()},
       part.ring_sizes(), part.copies, part.type, {qkv.key, qkv.value}, {key_value});
  const bool at_once = part.shape.ring_in_fp32;
  const BufferId wide =
      at_once ? builder.buffer("wide_context", part.context, part.summed()) : BufferId{};
  std::vector<BufferId> received, partial, sums;
  for (std::int64_t i = 0; i < part.ring; ++i) {
    const RingStep step(part, i);
    BufferId next;
    if (i + 1 < part.ring) {
      next = builder.buffer("key_value", part.key_value(), part.type);
      builder.collective("ring_key_value", CollectiveKind::kSendReceive, part.ring_group(),
                         part.key_value(), part.type, {key_value}, {next},
                         CollectivePurpose::kActivations, BlockStream::kCommunication);
    }
    partial.push_back(builder.activation("partial_context", part.context));
    sums.push_back(builder.buffer("partial_sums", part.statistics(), DataType::kFp32));
    builder.add("attention", step.attention(part, false), {qkv.query, key_value},
                {partial.back(), sums.back()});
    builder.uses({part.span.sinks});
    if (at_once) {
      merge(builder, part,
            {"merge_partial", ContextTensor::kContext, false, step.context_elements(part),
             part.context, i == 0, step.number},
            {partial.back(), sums.back()}, {wide, out.softmax});
    }
    received.push_back(key_value);
    if (next.valid()) key_value = next;
  }
  if (at_once) {
    narrow(builder, part, "narrow_context", ContextTensor::kContext, false, part.context, wide,
           context);
  }
  for (std::size_t i = 0; i < partial.size() && !at_once; ++i) {
    const RingStep step(part, static_cast<std::int64_t>(i));
    merge(builder, part,
          {"merge_partial", ContextTensor::kContext, false, step.context_elements(part),
           part.context, i == 0, step.number},
          {partial[i], sums[i]}, {context, out.softmax});
  }
  for (const BufferId id : received) builder.last().reads.push_back(id);
  out.read = {qkv.query, key_value, key_value};
}

// An operation that writes the gradient of keys writes that of values, too, in a buffer of its own.
void also_values(BlockBuilder& builder, const QkvBuffers& gradient) {
  if (gradient.value != gradient.key) builder.also_writes({gradient.value});
}

// Against the order of the forward: keys and values travel on, and the sums of their gradients
// behind them, home at last.
void ring_backward(BlockBuilder& builder, const Part& part, const CoreAttentionBuffers& saved,
                   BufferId context, BufferId context_gradient, const QkvBuffers& gradient) {
  const bool in_fp32 = part.shape.ring_in_fp32;
  const DataType wide = part.summed();
  const auto sum_of = [&](const char* name, std::int64_t elements, BufferId otherwise) {
    return in_fp32 ? builder.buffer(name, elements, wide) : otherwise;
  };
  const BufferId query_sum = sum_of("wide_query_gradient", part.query, gradient.query);
  const BufferId key_sum = sum_of("wide_key_value_gradient", part.key_value(), gradient.key);
  BufferId key_value = saved.read.key, travelling;
  for (std::int64_t i = 0; i < part.ring; ++i) {
    const RingStep step(part, part.ring - 1 - i);
    const bool last = i + 1 == part.ring;
    BufferId next, arrived;
    if (!last) next = builder.buffer("key_value", part.key_value(), part.type);
    if (i > 0) arrived = builder.buffer("travelled_gradient", part.key_value(), wide);
    const std::int64_t bytes = (last ? 0 : part.key_value() * size_of(part.type)) +
                               (i > 0 ? part.key_value() * size_of(wide) : 0);
    if (bytes > 0) {
      builder.collective("ring_gradients", CollectiveKind::kSendReceive, part.ring_group(),
                         bytes / size_of(wide), wide, {last ? BufferId{} : key_value, travelling},
                         {}, CollectivePurpose::kActivations, BlockStream::kCommunication);
      for (const BufferId id : {next, arrived}) {
        if (id.valid()) builder.last().writes.push_back(id);
      }
    }
    const std::int64_t queries = step.query_elements(part), keys = step.key_elements(part);
    const BufferId query_part = builder.activation("partial_query_gradient", part.query);
    const BufferId key_part = builder.activation("partial_key_value_gradient", part.key_value());
    const BufferId accumulator = builder.buffer("query_accumulator", part.query, DataType::kFp32,
                                                MemoryCategory::kWorkspace);
    builder.add("attention_backward", step.attention(part, true),
                {saved.read.query, key_value, context, saved.softmax, context_gradient},
                {query_part, key_part, accumulator});
    builder.uses({part.span.sinks});
    merge(builder, part,
          {"add_query_gradient", ContextTensor::kQuery, true, queries, part.query, i == 0,
           step.number},
          {query_part}, {query_sum});
    const BufferId sum =
        last ? key_sum : builder.buffer("travelling_gradient", part.key_value(), wide);
    merge(builder, part,
          {"add_key_value_gradient", ContextTensor::kKeyValue, true, keys, part.key_value(), i == 0,
           step.number},
          {key_part, arrived}, {sum});
    if (last && !in_fp32) also_values(builder, gradient);
    travelling = sum;
    key_value = next;
  }
  if (in_fp32) {
    narrow(builder, part, "narrow_query_gradient", ContextTensor::kQuery, true, part.query,
           query_sum, gradient.query);
    narrow(builder, part, "narrow_key_value_gradient", ContextTensor::kKeyValue, true,
           part.key_value(), key_sum, gradient.key);
    also_values(builder, gradient);
  }
}

// Keys and values of all tokens, in their order; without a message beside them.
BufferId gather_key_value(BlockBuilder& builder, const Part& part, const QkvBuffers& qkv) {
  const std::int64_t whole = part.key_value() * part.ring;
  const BufferId gathered = builder.buffer("gathered_key_value", whole, part.type);
  const auto gather = [&](const char* name, BufferId from, std::int64_t own,
                          CollectivePurpose purpose) {
    builder.collective(name, CollectiveKind::kAllGather, part.ring_group(), own * part.ring,
                       part.type, {from}, {gathered}, purpose);
  };
  gather("gather_key", qkv.key, part.key, CollectivePurpose::kKeys);
  gather("gather_value", qkv.value, part.value, CollectivePurpose::kValues);
  const BufferId ordered = builder.buffer("ordered_key_value", whole, part.type);
  copy(builder,
       {"sequence_order", ContextMove::kJoinTokens, ContextTensor::kKeyValue, false, whole},
       part.ring_sizes(), {}, part.type, {gathered}, {ordered});
  return ordered;
}

// The two pieces of this rank, each against the keys before its end. Together they see as many as
// on any other rank: here each sees half of the sequence, or what a window or a chunk leaves of it.
constexpr std::int64_t kPieces = 2;

Attention attention_of_piece(const Part& part, bool backward, std::int64_t piece) {
  Attention out =
      part.attention(backward, part.rows / kPieces, part.seen(part.rows * part.ring), false);
  out.piece = {piece};
  return out;
}

void gather_forward(BlockBuilder& builder, const Part& part, const QkvBuffers& qkv,
                    const CoreAttentionBuffers& out) {
  const BufferId key_value = gather_key_value(builder, part, qkv);
  for (std::int64_t piece = 1; piece <= kPieces; ++piece) {
    builder.add("attention", attention_of_piece(part, false, piece), {qkv.query, key_value},
                {out.context, out.softmax});
    builder.uses({part.span.sinks});
  }
}

void gather_backward(BlockBuilder& builder, const Part& part, const CoreAttentionBuffers& saved,
                     BufferId context_gradient, const QkvBuffers& gradient) {
  const QkvBuffers& qkv = saved.read;
  const std::int64_t whole = part.key_value() * part.ring;
  const BufferId key_value = gather_key_value(builder, part, qkv);
  const BufferId of_keys = builder.activation("whole_key_value_gradient", whole);
  for (std::int64_t piece = 1; piece <= kPieces; ++piece) {
    const Attention attention = attention_of_piece(part, true, piece);
    const BufferId accumulator = builder.buffer("query_accumulator", part.query / kPieces,
                                                DataType::kFp32, MemoryCategory::kWorkspace);
    // It has room for the piece that sees all keys.
    const BufferId key_part = builder.activation("partial_key_value_gradient", whole);
    builder.add("attention_backward", attention,
                {qkv.query, key_value, saved.context, saved.softmax, context_gradient},
                {gradient.query, key_part, accumulator});
    builder.uses({part.span.sinks});
    const std::int64_t seen = part.key_value() / part.rows * attention.key_length;
    merge(builder, part,
          {"add_key_value_gradient",
           ContextTensor::kKeyValue,
           true,
           seen,
           whole,
           piece == 1,
           {},
           {piece}},
          {key_part}, {of_keys});
  }
  const DataType wide = part.shape.type;
  const BufferId ordered = builder.activation("ordered_key_value_gradient", whole);
  copy(builder, {"rank_order", ContextMove::kSplitTokens, ContextTensor::kKeyValue, true, whole},
       part.ring_sizes(), {}, wide, {of_keys}, {ordered});
  const auto reduce = [&](const char* name, BufferId to, std::int64_t own,
                          CollectivePurpose purpose) {
    builder.collective(name, CollectiveKind::kReduceScatter, part.ring_group(), own * part.ring,
                       wide, {ordered}, {to}, purpose);
  };
  reduce("reduce_key_gradient", gradient.key, part.key, CollectivePurpose::kKeys);
  reduce("reduce_value_gradient", gradient.value, part.value, CollectivePurpose::kValues);
}

// The kernel over all tokens and a share of the heads, where no ring is left.
void whole_backward(BlockBuilder& builder, const Part& part, const CoreAttentionBuffers& saved,
                    BufferId context, BufferId context_gradient, const QkvBuffers& gradient) {
  const BufferId accumulator =
      builder.buffer("query_accumulator", part.query, DataType::kFp32, MemoryCategory::kWorkspace);
  builder.add("attention_backward", part.whole(true),
              {saved.read.query, saved.read.key, saved.read.value, context, saved.softmax,
               context_gradient},
              {gradient.query, gradient.key, gradient.value, accumulator});
  builder.uses({part.span.sinks});
}

}  // namespace

CoreAttentionBuffers context_attention(BlockBuilder& builder, const ContextHeads& heads,
                                       const QkvBuffers& qkv) {
  const Shape& shape = builder.shape();
  const Part part(shape, heads);
  CoreAttentionBuffers out;
  out.context = builder.activation("context", shape.tokens * heads.heads * heads.value_dim);
  out.softmax = builder.buffer("log_sum_exp", part.statistics(), DataType::kFp32);
  if (shape.cp_method == ContextMethod::kAllGather) {
    gather_forward(builder, part, qkv, out);
    out.read = qkv;
    return out;
  }
  const QkvBuffers read = exchange_in(builder, part, qkv);
  const bool exchanges = part.exchange > 1;
  const BufferId context =
      exchanges ? builder.activation("context_by_heads", part.context) : out.context;
  if (part.ring > 1) {
    ring_forward(builder, part, read, out, context);
  } else {
    builder.add("attention", part.whole(false), {read.query, read.key, read.value},
                {context, out.softmax});
    builder.uses({part.span.sinks});
    out.read = read;
  }
  if (!exchanges) return out;
  out.written = context;
  exchange(builder, part, false, Target::kOwnTokens, shape.type,
           {{"exchange_context", ContextTensor::kContext, part.context, context, out.context}});
  return out;
}

void context_attention_backward(BlockBuilder& builder, const ContextHeads& heads,
                                const CoreAttentionBuffers& saved, BufferId context_gradient,
                                const QkvBuffers& gradient) {
  const Shape& shape = builder.shape();
  const Part part(shape, heads);
  if (shape.cp_method == ContextMethod::kAllGather) {
    return gather_backward(builder, part, saved, context_gradient, gradient);
  }
  const auto backward = part.ring > 1 ? ring_backward : whole_backward;
  if (part.exchange == 1) {
    return backward(builder, part, saved, saved.context, context_gradient, gradient);
  }
  const BufferId flowing = builder.buffer("context_gradient_by_heads", part.context, part.type);
  exchange(builder, part, true, Target::kShareOfHeads, part.type,
           {{"exchange_context_gradient", ContextTensor::kContext, part.context, context_gradient,
             flowing}});
  const QkvBuffers by_heads{builder.activation("query_gradient_by_heads", part.query),
                            builder.activation("key_gradient_by_heads", part.key),
                            builder.activation("value_gradient_by_heads", part.value)};
  backward(builder, part, saved, saved.written, flowing, by_heads);
  exchange(builder, part, true, Target::kOwnTokens, shape.type,
           {{"exchange_query_gradient", ContextTensor::kQuery, part.query, by_heads.query,
             gradient.query},
            {"exchange_key_gradient", ContextTensor::kKey, part.key, by_heads.key, gradient.key},
            {"exchange_value_gradient", ContextTensor::kValue, part.value, by_heads.value,
             gradient.value}});
}

}  // namespace stepcast
