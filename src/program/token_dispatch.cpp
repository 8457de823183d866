// SPDX-License-Identifier: Apache-2.0
#include "program/token_dispatch.h"

#include <algorithm>

namespace stepcast {
namespace {

// SMs of DeepEP's kernels (Megatron: moe_deepep_num_sms). HybridEP's move rows without loads and
// stores.
constexpr std::int64_t kDeepEpSms = 20;

}  // namespace

std::int64_t TokenDispatch::store_sms() const {
  if (shape_.dispatcher == MoeDispatcher::kHybridEp) return 0;
  return shape_.exchange_sms > 0 ? shape_.exchange_sms : kDeepEpSms;
}

void TokenDispatch::exchange_tokens(const char* name, BufferId from, BufferId to,
                                    CollectivePurpose purpose) {
  builder_.exchange(name, AxisGroup::kTensorExpert, shape_.rows * width(), builder_.shape().type,
                    {from}, {to}, purpose, shape_.copies(), store_sms());
  if (store_sms() == 0) {
    std::get<Collective>(builder_.last().work).held_sms = {shape_.exchange_sms};
  }
}

void TokenDispatch::exchange_rows(const char* name, BufferId from, BufferId to,
                                  CollectivePurpose purpose) {
  const std::int64_t elements = std::max(shape_.sent, shape_.received) * width();
  builder_.exchange(name, AxisGroup::kExpert, elements, builder_.shape().type, {from}, {to},
                    purpose);
  if (!beside_) return;
  builder_.last().stream = BlockStream::kCommunication;
  beside_();
}

std::int64_t TokenDispatch::tokens() const {
  if (by_rows()) return shape_.tokens;
  return gathers() ? shape_.tokens * shape_.group() : shape_.distinct_tokens();
}

// Copies rows out of tokens, or adds them up to tokens.
BufferId TokenDispatch::permute(const char* name, TokenMove move, bool backward,
                                std::int64_t tokens, std::int64_t rows,
                                BlockBuilder::Buffers reads) {
  const Shape& shape = builder_.shape();
  const bool to_rows = (move == TokenMove::kPermute) != backward;
  const std::int64_t written = (to_rows ? rows : tokens) * width();
  const bool has_room = to_rows && !by_rows();
  const BufferId out = builder_.activation(name, has_room ? shape_.held * width() : written);
  const double bytes =
      static_cast<double>(shape.element) * static_cast<double>((tokens + rows) * width());
  builder_.add(name, TokenPermutation{move, backward, shape.type, {written, width(), bytes, 4}},
               reads, {out});
  return out;
}

// Ranks hand over their rows expert by expert; all of an expert's come together.
BufferId TokenDispatch::sort(BufferId rows, bool backward) {
  if (shape_.group() == 1) return rows;
  return permute("sort_rows", TokenMove::kSort, backward, shape_.rows, shape_.rows, {rows});
}

// How many rows go where: ranks tell each other, and the host, which sizes the buffers.
void TokenDispatch::read_counts(const Routing& routing) {
  if (shape_.sized) return;
  const InPart part(builder_, GraphPart::kRouter);
  if (shape_.group() == 1 || !by_rows()) {
    builder_.add("read_counts", HostRead{shape_.experts}, {routing.chosen}, {});
    return;
  }
  const std::int64_t counts = shape_.experts * shape_.group();
  const BufferId known = builder_.buffer("row_counts", counts, DataType::kInt64);
  builder_.collective("gather_counts", CollectiveKind::kAllGather, AxisGroup::kTensorExpert, counts,
                      DataType::kInt64, {routing.chosen}, {known}, CollectivePurpose::kRouting);
  builder_.add("read_counts", HostRead{counts}, {known}, {});
}

// The weights go as the rows do, in fp32 and in their place (Megatron: global_probs).
void TokenDispatch::bring_weights(BufferId weights) {
  exchange_weights(weights, false);
  if (shape_.tensor == 1) return;
  builder_.collective("gather_weights", CollectiveKind::kAllGather, AxisGroup::kExpertTensor,
                      shape_.rows, DataType::kFp32, {weights}, {weights},
                      CollectivePurpose::kRouting);
}

// Each rank that shares an expert has seen a part of its activation.
void TokenDispatch::return_weights(BufferId gradient) {
  if (shape_.tensor > 1) {
    builder_.collective("reduce_weights", CollectiveKind::kReduceScatter, AxisGroup::kExpertTensor,
                        shape_.rows, DataType::kFp32, {gradient}, {gradient},
                        CollectivePurpose::kRouting);
  }
  exchange_weights(gradient, true);
}

void TokenDispatch::exchange_weights(BufferId weights, bool backward) {
  if (shape_.ranks == 1) return;
  builder_.exchange(backward ? "dispatch_weights_backward" : "dispatch_weights", AxisGroup::kExpert,
                    std::max(shape_.sent, shape_.received), DataType::kFp32, {weights}, {weights},
                    CollectivePurpose::kRouting);
}

BufferId TokenDispatch::bring_rows(BufferId rows, bool backward) {
  constexpr auto kPurpose = CollectivePurpose::kDispatch;
  if (shape_.ranks > 1) {
    const BufferId received = builder_.activation("received_rows", shape_.received * width());
    exchange_rows(backward ? "combine_backward" : "dispatch", rows, received, kPurpose);
    rows = received;
    if (!backward) arrived_ = received;
  }
  return sort(gather_rows(rows), backward);
}

BufferId TokenDispatch::gather_rows(BufferId rows) {
  if (shape_.tensor == 1) return rows;
  const BufferId gathered = builder_.activation("gathered_rows", shape_.rows * width());
  builder_.collective("gather_rows", CollectiveKind::kAllGather, AxisGroup::kExpertTensor,
                      shape_.rows * width(), builder_.shape().type, {rows}, {gathered},
                      CollectivePurpose::kDispatch);
  return gathered;
}

BufferId TokenDispatch::return_rows(BufferId rows, bool backward) {
  const DataType type = builder_.shape().type;
  constexpr auto kPurpose = CollectivePurpose::kCombine;
  rows = sort(rows, backward);
  if (shape_.tensor > 1) {
    // Forward summed in the type of the routing weights, which is fp32.
    const BufferId reduced = builder_.activation("reduced_rows", shape_.received * width());
    builder_.collective("reduce_rows", CollectiveKind::kReduceScatter, AxisGroup::kExpertTensor,
                        shape_.rows * width(), backward ? type : DataType::kFp32, {rows}, {reduced},
                        kPurpose);
    rows = reduced;
    if (!backward) returned_.push_back(reduced);
  }
  if (shape_.ranks == 1) return rows;
  const BufferId back = builder_.activation("returned_rows", shape_.sent * width());
  exchange_rows(backward ? "dispatch_backward" : "combine", rows, back, kPurpose);
  if (!backward) returned_.push_back(back);
  return back;
}

BufferId TokenDispatch::spread(BufferId tokens, bool backward) {
  const DataType type = builder_.shape().type;
  const char* name = backward ? "combine_backward" : "dispatch";
  const std::int64_t elements = this->tokens() * width();
  const BufferId out = builder_.activation("arrived_tokens", elements);
  if (gathers()) {
    builder_.collective(name, CollectiveKind::kAllGather, AxisGroup::kTensorExpert, elements, type,
                        {tokens}, {out}, CollectivePurpose::kDispatch);
  } else {
    exchange_tokens(name, tokens, out, CollectivePurpose::kDispatch);
  }
  return out;
}

BufferId TokenDispatch::collect(BufferId sums, bool backward) {
  const DataType type = builder_.shape().type;
  const char* name = backward ? "dispatch_backward" : "combine";
  const BufferId out = builder_.activation("returned_tokens", shape_.tokens * width());
  if (gathers()) {
    // Forward summed in the type of the routing weights, which is fp32.
    builder_.collective(name, CollectiveKind::kReduceScatter, AxisGroup::kTensorExpert,
                        this->tokens() * width(), backward ? type : DataType::kFp32, {sums}, {out},
                        CollectivePurpose::kCombine);
  } else {
    exchange_tokens(name, sums, out, CollectivePurpose::kCombine);
  }
  if (!backward) returned_.push_back(out);
  return out;
}

// HybridEP's metadata_preprocessing: every rank learns the routing of all tokens of the group.
void TokenDispatch::gather_routing_map(const Routing& routing) {
  if (shape_.dispatcher != MoeDispatcher::kHybridEp || shape_.group() == 1) return;
  const std::int64_t map = shape_.tokens * shape_.experts * shape_.group();
  const BufferId all = builder_.buffer("gathered_routing_map", map, DataType::kInt8);
  builder_.collective("gather_routing_map", CollectiveKind::kAllGather, AxisGroup::kTensorExpert,
                      map, DataType::kInt8, {routing.chosen}, {all}, CollectivePurpose::kRouting);
}

BufferId TokenDispatch::make_rows(BufferId tokens, const Routing& routing) {
  row_map_ = builder_.buffer("row_map", by_rows() ? shape_.sent : shape_.held, DataType::kInt64);
  weights_ = builder_.buffer("row_weights", shape_.held, DataType::kFp32);
  BufferId probabilities = routing.probabilities;
  if (!by_rows() && gathers()) {
    const std::int64_t scores = this->tokens() * shape_.experts;
    const BufferId all = builder_.buffer("gathered_routing", scores, DataType::kFp32);
    builder_.collective("gather_routing", CollectiveKind::kAllGather, AxisGroup::kTensorExpert,
                        scores, DataType::kFp32, {probabilities}, {all},
                        CollectivePurpose::kRouting);
    probabilities = all;
  }
  const BufferId permuted = permute("permute", TokenMove::kPermute, false, this->tokens(), rows(),
                                    {tokens, probabilities, routing.chosen});
  builder_.also_writes({row_map_, weights_});
  return permuted;
}

BufferId TokenDispatch::bring(BufferId tokens, const Routing& routing) {
  returned_.clear();
  read_counts(routing);
  if (!by_rows()) {
    gather_routing_map(routing);
    arrived_ = spread(tokens, false);
    return make_rows(arrived_, routing);
  }
  const BufferId out = bring_rows(make_rows(tokens, routing), false);
  bring_weights(weights_);
  return out;
}

// Weights went to the experts in place: they are kept too.
BufferId TokenDispatch::bring_again(BufferId tokens, const Routing& routing) {
  if (!by_rows()) {
    return make_rows(gathers() ? spread(tokens, false) : arrived_, routing);
  }
  const BufferId brought = weights_;
  const BufferId rows = make_rows(tokens, routing);
  if (shape_.group() == 1) return rows;
  weights_ = brought;
  return sort(gather_rows(shape_.ranks > 1 ? arrived_ : rows), false);
}

BufferId TokenDispatch::send_back(BufferId rows) {
  if (by_rows()) return return_rows(rows, false);
  const BufferId sums =
      permute("unpermute", TokenMove::kUnpermute, false, tokens(), this->rows(), {rows, row_map_});
  return collect(sums, false);
}

BufferId TokenDispatch::add_up(BufferId rows) {
  if (!by_rows()) return rows;
  return permute("unpermute", TokenMove::kUnpermute, false, tokens(), this->rows(),
                 {rows, row_map_});
}

void TokenDispatch::send_back_again(BufferId rows) {
  if (!by_rows()) {
    permute("unpermute", TokenMove::kUnpermute, false, tokens(), this->rows(), {rows, row_map_});
  } else if (shape_.group() == 1) {
    returned_ = {rows};
  } else {
    sort(rows, false);
  }
}

BufferId TokenDispatch::take_back_again() {
  const BufferId last = returned_.back();
  returned_.pop_back();
  drop_returned();
  return add_up(last);
}

void TokenDispatch::drop_returned() {
  std::vector<BufferId>& reads = builder_.last().reads;
  reads.insert(reads.end(), returned_.begin(), returned_.end());
  returned_.clear();
}

BufferId TokenDispatch::bring_gradient(BufferId gradient) {
  if (!by_rows()) gradient = spread(gradient, true);
  const BufferId rows = permute("unpermute_backward", TokenMove::kUnpermute, true, tokens(),
                                this->rows(), {gradient, row_map_});
  return by_rows() ? bring_rows(rows, true) : rows;
}

BufferId TokenDispatch::take_gradient_back(BufferId rows, BufferId weight_gradient) {
  if (by_rows()) {
    rows = return_rows(rows, true);
    return_weights(weight_gradient);
  }
  const BufferId sums = permute("permute_backward", TokenMove::kPermute, true, tokens(),
                                this->rows(), {rows, row_map_});
  return by_rows() ? sums : collect(sums, true);
}

}  // namespace stepcast
