// SPDX-License-Identifier: Apache-2.0
// The operations of a layer of experts. The program has their largest sizes; how many rows there
// are is known when the router has chosen, and goes from buffer to buffer beside the rows.
#include <algorithm>

#include "core/assert.h"
#include "execute/call_kernel.h"
#include "execute/live_arrays.h"
#include "execute/run_by_kind.h"
#include "kernels/cpu/experts.h"

namespace stepcast {
namespace {

class ExpertCall {
 public:
  explicit ExpertCall(const OperationCall& call)
      : call_(call), shape_(call.scenario, call.shape), kernels_(call.kernels().variants()) {}

  void run(const RouterScores& scores) {
    if (scores.backward) {
      kernels_.route_backward({.shape = router(),
                               .probabilities = call_.read(1),
                               .chosen = call_.read(2),
                               .weight_gradient = call_.read(3),
                               .logits_gradient = call_.write(0)});
      return;
    }
    const Tensor& choice = call_.micro_batch->experts;
    kernels_.route({.shape = router(),
                    .logits = call_.read(0),
                    .choice = choice == nullptr ? Array{} : choice->array(),
                    .probabilities = call_.write(0),
                    .chosen = call_.write(1)});
  }

  // The host reads what the router has chosen on this rank, or the counts of all ranks.
  void run(const HostRead& read) {
    if (shape_.group() == 1) {
      call_.instance.counts = own_counts();
      return;
    }
    std::vector<std::int64_t> counts(static_cast<std::size_t>(read.figures));
    call_.memory.device.download(counts.data(), call_.read(0).data,
                                 counts.size() * sizeof(std::int64_t));
    call_.instance.counts = by_place(counts);
  }

  void run(const TokenPermutation& moved) {
    switch (moved.move) {
      case TokenMove::kPermute:
        return moved.backward ? add_up() : permute();
      case TokenMove::kUnpermute:
        return moved.backward ? spread() : add_up();
      case TokenMove::kSort:
        return sort();
    }
  }

  void run(const GroupedGemm& grouped) {
    const std::vector<std::int64_t>& begins = held(0).rows->begins();
    LiveArrays arrays(call_);
    call(grouped, begins, arrays, call_.kernels());
    if (grouped.role != GemmRole::kWeightGradient) hold(0, {held(0).rows, true});
  }

  void run(const ExpertActivation& activation) {
    const auto kind =
        activation.mlp == Mlp::kSwiglu ? ActivationKind::kSwiglu : ActivationKind::kGelu;
    const HeldRows rows = held(0);
    const std::int64_t count = rows.rows->rows(), width = activation.size.width;
    if (activation.backward) {
      kernels_.expert_activation_backward({.kind = kind,
                                           .up = call_.read(0),
                                           .weights = call_.read(1),
                                           .gradient = call_.read(2),
                                           .up_gradient = call_.write(0),
                                           .weight_gradient = call_.write(1),
                                           .rows = count,
                                           .width = width});
      hold(1, rows);
    } else {
      kernels_.expert_activation({.kind = kind,
                                  .up = call_.read(0),
                                  .weights = call_.read(1),
                                  .out = call_.write(0),
                                  .rows = count,
                                  .width = width});
    }
    hold(0, rows);
  }

 private:
  std::int64_t width() const { return call_.shape.hidden; }
  std::int64_t capacity() const { return shape_.padded ? shape_.sent / shape_.experts : 0; }
  RouterShape router() const { return {shape_.tokens, shape_.experts, shape_.top_k, capacity()}; }

  const HeldRows& held(std::size_t read) const {
    return call_.instance.rows[call_.operation.reads[read].index()];
  }
  void hold(std::size_t write, HeldRows rows) {
    call_.instance.rows.resize(call_.block.buffers.size());
    call_.instance.rows[call_.operation.writes[write].index()] = std::move(rows);
  }

  // Counts the rows that this rank's tokens make; the operation reads first what was chosen.
  std::vector<std::int64_t> own_counts() const {
    return count_chosen(call_, shape_, call_.read(0));
  }

