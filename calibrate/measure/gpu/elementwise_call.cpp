// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <string_view>
#include <vector>

#include "calibrate/measure/gpu/gpu_call.h"
#include "calibrate/measure/gpu/rotation.h"
#include "kernels/cuda/activation.h"
#include "kernels/cuda/bias.h"
#include "kernels/cuda/cross_entropy.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/embedding.h"
#include "kernels/cuda/norm.h"
#include "kernels/cuda/rotary.h"

namespace stepcast {
namespace {

using cuda::Stream;

// Rows of kernels that work element by element and do not state theirs.
constexpr std::int64_t kRow = 4096;

// T: what activations are kept in; fp16 moves as many bytes as bf16.
template <typename T>
class Builder {
 public:
  Builder(const Operation& operation, const Elementwise& kernel, const GpuContext& context)
      : name_(operation.name),
        kernel_(kernel),
        model_(context.scenario->model),
        sequence_(context.scenario->training.sequence_length),
        wide_gradients_(size_of(context.scenario->training.grad_precision) == 4),
        turns_(static_cast<std::int64_t>(kernel.bytes), context.cache_bytes),
        elements_(kernel.elements),
        width_(kernel.width > 0              ? kernel.width
               : kernel.elements % kRow == 0 ? kRow
                                             : kernel.elements),
        rows_(kernel.elements / width_) {}

  GpuCall build() const {
    switch (kernel_.kind) {
      case ElementwiseKind::kEmbedding:
        return name_ == "embedding" || name_ == "table_gradient" ? tokens() : positions();
      case ElementwiseKind::kNorm:
        return norm();
      case ElementwiseKind::kActivation:
        return activation();
      case ElementwiseKind::kDropoutAdd:
        return add();
      case ElementwiseKind::kRotary:
        return rotary();
      case ElementwiseKind::kCrossEntropy:
        return cross_entropy();
      case ElementwiseKind::kReduction:
        if (name_ == "bias_gradient") return bias_gradient();
        if (name_ == "gradient_norm")
          return of_gradients(&Builder::sum_of_squares<float>, &Builder::sum_of_squares<T>);
        return of_gradients(&Builder::scale<float>, &Builder::scale<T>);  // unscale_gradients
      case ElementwiseKind::kCast:
        return cast();
      case ElementwiseKind::kAccumulate:
        return of_gradients(&Builder::accumulate<float>, &Builder::accumulate<T>);
      case ElementwiseKind::kFill:
        return of_gradients(&Builder::fill<float>, &Builder::fill<T>);
      case ElementwiseKind::kOptimizer:
        return name_ == "clip_gradients" ? of_gradients(&Builder::scale<float>, &Builder::scale<T>)
                                         : of_gradients(&Builder::adamw<float>, &Builder::adamw<T>);
      case ElementwiseKind::kSoftmax:
      case ElementwiseKind::kTranspose:
        return {};
    }
    return {};
  }

 private:
  using Build = GpuCall (Builder::*)() const;
  GpuCall of_gradients(Build wide, Build narrow) const {
    return (this->*(wide_gradients_ ? wide : narrow))();
  }

  template <typename U = T>
  std::shared_ptr<Rotation<U>> array(std::int64_t elements, std::uint32_t seed) const {
    return std::make_shared<Rotation<U>>(turns_, elements, seed);
  }
  static std::shared_ptr<cuda::DeviceArray<float>> floats(std::int64_t count) {
    return std::make_shared<cuda::DeviceArray<float>>(
        std::vector<float>(static_cast<std::size_t>(count), 1.0F));
  }
  // Numbers below `limit`, spread by a multiplicative hash (Knuth, volume 3, section 6.4).
  static std::shared_ptr<cuda::DeviceArray<std::int64_t>> indices(std::int64_t count,
                                                                  std::int64_t limit) {
    std::vector<std::int64_t> out(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = static_cast<std::int64_t>((i * 2654435761U) % static_cast<std::uint64_t>(limit));
    }
    return std::make_shared<cuda::DeviceArray<std::int64_t>>(out);
  }
  double moved(std::size_t bytes_per_element) const {
    return static_cast<double>(bytes_per_element) * static_cast<double>(elements_);
  }

