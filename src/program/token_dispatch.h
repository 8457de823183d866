// SPDX-License-Identifier: Apache-2.0
// The way of tokens to the ranks of their experts and back, as Megatron's dispatchers go it
// (megatron/core/transformer/moe/token_dispatcher.py; docs/moe.md, "Messages"):
// - alltoall sends every row, one for each expert of a token, to its rank;
// - allgather gives all tokens to all ranks, which pick those of their experts;
// - the others send a token once to each rank (DeepEP, HybridEP), which makes rows of it.
// Backward goes the same ways: the gradient of what came back goes to the experts, that of their
// rows comes back.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "program/expert_shape.h"

namespace stepcast {

// Holds what the router says of every token and expert.
struct Routing {
  BufferId probabilities, chosen;
};

class TokenDispatch {
 public:
  TokenDispatch(const ExpertShape& shape, BlockBuilder& builder)
      : shape_(shape), builder_(builder) {}

  // Rows in the order of the experts, from tokens.
  BufferId bring(BufferId tokens, const Routing& routing);
  // The sum of each token's rows.
  BufferId take_back(BufferId rows) { return add_up(send_back(rows)); }
  // Both for torchtitan_op, which keeps what ranks have exchanged, and what the host has read
  // (torchtitan/distributed/activation_checkpoint.py: all_to_all_single, reduce_scatter_tensor,
  // _to_copy to the CPU).
  BufferId bring_again(BufferId tokens, const Routing& routing);
  void send_back_again(BufferId rows);
  BufferId take_back_again();
  // Nothing of the way back is made again; what is kept of it is dropped.
  void drop_returned();
  // Gradients go both ways like this.
  BufferId bring_gradient(BufferId gradient);
  BufferId take_gradient_back(BufferId rows, BufferId weight_gradient);

  BufferId weights() const { return weights_; }  // of each row

  // The next exchange of rows runs beside what `write` writes, which does not need it. Empty: it
  // runs alone.
  void beside(std::function<void()> write) { beside_ = std::move(write); }

 private:
  BufferId send_back(BufferId rows);
  BufferId add_up(BufferId rows);
  // Rows out of tokens as they come here. Writes their places and weights.
  BufferId make_rows(BufferId tokens, const Routing& routing);
  BufferId gather_rows(BufferId rows);
  // These go the ways above: to the experts, and from them.
  BufferId bring_rows(BufferId rows, bool backward);
  BufferId return_rows(BufferId rows, bool backward);
  BufferId spread(BufferId tokens, bool backward);
  BufferId collect(BufferId sums, bool backward);
  void exchange_tokens(const char* name, BufferId from, BufferId to, CollectivePurpose purpose);
  void exchange_rows(const char* name, BufferId from, BufferId to, CollectivePurpose purpose);

  void gather_routing_map(const Routing& routing);
  void read_counts(const Routing& routing);
  void bring_weights(BufferId weights);
  void return_weights(BufferId gradient);
  void exchange_weights(BufferId weights, bool backward);
  BufferId permute(const char* name, TokenMove move, bool backward, std::int64_t tokens,
                   std::int64_t rows, BlockBuilder::Buffers reads);
  BufferId sort(BufferId rows, bool backward);

  // Rows go between ranks, not tokens.
  bool by_rows() const {
    return shape_.group() == 1 || shape_.dispatcher == MoeDispatcher::kAllToAll;
  }
  bool gathers() const { return shape_.dispatcher == MoeDispatcher::kAllGather; }
  // Tokens, and rows made of them, on this side of the exchange of rows or on that side of the
  // exchange of tokens.
  std::int64_t tokens() const;
  std::int64_t rows() const { return by_rows() ? shape_.sent : shape_.rows; }
  std::int64_t width() const { return builder_.shape().hidden; }
  std::int64_t store_sms() const;

  const ExpertShape& shape_;
  BlockBuilder& builder_;
  BufferId row_map_, weights_;
  BufferId arrived_;                // rows or tokens from other ranks, of the latest forward
  std::vector<BufferId> returned_;  // likewise, on the way back; the last one is read next
  std::function<void()> beside_;
};

}  // namespace stepcast
