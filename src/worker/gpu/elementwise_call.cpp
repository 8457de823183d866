// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string_view>

#include "kernels/cuda/activation.h"
#include "kernels/cuda/bias.h"
#include "kernels/cuda/cross_entropy.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/embedding.h"
#include "kernels/cuda/norm.h"
#include "kernels/cuda/rotary.h"
#include "worker/gpu/gpu_call.h"
#include "worker/gpu/rotation.h"

namespace stepcast {
namespace {

using cuda::Stream;
using T = cuda::Bf16;  // fp16 moves as many bytes

// Kernels whose rows the operation does not state get rows of this width: they work element by
// element, and rows only say where the next one begins.
constexpr std::int64_t kRow = 4096;

struct Work {
  const Elementwise& kernel;
  const Model& model;
  const GpuContext& context;

  std::int64_t width() const {
    if (kernel.width > 0) return kernel.width;
    return kernel.elements % kRow == 0 ? kRow : kernel.elements;
  }
  std::int64_t rows() const { return kernel.elements / width(); }
  double bytes_per_element() const { return kernel.bytes / static_cast<double>(kernel.elements); }
  Turns turns() const { return {static_cast<std::int64_t>(kernel.bytes), context.cache_bytes}; }
};

template <typename U = T>
std::shared_ptr<Rotation<U>> array(const Work& work, std::int64_t elements, std::uint32_t seed) {
  return std::make_shared<Rotation<U>>(work.turns(), elements, seed);
}

std::shared_ptr<cuda::DeviceArray<float>> floats(std::int64_t count) {
  return std::make_shared<cuda::DeviceArray<float>>(
      std::vector<float>(static_cast<std::size_t>(count), 1.0F));
}

// Numbers below `limit`, spread by a multiplicative hash.
std::shared_ptr<cuda::DeviceArray<std::int64_t>> indices(std::int64_t count, std::int64_t limit) {
  std::vector<std::int64_t> out(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = static_cast<std::int64_t>((i * 2654435761U) % static_cast<std::uint64_t>(limit));
  }
  return std::make_shared<cuda::DeviceArray<std::int64_t>>(out);
}

GpuCall norm(const Work& w) {
  const auto kind =
      w.model.norm == Norm::kLayerNorm ? cuda::NormKind::kLayer : cuda::NormKind::kRms;
  const std::int64_t rows = w.rows(), width = w.width();
  auto x = array(w, rows * width, 1), y = array(w, rows * width, 2);
  auto weight = array(w, width, 3), bias = array(w, width, 4);
  const bool has_bias = kind == cuda::NormKind::kLayer;
  if (!w.kernel.backward) {
    return [=](Stream stream) {
      cuda::norm<T>(kind, x->next(), weight->next(), has_bias ? bias->next() : nullptr, y->next(),
                    rows, width, width, width, stream);
    };
  }
  auto dx = array(w, rows * width, 5);
  auto gradient = floats(2 * width);
  auto workspace = floats(2 * cuda::column_sum_workspace(width));
  return [=](Stream stream) {
    float* bias_gradient = has_bias ? gradient->data() + width : nullptr;
    cuda::norm_backward<T, float>(kind, x->next(), weight->next(), y->next(), dx->next(),
                                  gradient->data(), bias_gradient, true, rows, width, width, width,
                                  workspace->data(), stream);
  };
}

GpuCall activation(const Work& w) {
  const bool gated = w.model.mlp == Mlp::kSwiglu;
  const auto kind = gated ? cuda::ActivationKind::kSwiglu : cuda::ActivationKind::kGelu;
  const std::int64_t rows = w.rows(), width = w.width();
  const std::int64_t up_elements = rows * width * (gated ? 2 : 1);
  auto up = array(w, up_elements, 1), out = array(w, rows * width, 2);
  if (!w.kernel.backward) {
    return [=](Stream stream) {
      cuda::activation<T>(kind, up->next(), nullptr, out->next(), rows, width, stream);
    };
  }
  auto up_gradient = array(w, up_elements, 3);
  return [=](Stream stream) {
    cuda::activation_backward<T>(kind, up->next(), nullptr, out->next(), up_gradient->next(), rows,
                                 width, stream);
  };
}

// Without dropout: nobody keeps a mask.
GpuCall add_residual(const Work& w) {
  if (w.bytes_per_element() != 3 * sizeof(T)) return {};
  const std::int64_t elements = w.kernel.elements;
  auto a = array(w, elements, 1), b = array(w, elements, 2), out = array(w, elements, 3);
  return [=](Stream stream) { cuda::add<T>(a->next(), b->next(), out->next(), elements, stream); };
}

GpuCall rotary(const Work& w) {
  const std::int64_t head = w.model.head_dim;
  if (head <= 0 || head % 2 != 0 || w.kernel.elements % head != 0) return {};
  // One head of many positions: as many bytes and angles as heads of fewer.
  const std::int64_t positions = w.kernel.elements / head;
  const bool backward = w.kernel.backward;
  auto in = array(w, w.kernel.elements, 1), out = array(w, w.kernel.elements, 2);
  return [=](Stream stream) {
    cuda::rotary<T>(1, positions, 1, head, {in->next(), head}, {out->next(), head}, backward,
                    stream);
  };
}

GpuCall cross_entropy(const Work& w) {
  const std::int64_t rows = w.rows(), width = w.width();
  const cuda::LogitSlice slice{0, width, width};
  auto logits = array(w, rows * width, 1);
  auto targets = indices(rows, width);
  auto largest = floats(rows), sum = floats(rows), target = floats(rows);
  if (!w.kernel.backward) {
    return [=](Stream stream) {
      cuda::cross_entropy<T>(slice, logits->next(), targets->data(), rows, largest->data(),
                             sum->data(), target->data(), stream);
    };
  }
  return [=](Stream stream) {
    cuda::cross_entropy_backward<T>(slice, logits->next(), targets->data(), rows, largest->data(),
                                    sum->data(), 1.0F, stream);
  };
}

template <typename G>
GpuCall sum_of_squares(const Work& w) {
  const std::int64_t elements = w.kernel.elements;
  auto data = array<G>(w, elements, 1);
  auto sums = std::make_shared<cuda::DeviceArray<double>>(cuda::kSumBlocks + 1);
  return [=](Stream stream) {
    cuda::sum_of_squares<G>(data->next(), elements, sums->data(), sums->data() + cuda::kSumBlocks,
                            stream);
  };
}

template <typename G>
GpuCall scale(const Work& w) {
  const std::int64_t elements = w.kernel.elements;
  auto data = array<G>(w, elements, 1);
  return [=](Stream stream) { cuda::scale<G>(data->next(), 1.0F, elements, stream); };
}

GpuCall bias_gradient(const Work& w) {
  const std::int64_t rows = w.rows(), width = w.width();
  auto data = array(w, rows * width, 1);
  auto gradient = floats(width), workspace = floats(cuda::column_sum_workspace(width));
  return [=](Stream stream) {
    cuda::bias_gradient<T, float>(data->next(), gradient->data(), rows, width, true,
                                  workspace->data(), stream);
  };
}

GpuCall reduction(const Work& w, std::string_view name) {
  if (name == "bias_gradient") return bias_gradient(w);
  const double bytes = w.bytes_per_element();
  if (name == "gradient_norm") return bytes > 2 ? sum_of_squares<float>(w) : sum_of_squares<T>(w);
  return bytes > 4 ? scale<float>(w) : scale<T>(w);  // unscale_gradients
}

// From 16 bits to 32 or back; which way is all the same to memory.
GpuCall cast(const Work& w) {
  if (w.bytes_per_element() != sizeof(T) + sizeof(float)) return {};
  const std::int64_t elements = w.kernel.elements;
  auto narrow = array(w, elements, 1);
  auto wide = array<float>(w, elements, 2);
  if (w.kernel.backward) {
    return [=](Stream stream) {
      cuda::cast<float, T>(wide->next(), narrow->next(), elements, stream);
    };
  }
  return
      [=](Stream stream) { cuda::cast<T, float>(narrow->next(), wide->next(), elements, stream); };
}

template <typename Sum>
GpuCall accumulate(const Work& w) {
  const std::int64_t elements = w.kernel.elements;
  auto more = array(w, elements, 1);
  auto sum = array<Sum>(w, elements, 2);
  return
      [=](Stream stream) { cuda::accumulate<T, Sum>(more->next(), sum->next(), elements, stream); };
}

template <typename G>
GpuCall fill(const Work& w) {
  const std::int64_t elements = w.kernel.elements;
  auto data = array<G>(w, elements, 1);
  return [=](Stream stream) { cuda::fill<G>(data->next(), 0.0F, elements, stream); };
}

template <typename G>
GpuCall adamw(const Work& w) {
  const std::int64_t elements = w.kernel.elements;
  auto gradient = array<G>(w, elements, 1);
  auto weight = array<float>(w, elements, 2), moment1 = array<float>(w, elements, 3);
  auto moment2 = array<float>(w, elements, 4);
  return [=](Stream stream) {
    cuda::adamw<G, T>({}, 100, gradient->next(), weight->next(), moment1->next(), moment2->next(),
                      nullptr, elements, stream);
  };
}

GpuCall optimizer(const Work& w, std::string_view name) {
  const double bytes = w.bytes_per_element();
  if (name == "clip_gradients") return bytes > 4 ? scale<float>(w) : scale<T>(w);
  return bytes > 26 ? adamw<float>(w) : adamw<T>(w);
}

GpuCall embedding(const Work& w, std::string_view name) {
  const std::int64_t rows = w.rows(), width = w.width();
  const std::int64_t sequence = std::min<std::int64_t>(rows, 2048);
  const bool tokens = name == "embedding" || name == "table_gradient";
  const std::int64_t table_rows = tokens ? w.model.vocab : sequence;
  auto x = array(w, rows * width, 1);
  auto table = std::make_shared<Rotation<T>>(Turns(1, 0), table_rows * width, 2);
  if (!tokens) {
    if (w.kernel.backward) {
      return [=](Stream stream) {
        cuda::add_positions_backward<T, T>(x->next(), table->next(), rows, 0, sequence, width,
                                           stream);
      };
    }
    return [=](Stream stream) {
      cuda::add_positions<T>(x->next(), table->next(), rows, 0, sequence, width, stream);
    };
  }
  const cuda::TableSlice slice{0, table_rows, width};
  auto ids = indices(rows, table_rows);
  if (w.kernel.backward) {
    return [=](Stream stream) {
      cuda::embed_tokens_backward<T, T>(slice, ids->data(), rows, x->next(), table->next(), stream);
    };
  }
  return [=](Stream stream) {
    cuda::embed_tokens<T>(slice, ids->data(), rows, table->next(), x->next(), stream);
  };
}

}  // namespace

GpuCall elementwise_call(const Operation& operation, const Elementwise& kernel, const Model& model,
                         const GpuContext& context) {
  if (kernel.elements <= 0 || kernel.bytes <= 0) return {};
  const Work work{kernel, model, context};
  const std::string_view name = operation.name;
  switch (kernel.kind) {
    case ElementwiseKind::kEmbedding:
      return embedding(work, name);
    case ElementwiseKind::kNorm:
      return norm(work);
    case ElementwiseKind::kActivation:
      return activation(work);
    case ElementwiseKind::kDropoutAdd:
      return add_residual(work);
    case ElementwiseKind::kRotary:
      return rotary(work);
    case ElementwiseKind::kCrossEntropy:
      return cross_entropy(work);
    case ElementwiseKind::kReduction:
      return reduction(work, name);
    case ElementwiseKind::kCast:
      return cast(work);
    case ElementwiseKind::kAccumulate:
      return work.bytes_per_element() > 6 ? accumulate<float>(work) : accumulate<T>(work);
    case ElementwiseKind::kFill:
      return work.bytes_per_element() > 2 ? fill<float>(work) : fill<T>(work);
    case ElementwiseKind::kOptimizer:
      return optimizer(work, name);
    case ElementwiseKind::kSoftmax:
    case ElementwiseKind::kTranspose:
      return {};
  }
  return {};
}

}  // namespace stepcast