  GpuCall norm() const {
    const bool layer = model_.norm == Norm::kLayerNorm;
    const auto kind = layer ? cuda::NormKind::kLayer : cuda::NormKind::kRms;
    auto x = array(elements_, 1), y = array(elements_, 2), weight = array(width_, 3);
    auto bias = layer ? array(width_, 4) : nullptr;
    const auto rows = rows_, width = width_;
    if (!kernel_.backward) {
      return {[=](Stream stream) {
                cuda::norm<T>(kind, x->next(), weight->next(), bias ? bias->next() : nullptr,
                              y->next(), rows, width, width, width, stream);
              },
              moved(2 * sizeof(T))};
    }
    auto dx = array(elements_, 5);
    auto gradient = floats(2 * width);
    auto workspace = floats(2 * cuda::column_sum_workspace(width));
    return {[=](Stream stream) {
              float* bias_gradient = layer ? gradient->data() + width : nullptr;
              cuda::norm_backward<T, float>(kind, x->next(), weight->next(), y->next(), dx->next(),
                                            gradient->data(), bias_gradient, true, rows, width,
                                            width, width, workspace->data(), stream);
            },
            moved(3 * sizeof(T))};
  }

  GpuCall activation() const {
    const bool gated = model_.mlp == Mlp::kSwiglu;
    const std::size_t ups = gated ? 2 : 1;
    const auto kind = gated ? cuda::ActivationKind::kSwiglu : cuda::ActivationKind::kGelu;
    const auto rows = rows_, width = width_;
    const std::int64_t up_elements = elements_ * static_cast<std::int64_t>(ups);
    auto up = array(up_elements, 1), out = array(elements_, 2);
    if (!kernel_.backward) {
      return {[=](Stream stream) {
                cuda::activation<T>(kind, up->next(), nullptr, out->next(), rows, width, stream);
              },
              moved((ups + 1) * sizeof(T))};
    }
    auto up_gradient = array(up_elements, 3);
    return {[=](Stream stream) {
              cuda::activation_backward<T>(kind, up->next(), nullptr, out->next(),
                                           up_gradient->next(), rows, width, stream);
            },
            moved((2 * ups + 1) * sizeof(T))};
  }

  // Two tensors into one. Dropout, which would keep a mask too, has no kernel.
  GpuCall add() const {
    if (kernel_.bytes != moved(3 * sizeof(T))) return {};
    auto a = array(elements_, 1), b = array(elements_, 2), out = array(elements_, 3);
    const auto elements = elements_;
    return {
        [=](Stream stream) { cuda::add<T>(a->next(), b->next(), out->next(), elements, stream); },
        moved(3 * sizeof(T))};
  }

  // Positions of whole sequences where the elements are such.
  GpuCall rotary() const {
    const std::int64_t head = model_.head_dim;
    if (head <= 0 || head % 2 != 0 || elements_ % head != 0) return {};
    const std::int64_t vectors = elements_ / head;
    const std::int64_t sequence = vectors % sequence_ == 0 ? sequence_ : vectors;
    const std::int64_t of_position = vectors / sequence;
    auto in = array(elements_, 1), out = array(elements_, 2);
    const bool backward = kernel_.backward;
    return {[=](Stream stream) {
              const std::int64_t stride = of_position * head;
              cuda::rotary<T>(1, sequence, of_position, head, {in->next(), stride},
                              {out->next(), stride}, backward, stream);
            },
            moved(2 * sizeof(T))};
  }

  // Of logits in fp32, which programs cast them to.
  GpuCall cross_entropy() const {
    const cuda::LogitSlice slice{0, width_, width_};
    auto logits = array<float>(elements_, 1);
    auto targets = indices(rows_, width_);
    auto largest = floats(rows_), sum = floats(rows_), target = floats(rows_);
    const auto rows = rows_;
    if (!kernel_.backward) {
      return {[=](Stream stream) {
                cuda::cross_entropy<float>(slice, logits->next(), targets->data(), rows,
                                           largest->data(), sum->data(), target->data(), stream);
              },
              moved(sizeof(float))};
    }
    return {[=](Stream stream) {
              cuda::cross_entropy_backward<float>(slice, logits->next(), targets->data(), rows,
                                                  largest->data(), sum->data(), 1.0F, stream);
            },
            moved(2 * sizeof(float))};
  }

  template <typename G>
  GpuCall sum_of_squares() const {
    auto data = array<G>(elements_, 1);
    auto sums = std::make_shared<cuda::DeviceArray<double>>(cuda::kSumBlocks + 1);
    const auto elements = elements_;
    return {[=](Stream stream) {
              cuda::sum_of_squares<G>(data->next(), elements, sums->data(),
                                      sums->data() + cuda::kSumBlocks, false, stream);
            },
            moved(sizeof(G))};
  }

  template <typename G>
  GpuCall scale() const {
    auto data = array<G>(elements_, 1);
    const auto elements = elements_;
    return {[=](Stream stream) { cuda::scale<G>(data->next(), 1.0F, elements, stream); },
            moved(2 * sizeof(G))};
  }

