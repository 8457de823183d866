// SPDX-License-Identifier: Apache-2.0
#include "calibrate/measure/scratch_arrays.h"

#include <algorithm>
#include <type_traits>

#include "calibrate/measure/scratch_experts.h"
#include "cost/attention_cost.h"
#include "cost/gemm_cost.h"
#include "execute/call_kernel.h"

namespace stepcast {
namespace {

constexpr std::int64_t kMostCopies = 1024;
constexpr std::int64_t kAlignment = 256;  // every copy begins where an allocation would

// All arrays of one call together.
double bytes_of(const Operation::Work& work) {
  if (const auto gemm = product_of(work)) return traffic_of(*gemm).value();
  if (const auto* attention = std::get_if<Attention>(&work)) return traffic_of(*attention).value();
  if (const auto* grouped = std::get_if<GroupedGemm>(&work)) {
    return traffic_of(mean_gemm_of(*grouped)).value();
  }
  const auto kernel = memory_bound(work);
  return kernel ? kernel->bytes : 0;
}

bool is_callable(const Gemm& gemm) { return gemm.batch == 1 && size_of(gemm.input) > 1; }
bool is_callable(const GroupedGemm& grouped) { return size_of(grouped.input) > 1 && !grouped.bias; }
bool is_callable(const Attention& attention) {
  return attention.query_length == attention.key_length;
}
bool is_callable(const Rotary& rotary) { return rotary.head_dim > 0 && rotary.head_dim % 2 == 0; }
bool is_callable(const Cast& cast) { return cast.subject < CastSubject::kFourBitWeight; }
bool is_callable(const LatentRotary& rotary) { return rotary.rotary % 2 == 0; }
template <class Work>
bool is_callable(const Work&) {
  return true;
}

// The states of a rank are one piece here.
void call_on_piece(const ZeroGradients& work, ScratchArrays& arrays, Kernels& kernels) {
  const std::int64_t count = work.size.elements;
  kernels.fill(arrays.write(0, {count, work.type}), 0, count);
}

void call_on_piece(const SquaredNorm& work, ScratchArrays& arrays, Kernels& kernels) {
  const std::int64_t count = work.size.elements;
  const Array total = arrays.write(0, {2, DataType::kFp32, 0.0F});  // of one double
  kernels.add_squares(arrays.read(0, {count, work.type}), count, total.as<double>());
}

void scale(DataType type, std::int64_t count, ScratchArrays& arrays, Kernels& kernels) {
  kernels.scale(arrays.write(0, {count, type}), 1, count);
}
void call_on_piece(const UnscaleGradients& work, ScratchArrays& arrays, Kernels& kernels) {
  scale(work.type, work.size.elements, arrays, kernels);
}
void call_on_piece(const ClipGradients& work, ScratchArrays& arrays, Kernels& kernels) {
  scale(work.type, work.size.elements, arrays, kernels);
}

void call_on_piece(const OptimizerUpdate& work, ScratchArrays& arrays, Kernels& kernels) {
  constexpr std::int64_t kStep = 100;
  const std::int64_t count = work.size.elements;
  const ArraySpec state{count, DataType::kFp32};
  const ArraySpec mean_of_squares{count, DataType::kFp32, 1e-2F};  // nothing below 0
  const ArraySpec rounded{count, DataType::kBf16};
  const ArraySpec norm{1, DataType::kFp32, 4.0F};
  kernels.adamw({.step = kStep,
                 .squared_norm = work.clips ? arrays.read(1, norm).as<const float>() : nullptr,
                 .gradient = arrays.read(0, {count, work.gradient}),
                 .weight = arrays.write(0, state),
                 .moment1 = arrays.write(1, state),
                 .moment2 = arrays.write(2, mean_of_squares),
                 .rounded = work.rounds ? arrays.write(3, rounded) : Array{},
                 .count = count});
}

// The executor drops nothing; frameworks do. No kernel's time depends on the rate.
DropoutShape dropped(const KernelSize& size) {
  constexpr double kRate = 0.1;
  const std::int64_t width = std::max<std::int64_t>(size.width, 1);
  return {size.elements / width, width, kRate, 1};
}
void drop(const Dropout& work, ScratchArrays& arrays, Kernels& kernels) {
  const ArraySpec whole{work.size.elements, work.type}, mask{work.size.elements, DataType::kInt8};
  if (work.backward) {
    kernels.variants().dropout_backward({.shape = dropped(work.size),
                                         .gradient = arrays.read(0, whole),
                                         .mask = arrays.read(1, mask),
                                         .out = arrays.write(0, whole)});
    return;
  }
  kernels.variants().dropout({.shape = dropped(work.size),
                              .x = arrays.read(0, whole),
                              .out = arrays.write(0, whole),
                              .mask = arrays.write(1, mask)});
}
void drop(const ResidualAdd& work, ScratchArrays& arrays, Kernels& kernels) {
  const ArraySpec whole{work.size.elements, work.type}, mask{work.size.elements, DataType::kInt8};
  const Array bias = work.bias ? arrays.weight(0, {work.size.width, work.type}) : Array{};
  kernels.variants().dropout({.shape = dropped(work.size),
                              .x = arrays.read(0, whole),
                              .bias = bias,
                              .residual = arrays.read(1, whole),
                              .out = arrays.write(0, whole),
                              .mask = arrays.write(1, mask)});
}

template <class Work>
concept HasPieces = requires(const Work& work, ScratchArrays& arrays, Kernels& kernels) {
  call_on_piece(work, arrays, kernels);
};
template <class Work>
concept OfExperts = requires(const Work& work, ScratchArrays& arrays, Kernels& kernels) {
  call_of_experts(work, arrays, kernels);
};

}  // namespace

ScratchArrays::ScratchArrays(const Operation::Work& work, ScratchMemory& memory, Kernels& kernels,
                             std::int64_t cache_bytes)
    : memory_(memory),
      kernels_(kernels),
      copies_(std::clamp<std::int64_t>(
          2 * cache_bytes / std::max<std::int64_t>(static_cast<std::int64_t>(bytes_of(work)), 1) +
              1,
          1, kMostCopies)) {}

Array ScratchArrays::next(Use use, std::size_t i, const ArraySpec& spec) {
  auto found = rotations_.find({use, i});
  if (found == rotations_.end()) found = rotations_.emplace(std::pair{use, i}, make(spec)).first;
  Rotation& own = found->second;
  own.turn = (own.turn + 1) % own.copies;
  return own.first.from(own.turn * own.step);
}

ScratchArrays::Rotation ScratchArrays::make(const ArraySpec& spec) {
  const std::int64_t unit = kAlignment / size_of(spec.type);
  Rotation out;
  out.step = (std::max<std::int64_t>(spec.elements, 1) + unit - 1) / unit * unit;
  out.copies = spec.is_table ? 1 : copies_;
  const std::int64_t all = out.step * out.copies;
  out.first = {memory_.allocate(all * size_of(spec.type)), spec.type};
  const bool is_integer = spec.type == DataType::kInt64 || spec.type == DataType::kInt8;
  if (spec.value) {
    kernels_.fill(out.first, *spec.value, all);
  } else if (!is_integer) {  // those are results only: tokens and choices are made up by themselves
    kernels_.noise(out.first, all);
  }
  return out;
}

// Spread by a multiplicative hash (Knuth, volume 3, section 6.4).
Array ScratchArrays::indices(std::int64_t count, std::int64_t limit) {
  if (indices_) return *indices_;
  std::vector<std::int64_t> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<std::int64_t>((i * 2654435761U) % static_cast<std::uint64_t>(limit));
  }
  indices_ = memory_.integers(values);
  return *indices_;
}

