// SPDX-License-Identifier: Apache-2.0
// The operations of a layer of experts. The program has their largest sizes; how many rows there
// are is known when the router has chosen, and goes from buffer to buffer beside the rows.
#include <algorithm>

#include "core/assert.h"
#include "execute/call_kernel.h"
#include "execute/live_arrays.h"
#include "execute/run_by_kind.h"
#include "kernels/cpu/experts.h"
#include "layout/scenario.h"

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
    const Tensor bias = router_bias();
    kernels_.route({.shape = router(),
                    .logits = call_.read(0),
                    .choice = choice == nullptr ? Array{} : choice->array(),
                    .bias = bias == nullptr ? Array{} : bias->array(),
                    .probabilities = call_.write(0),
                    .chosen = call_.write(1)});
  }

  // The mean of a rank is its own: excesses of all ranks add up to that of all tokens.
  void run(const RouterLoad&) {
    const std::vector<std::int64_t> counts = own_counts();
    const double mean =
        static_cast<double>(shape_.tokens * shape_.top_k) / static_cast<double>(shape_.experts);
    std::vector<float> excess;
    for (const std::int64_t count : counts) {
      excess.push_back(static_cast<float>(static_cast<double>(count) - mean));
    }
    const GradientPlace place = call_.gradient(0);
    const Tensor exact = temporary(DataType::kFp32), more = temporary(place.data.type);
    call_.memory.device.upload(exact->array().data, excess.data(), excess.size() * sizeof(float));
    call_.kernels().copy(exact->array(), place.fresh ? place.data : more->array(), shape_.experts);
    if (!place.fresh) call_.kernels().accumulate(more->array(), place.data, shape_.experts);
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
    if (grouped.role == GemmRole::kWeightGradient) return;
    hold(0, {held(0).rows, true});
    if (!grouped.bias) return;
    const bool of_output = call_.operation.reads.size() > 1;
    add_bias(call_.write(0), call_.weight(1), of_output ? call_.read(1) : Array{}, grouped.outputs);
  }

  // The bias of the experts' output.
  void run(const ExpertBias& bias) {
    if (!bias.backward) return add_bias(call_.write(0), call_.weight(0), call_.read(1), width());
    hold(0, held(0));
    if (!adds_whole()) return call_.kernels().fill(call_.write(0), 0, held(0).rows->rows());
    for_experts([&](std::int64_t expert, std::int64_t begin, std::int64_t rows) {
      kernels_.bias_products({.data = call_.read(0).from(begin * width()),
                              .bias = call_.weight(0).from(expert * width()),
                              .out = call_.write(0).from(begin),
                              .rows = rows,
                              .width = width()});
    });
  }

  // The bias of each expert has the sum of its own rows. False elsewhere.
  bool run(const BiasGradient& gradient) {
    if (!has_rows(0)) return false;
    const std::int64_t columns = gradient.size.width;
    Array data = call_.read(0);
    Tensor weighed;
    if (call_.operation.reads.size() > 1) {
      const std::int64_t rows = held(0).rows->rows();
      weighed = call_.memory.make_temporary(rows * columns, data.type, Stream::kCompute);
      kernels_.weigh_rows({.data = data,
                           .weights = call_.read(1),
                           .out = weighed->array(),
                           .rows = rows,
                           .width = columns});
      data = weighed->array();
    }
    const GradientPlace place = call_.gradient(0);
    // If it is then summed over the ranks that share experts, one of them has all rows.
    const Parameter& whole = call_.block.weights[call_.operation.parameters[0].index()];
    const bool counts =
        whole.cut != Cut::kNone || whole.replicas != AxisGroup::kData || adds_whole();
    for_experts([&](std::int64_t expert, std::int64_t begin, std::int64_t rows) {
      call_.kernels().bias_gradient({.data = data.from(begin * columns),
                                     .gradient = place.data.from(expert * columns),
                                     .rows = counts ? rows : 0,
                                     .columns = columns,
                                     .accumulate = !place.fresh});
    });
    return true;
  }

  void run(const ExpertActivation& activation) {
    const auto kind =
        activation.mlp == Mlp::kSwiglu ? ActivationKind::kSwiglu : ActivationKind::kGelu;
    const HeldRows rows = held(0);
    const std::int64_t count = rows.rows->rows(), width = activation.size.width;
    if (activation.backward) {
      // The bias has left its part of the weights' gradients there.
      const bool adds = call_.operation.reads.size() > 3;
      const Tensor own =
          adds ? call_.memory.make_temporary(count, DataType::kFp32, Stream::kCompute) : nullptr;
      kernels_.expert_activation_backward({.kind = kind,
                                           .up = call_.read(0),
                                           .weights = call_.read(1),
                                           .gradient = call_.read(2),
                                           .up_gradient = call_.write(0),
                                           .weight_gradient = adds ? own->array() : call_.write(1),
                                           .rows = count,
                                           .width = width});
      if (adds) call_.kernels().accumulate(own->array(), call_.write(1), count);
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

  // Calls visit(expert, its first row, how many) for the experts of this rank.
  template <class Visit>
  void for_experts(const Visit& visit) const {
    const std::vector<std::int64_t>& begins = held(0).rows->begins();
    for (std::size_t expert = 0; expert + 1 < begins.size(); ++expert) {
      visit(static_cast<std::int64_t>(expert), begins[expert], begins[expert + 1] - begins[expert]);
    }
  }

  // The sum over the ranks that share experts has the bias of their output once.
  bool adds_whole() const { return call_.groups.coordinate(Axis::kEtp) == 0; }

  // Adds each expert's bias to its rows, times their weights where there are some.
  void add_bias(Array data, Array bias, Array weights, std::int64_t columns) const {
    if (weights && !adds_whole()) return;
    for_experts([&](std::int64_t expert, std::int64_t begin, std::int64_t rows) {
      kernels_.add_weighed_bias({.data = data.from(begin * columns),
                                 .bias = bias.from(expert * columns),
                                 .weights = weights ? weights.from(begin) : Array{},
                                 .rows = rows,
                                 .width = columns});
    });
  }

  Tensor temporary(DataType type) const {  // a number for each expert
    return call_.memory.make_temporary(shape_.experts, type, Stream::kCompute);
  }

  // In fp32, whatever the parameters are kept in; null where the model has none.
  Tensor router_bias() const {
    if (call_.operation.parameters.empty()) return nullptr;
    const Tensor out = temporary(DataType::kFp32);
    call_.kernels().copy(call_.weight(0), out->array(), shape_.experts);
    return out;
  }

  bool has_rows(std::size_t read) const {
    const std::size_t at = call_.operation.reads[read].index();
    return at < call_.instance.rows.size() && call_.instance.rows[at].rows != nullptr;
  }
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

bool run_on_experts(const OperationCall& call) {
  return call.scenario.model.moe.has_value() && run_by_kind<ExpertCall>(call);
}

}  // namespace stepcast
