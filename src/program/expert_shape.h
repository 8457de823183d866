// SPDX-License-Identifier: Apache-2.0
// Sizes of a layer of experts on one rank: who holds which experts, and how many rows of tokens it
// sends, receives and computes (docs/moe.md, "Rows").
#pragma once

#include <cstdint>

#include "program/block_builder.h"

namespace stepcast {

struct Scenario;

struct ExpertShape {
  ExpertShape(const Scenario& scenario, const Shape& shape);

  std::int64_t experts;  // of the model
  std::int64_t local;    // of this rank
  std::int64_t top_k;
  std::int64_t ranks;   // that experts are dealt among
  std::int64_t tensor;  // ranks that share each of them
  std::int64_t tokens;  // of this rank, before they are routed
  // Rows, one for each expert of a token: those that the rank sends; what the fullest rank has of
  // all it receives; and what its products take once the ranks that share its experts have gathered
  // theirs. Every step waits for the fullest rank, so all are priced as that one.
  std::int64_t sent;
  std::int64_t received;
  std::int64_t rows;
  // Rows that buffers have room for: while they are worked on, and while they wait for backward.
  std::int64_t held;
  std::int64_t kept;
  bool stashed;      // what waits is copied into pages
  std::int64_t ffn;  // on this rank
  std::int64_t ups;  // outputs of the first product: twice as many where it is gated
  bool padded;       // every expert takes as many rows of every rank
  bool sized;        // the host knows how large buffers are before tokens are routed
  MoeDispatcher dispatcher;
  std::int64_t exchange_sms;  // of DeepEP's or HybridEP's kernels; 0: Megatron's default
  AxisGroup replicas;         // the ranks that hold the same experts

  // The ranks that tokens are dispatched among.
  std::int64_t group() const { return ranks * tensor; }
  // Experts, and ranks of each, that a token goes to.
  std::int64_t copies() const { return top_k * tensor; }
  // Rows that each rank sends to the fullest one where nothing but `imbalance` favours it.
  std::int64_t favoured_rows() const;
  // Distinct tokens that the fullest rank receives where each is sent to it once.
  std::int64_t distinct_tokens() const;
};

}  // namespace stepcast