  // Puts counts into the order of ExpertRows, from that of the group's members.
  std::vector<std::int64_t> by_place(const std::vector<std::int64_t>& counts) const {
    const auto ranks = call_.groups.coordinates(AxisGroup::kTensorExpert, Axis::kEp);
    const auto tensor = call_.groups.coordinates(AxisGroup::kTensorExpert, Axis::kEtp);
    std::vector<std::int64_t> out(counts.size());
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      const auto from = counts.begin() + static_cast<std::int64_t>(i) * shape_.experts;
      const std::int64_t to = (ranks[i] * shape_.tensor + tensor[i]) * shape_.experts;
      std::copy_n(from, shape_.experts, out.begin() + to);
    }
    return out;
  }

  // If the sizes are known beforehand, every rank has as many rows for each expert.
  HeldRows placed() const {
    std::vector<std::int64_t> counts = call_.instance.counts;
    if (shape_.padded) {
      counts.assign(static_cast<std::size_t>(shape_.group() * shape_.experts), capacity());
    }
    const Groups& groups = call_.groups;
    return {std::make_shared<const ExpertRows>(
                shape_, ExpertPlace{groups.coordinate(Axis::kEp), groups.coordinate(Axis::kEtp)},
                std::move(counts)),
            shape_.group() == 1};
  }

  void permute() {
    kernels_.choose_rows({.shape = router(),
                          .probabilities = call_.read(1),
                          .chosen = call_.read(2),
                          .token_of_row = call_.write(1),
                          .weights = call_.write(2)});
    const HeldRows rows = placed();
    kernels_.take_rows({.from = call_.read(0),
                        .index = call_.write(1),
                        .to = call_.write(0),
                        .rows = rows.rows->sent(),
                        .width = width(),
                        .sources = shape_.tokens});
    for (const std::size_t write : {0, 1, 2}) hold(write, rows);
  }
  // The sum of each token's rows.
  void add_up() {
    kernels_.add_rows({.from = call_.read(0),
                       .index = call_.read(1),
                       .to = call_.write(0),
                       .rows = held(1).rows->sent(),
                       .targets = shape_.tokens,
                       .width = width()});
  }
  // A token's gradient is that of each of its rows.
  void spread() {
    kernels_.take_rows({.from = call_.read(0),
                        .index = call_.read(1),
                        .to = call_.write(0),
                        .rows = held(1).rows->sent(),
                        .width = width(),
                        .sources = shape_.tokens});
    hold(0, {held(1).rows, shape_.group() == 1});
  }
  void sort() {
    const HeldRows rows = held(0);
    const Tensor order = order_on_device(call_, *rows.rows);
    if (rows.sorted) {
      kernels_.put_rows({.from = call_.read(0),
                         .index = order->array(),
                         .to = call_.write(0),
                         .rows = rows.rows->rows(),
                         .width = width()});
    } else {
      kernels_.take_rows({.from = call_.read(0),
                          .index = order->array(),
                          .to = call_.write(0),
                          .rows = rows.rows->rows(),
                          .width = width()});
    }
    hold(0, {rows.rows, !rows.sorted});
  }

  const OperationCall& call_;
  ExpertShape shape_;
  VariantKernels& kernels_;
};

}  // namespace

std::vector<std::int64_t> count_chosen(const OperationCall& call, const ExpertShape& shape,
                                       Array chosen) {
  std::vector<std::int8_t> map(static_cast<std::size_t>(shape.tokens * shape.experts));
  call.memory.device.download(map.data(), chosen.data, map.size());
  std::vector<std::int64_t> out(static_cast<std::size_t>(shape.experts));
  cpu::count_rows({shape.tokens, shape.experts, shape.top_k}, map.data(), out.data());
  return out;
}

Tensor order_on_device(const OperationCall& call, const ExpertRows& rows) {
  const std::vector<std::int64_t>& order = rows.order();
  const Tensor out =
      call.memory.make_uncounted(static_cast<std::int64_t>(order.size()), DataType::kInt64);
  call.memory.device.upload(out->array().data, order.data(), order.size() * sizeof(std::int64_t));
  return out;
}

bool run_on_experts(const OperationCall& call) { return run_by_kind<ExpertCall>(call); }

}  // namespace stepcast