  GpuCall bias_gradient() const {
    auto data = array(elements_, 1);
    auto gradient = floats(width_), workspace = floats(cuda::column_sum_workspace(width_));
    const auto rows = rows_, width = width_;
    return {[=](Stream stream) {
              cuda::bias_gradient<T, float>(data->next(), gradient->data(), rows, width, true,
                                            workspace->data(), stream);
            },
            moved(sizeof(T))};
  }

  // Between 16 and 32 bits; copies of fp32 have no kernel of their own.
  GpuCall cast() const {
    if constexpr (sizeof(T) == sizeof(float)) {
      return {};
    } else {
      auto narrow = array(elements_, 1);
      auto wide = array<float>(elements_, 2);
      const auto elements = elements_;
      const double bytes = moved(sizeof(T) + sizeof(float));
      if (kernel_.backward) {
        return {[=](Stream stream) {
                  cuda::cast<float, T>(wide->next(), narrow->next(), elements, stream);
                },
                bytes};
      }
      return {[=](Stream stream) {
                cuda::cast<T, float>(narrow->next(), wide->next(), elements, stream);
              },
              bytes};
    }
  }

  template <typename Sum>
  GpuCall accumulate() const {
    auto more = array(elements_, 1);
    auto sum = array<Sum>(elements_, 2);
    const auto elements = elements_;
    return {[=](Stream stream) {
              cuda::accumulate<T, Sum>(more->next(), sum->next(), elements, stream);
            },
            moved(sizeof(T) + 2 * sizeof(Sum))};
  }

  template <typename G>
  GpuCall fill() const {
    auto data = array<G>(elements_, 1);
    const auto elements = elements_;
    return {[=](Stream stream) { cuda::fill<G>(data->next(), 0.0F, elements, stream); },
            moved(sizeof(G))};
  }

  // The copy in the model's precision is an operation of its own.
  template <typename G>
  GpuCall adamw() const {
    auto gradient = array<G>(elements_, 1);
    auto weight = array<float>(elements_, 2), moment1 = array<float>(elements_, 3);
    auto moment2 = array<float>(elements_, 4);
    moment2->fill(1e-2F);  // a mean of squares: no noise below 0
    const auto elements = elements_;
    return {[=](Stream stream) {
              cuda::adamw<G, T>({}, 100, gradient->next(), weight->next(), moment1->next(),
                                moment2->next(), nullptr, elements, stream);
            },
            moved(sizeof(G) + 6 * sizeof(float))};
  }

  GpuCall tokens() const {
    const std::int64_t vocab = std::max<std::int64_t>(1, model_.vocab);
    const cuda::TableSlice slice{0, vocab, width_};
    auto x = array(elements_, 1);
    auto table = std::make_shared<Rotation<T>>(Turns(1, 0), vocab * width_, 2);
    auto ids = indices(rows_, vocab);
    const auto rows = rows_;
    if (kernel_.backward) {
      return {[=](Stream stream) {
                cuda::embed_tokens_backward<T, T>(slice, ids->data(), rows, x->next(),
                                                  table->next(), stream);
              },
              moved(3 * sizeof(T))};
    }
    return {[=](Stream stream) {
              cuda::embed_tokens<T>(slice, ids->data(), rows, table->next(), x->next(), stream);
            },
            moved(2 * sizeof(T))};
  }

  GpuCall positions() const {
    const std::int64_t sequence = std::min(rows_, sequence_);
    auto x = array(elements_, 1);
    auto table = std::make_shared<Rotation<T>>(Turns(1, 0), sequence * width_, 2);
    const auto rows = rows_, width = width_;
    if (kernel_.backward) {
      return {[=](Stream stream) {
                cuda::add_positions_backward<T, T>(x->next(), table->next(), rows, 0, sequence,
                                                   width, stream);
              },
              moved(sizeof(T))};
    }
    return {[=](Stream stream) {
              cuda::add_positions<T>(x->next(), table->next(), rows, 0, sequence, width, stream);
            },
            moved(3 * sizeof(T))};
  }

  std::string_view name_;
  const Elementwise& kernel_;
  const Model& model_;
  std::int64_t sequence_;
  bool wide_gradients_;
  Turns turns_;
  std::int64_t elements_, width_, rows_;
};

}  // namespace

GpuCall elementwise_call(const Operation& operation, const Elementwise& kernel,
                         const GpuContext& context) {
  if (kernel.elements <= 0 || kernel.bytes <= 0) return {};
  if (context.scenario->training.precision == DataType::kFp32) {
    return Builder<float>(operation, kernel, context).build();
  }
  return Builder<cuda::Bf16>(operation, kernel, context).build();
}

}  // namespace stepcast