Array ScratchArrays::chosen(const RouterShape& shape) {
  if (chosen_) return *chosen_;
  std::vector<std::int8_t> map(static_cast<std::size_t>(shape.tokens * shape.experts));
  for (std::int64_t row = 0; row < shape.tokens * shape.top_k; ++row) {
    const std::int64_t token = row / shape.top_k, expert = row % shape.experts;
    map[static_cast<std::size_t>(token * shape.experts + expert)] = 1;
  }
  chosen_ = memory_.bytes(map);
  return *chosen_;
}

bool call_on_scratch(const Operation::Work& work, ScratchArrays& arrays, Kernels& kernels) {
  if (!runs_kernel(work)) return false;
  if (!std::visit([](const auto& own) { return is_callable(own); }, work)) return false;
  const bool has_run = std::visit(
      [&](const auto& own) {
        using Work = std::decay_t<decltype(own)>;
        if constexpr (HasPieces<Work>) {
          call_on_piece(own, arrays, kernels);
          return true;
        } else if constexpr (OfExperts<Work>) {
          call_of_experts(own, arrays, kernels);
          return true;
        } else if constexpr (std::is_same_v<Work, Dropout>) {
          drop(own, arrays, kernels);
          return true;
        } else if constexpr (std::is_same_v<Work, ResidualAdd>) {
          if (own.dropout) drop(own, arrays, kernels);
          return own.dropout;
        } else {
          return false;
        }
      },
      work);
  return has_run || call_kernel(work, arrays, kernels);
}

}  // namespace stepcast
