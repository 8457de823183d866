// SPDX-License-Identifier: Apache-2.0
// Traces of PyTorch's profiler (Kineto) with record_shapes=True. A kernel belongs to the innermost
// operator that was running on the host's thread when it was launched; the shapes are the
// operator's. All kernels of one operator are its time.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <optional>
#include <set>
#include <tuple>

#include "calibrate/device_name.h"
#include "calibrate/fit/table_row.h"
#include "calibrate/import/imported.h"
#include "calibrate/import/plausible.h"
#include "calibrate/import/trace_events.h"
#include "core/limits.h"
#include "cost/attention_cost.h"
#include "cost/gemm_cost.h"
#include "operation/attention_parts.h"
#include "traces/product_operator.h"

namespace stepcast {
namespace {

using Dims = std::vector<std::int64_t>;

// Element sizes as the profiler names the types: "c10::BFloat16", "float", and of messages "Float".
std::int64_t element_size(std::string_view type) {
  const auto is = [&](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), type) != names.end();
  };
  if (is({"c10::BFloat16", "BFloat16", "c10::Half", "Half"})) return 2;
  if (is({"float", "Float", "int", "Int"})) return 4;
  if (is({"double", "Double", "long", "long int", "Long"})) return 8;
  if (is({"bool", "Bool", "unsigned char", "Byte", "signed char", "Char"})) return 1;
  const bool fp8 = type.find("Float8") != std::string_view::npos;
  return fp8 ? 1 : 0;
}

constexpr double kMostTraced = 1e15;  // that a kernel moves

bool are_sizes(std::initializer_list<std::int64_t> counts) {
  return std::ranges::all_of(
      counts, [](std::int64_t count) { return count >= 1 && count <= TableRow::kMostCount; });
}

double elements(const Dims& dims) {
  double out = dims.empty() ? 0 : 1;
  for (const std::int64_t size : dims) out *= static_cast<double>(size);
  return out;
}

struct AttentionOp {
  const char* name;
  const char* kernel;
  bool backward;
  std::size_t query;   // place of the query; key and value follow
  std::size_t causal;  // place of the flag
  bool heads_first;    // [batch, heads, sequence, dimension], else heads behind the sequence
};
constexpr AttentionOp kAttentions[] = {
    {"aten::_scaled_dot_product_flash_attention", "fa2", false, 0, 4, true},
    {"aten::_scaled_dot_product_flash_attention_backward", "fa2", true, 1, 11, true},
    {"aten::_scaled_dot_product_cudnn_attention", "cudnn", false, 0, 6, true},
    {"aten::_scaled_dot_product_cudnn_attention_backward", "cudnn", true, 1, 14, true},
    {"flash_attn::_flash_attn_forward", "fa2", false, 0, 5, false},
    {"flash_attn::_flash_attn_backward", "fa2", true, 1, 11, false}};

struct ElementwiseOp {
  const char* name;
  MemoryBoundKind kind;
  bool backward;
  bool reads_first;  // its first input is not only overwritten
};
constexpr ElementwiseOp kElementwise[] = {
    {"aten::native_layer_norm", MemoryBoundKind::kNorm, false, true},
    {"aten::native_layer_norm_backward", MemoryBoundKind::kNorm, true, true},
    {"aten::gelu", MemoryBoundKind::kActivation, false, true},
    {"aten::gelu_backward", MemoryBoundKind::kActivation, true, true},
    {"aten::silu", MemoryBoundKind::kActivation, false, true},
    {"aten::silu_backward", MemoryBoundKind::kActivation, true, true},
    {"aten::add", MemoryBoundKind::kDropoutAdd, false, true},
    {"aten::add_", MemoryBoundKind::kAccumulate, false, true},
    {"aten::_softmax", MemoryBoundKind::kSoftmax, false, true},
    {"aten::_softmax_backward_data", MemoryBoundKind::kSoftmax, true, true},
    {"aten::copy_", MemoryBoundKind::kCast, false, false},
    {"aten::fill_", MemoryBoundKind::kFill, false, false},
    {"aten::zero_", MemoryBoundKind::kFill, false, false}};

template <class T, std::size_t N>
const T* find(const T (&table)[N], const std::string& name) {
  const auto found = std::find_if(std::begin(table), std::end(table),
                                  [&](const T& op) { return name == op.name; });
  return found == std::end(table) ? nullptr : found;
}

bool is_known(const std::string& name) {
  return product_operator(name) != nullptr || find(kAttentions, name) != nullptr ||
         find(kElementwise, name) != nullptr;
}

using Shape = ProductShape;

std::optional<Shape> shape_of(const ProductOperator& op, const TraceOperator& run) {
  const auto out = product_shape(op, run.dims);
  return out && are_sizes({out->batch, out->m, out->n, out->k}) ? out : std::nullopt;
}

class TraceReader {
 public:
  TraceReader(const TraceEvents& events, const std::string& file, const ClusterSpec& cluster,
              Imported& out)
      : events_(events), file_(file), cluster_(cluster), device_(cluster.accelerator), out_(out) {}

  Errors read() {
    for (const TraceKernel& kernel : events_.without_time) {
      fail(kernel.event,
           fmt::format("kernel '{}' has no time above zero under \"dur\"", kernel.name));
    }
    add_kernel_times();
    for (std::size_t i = 0; i < seconds_.size(); ++i) {
      const TraceOperator& run = events_.operators[i];
      const ProductOperator* gemm = product_operator(run.name);
      if (gemm != nullptr && backward_node(i) < 0) remember_forward(*gemm, run);
    }
    for (std::size_t i = 0; i < seconds_.size(); ++i) {
      if (seconds_[i] > 0) read_operator(i);
    }
    for (auto& [key, collective] : collectives_) {
      out_.collectives.push_back(std::move(collective));
    }
    return std::move(errors_);
  }

 private:
  void fail(std::int64_t event, std::string message) {
    if (errors_.size() >= kMostErrorsKept) return;
    errors_.push_back({ErrorCode::kBadValue, std::move(message), file_,
                       fmt::format("traceEvents[{}]", event),
                       "the trace as the profiler wrote it"});
  }
  template <class... Sample>
  void check(std::int64_t event, const std::string& name, const Sample&... sample) {
    if (const auto why = why_implausible(device_, sample...)) fail(event, name + ": " + *why);
  }
  void leave_out(const std::string& why) { ++out_.left_out[why]; }

  void add_kernel_times() {
    seconds_.assign(events_.operators.size(), 0);
    for (const TraceKernel& kernel : events_.kernels) {
      if (kernel.name.find("nccl") != std::string::npos) {
        read_collective(kernel);
        continue;
      }
      std::int64_t run = events_.operator_of(kernel);
      while (run >= 0 && !is_known(events_.operators[static_cast<std::size_t>(run)].name)) {
        run = events_.operators[static_cast<std::size_t>(run)].parent;
      }
      if (run < 0) {
        leave_out("kernels outside products, attention and elementwise operators");
      } else {
        seconds_[static_cast<std::size_t>(run)] += kernel.seconds;
      }
    }
  }

  // The node of autograd that an operator runs in, or -1 in a forward pass.
  std::int64_t backward_node(std::size_t index) const {
    std::int64_t run = events_.operators[index].parent;
    for (; run >= 0; run = events_.operators[static_cast<std::size_t>(run)].parent) {
      const std::string& name = events_.operators[static_cast<std::size_t>(run)].name;
      if (name.find("Backward") != std::string::npos && !name.starts_with("aten::")) return run;
    }
    return -1;
  }

  void remember_forward(const ProductOperator& op, const TraceOperator& run) {
    const auto shape = shape_of(op, run);
    if (shape && run.sequence >= 0) forward_.emplace(run.sequence, *shape);
  }

  void read_operator(std::size_t index) {
    const TraceOperator& run = events_.operators[index];
    if (const ProductOperator* op = product_operator(run.name)) read_gemm(*op, index);
    if (const AttentionOp* op = find(kAttentions, run.name)) read_attention(*op, index);
    if (const ElementwiseOp* op = find(kElementwise, run.name)) read_elementwise(*op, index);
  }

  void read_gemm(const ProductOperator& op, std::size_t index) {
    const TraceOperator& run = events_.operators[index];
    auto shape = shape_of(op, run);
    const std::vector<std::string>& types = run.types;
    if (!shape || types.size() <= op.left) {
      leave_out("products without shapes: profile with record_shapes=True");
      return;
    }
    const std::int64_t width = element_size(types[op.left]);
    const bool fp8 = width == 1 && device_.peak(DataType::kFp8).has_value();
    if (width != 2 && !fp8) {
      leave_out("products of other than 16-bit and fp8 operands");
      return;
    }
    GemmRole role = GemmRole::kForward;
    if (const std::int64_t node = backward_node(index); node >= 0) {
      const auto gradient = gradient_role(node, *shape);
      if (!gradient) {
        leave_out("products of a backward pass whose forward pass is not in the trace");
        return;
      }
      role = *gradient;
    }
    const DataType type = fp8 ? DataType::kFp8 : DataType::kBf16;
    const Gemm gemm{role, shape->batch, shape->m, shape->n, shape->k, type, DataType::kBf16, false};
    const double efficiency =
        flops_of(gemm) / (matrix_peak(device_, type).value() * seconds_[index]);
    const GemmSample sample{role, gemm.batch, gemm.m, gemm.n, gemm.k, efficiency};
    check(run.event, run.name, sample, type);
    (fp8 ? out_.gemms_fp8 : out_.gemms).push_back(sample);
  }

  // Which gradient a product is follows from the forward product's shape. A weight gradient may be
  // computed transposed: it is filed as outputs x inputs.
  std::optional<GemmRole> gradient_role(std::int64_t node, Shape& shape) {
    const auto found = forward_.find(events_.operators[static_cast<std::size_t>(node)].sequence);
    if (found == forward_.end()) return std::nullopt;
    const Shape& forward = found->second;  // m tokens, n outputs, k inputs
    const bool input = shape.m == forward.m && shape.n == forward.k && shape.k == forward.n;
    const bool weight = shape.k == forward.m && ((shape.m == forward.n && shape.n == forward.k) ||
                                                 (shape.m == forward.k && shape.n == forward.n));
    // If all is square, autograd takes the input's gradient first.
    if (input && (!weight || inputs_done_.insert(node).second)) return GemmRole::kInputGradient;
    if (!weight) return std::nullopt;
    shape.m = forward.n;
    shape.n = forward.k;
    return GemmRole::kWeightGradient;
  }

  void read_attention(const AttentionOp& op, std::size_t index) {
    const TraceOperator& run = events_.operators[index];
    const std::vector<Dims>& dims = run.dims;
    const std::vector<std::string>& types = run.types;
    const std::vector<std::string>& concrete = run.concrete;
    if (dims.size() < op.query + 3 || types.size() <= op.query || concrete.size() <= op.causal) {
      leave_out("attention without shapes: profile with record_shapes=True");
      return;
    }
    const Dims& query = dims[op.query];
    const Dims& key = dims[op.query + 1];
    if (query.size() != 4 || key.size() != 4 || element_size(types[op.query]) != 2) {
      leave_out("attention of other than 16-bit operands");
      return;
    }
    const std::size_t heads = op.heads_first ? 1 : 2, sequence = op.heads_first ? 2 : 1;
    if (query[sequence] != key[sequence] || dims[op.query + 2] != key) {
      leave_out("attention whose queries and keys, or keys and values, differ in shape");
      return;
    }
    if (!are_sizes({query[0], query[heads], key[heads], query[sequence], query[3]})) {
      fail(run.event, run.name + " has a size that is zero, negative or absurd");
      return;
    }
    const bool causal = concrete[op.causal] == "True";
    const Attention attention{op.backward, query[0],        query[heads],
                              key[heads],  query[sequence], query[sequence],
                              query[3],    causal,          DataType::kBf16};
    const double efficiency =
        flops_of(attention) / (matrix_peak(device_, DataType::kBf16).value() * seconds_[index]);
    const AttentionMeasurement point{
        op.backward ? AttentionPass::kBackward : AttentionPass::kForward,
        {op.backward, attention.batch, attention.heads, attention.kv_heads, attention.query_length,
         attention.head_dim, causal, efficiency},
        seconds_[index]};
    check(run.event, run.name, point);
    out_.attention[op.kernel].push_back(point);
  }

  void read_elementwise(const ElementwiseOp& op, std::size_t index) {
    const TraceOperator& run = events_.operators[index];
    const std::vector<Dims>& dims = run.dims;
    const std::vector<std::string>& types = run.types;
    if (dims.empty() || dims.size() != types.size() || elements(dims.front()) == 0) {
      leave_out("elementwise operators without shapes: profile with record_shapes=True");
      return;
    }
    double bytes = 0, largest = 0;
    for (std::size_t i = 0; i < dims.size(); ++i) {
      largest = std::max(largest, elements(dims[i]));
      if (i > 0 || op.reads_first) {
        bytes += elements(dims[i]) * static_cast<double>(element_size(types[i]));
      }
    }
    bytes += largest * static_cast<double>(element_size(types.front()));  // the result
    if (bytes > kMostTraced) {
      fail(run.event, fmt::format("{} moves {:.3g} bytes, which no kernel does", run.name, bytes));
      return;
    }
    if (bytes <= 0) {
      leave_out("elementwise operators of types that are not known");
      return;
    }
    const MemoryBound kernel{op.kind, op.backward, static_cast<std::int64_t>(largest), 0, bytes};
    const TimedKernel point{kernel, seconds_[index]};
    check(run.event, run.name, point);
    out_.elementwise.push_back(point);
  }

  void read_collective(const TraceKernel& kernel) {
    const std::array<std::pair<const char*, CollectiveKind>, 8> names = {
        {{"allreduce", CollectiveKind::kAllReduce},
         {"_allgather_base", CollectiveKind::kAllGather},
         {"allgather", CollectiveKind::kAllGather},
         {"_reduce_scatter_base", CollectiveKind::kReduceScatter},
         {"reduce_scatter", CollectiveKind::kReduceScatter},
         {"all_to_all", CollectiveKind::kAllToAll},
         {"broadcast", CollectiveKind::kBroadcast},
         {"_broadcast_oop", CollectiveKind::kBroadcast}}};
    const auto found = std::find_if(names.begin(), names.end(), [&](const auto& known) {
      return kernel.collective == known.first;
    });
    const std::int64_t ranks = kernel.group_size;
    const std::int64_t width = element_size(kernel.type);
    if (found == names.end() || ranks < 2 || width == 0) {
      leave_out("kernels of NCCL without group, size or kind (PyTorch 2.2 and later records them)");
      return;
    }
    // Elements count as nccl-tests count them: the larger of both sides.
    const std::int64_t largest = std::max(kernel.elements_in, kernel.elements_out);
    if (largest < 1) {
      leave_out("kernels of NCCL that move nothing");
      return;
    }
    if (static_cast<double>(largest) * static_cast<double>(width) > kMostTraced) {
      fail(kernel.event, fmt::format("{} elements are more than any message has", largest));
      return;
    }
    const std::int64_t bytes = largest * width;
    const std::int64_t nodes = nodes_of(kernel.ranks, ranks);
    if (ranks % nodes != 0) {
      leave_out("kernels of NCCL in groups with unequally many members on each node");
      return;
    }
    ImportedCollective& out = collectives_[{found->second, ranks, nodes}];
    out.kind = found->second;
    out.ranks = ranks;
    out.nodes = nodes;
    out.with_waits = true;
    const CollectiveSample sample{Bytes(static_cast<double>(bytes)), Seconds(kernel.seconds)};
    if (const auto why = why_implausible(cluster_, out.kind, ranks, nodes, sample)) {
      fail(kernel.event, kernel.collective + ": " + *why);
    }
    out.samples.push_back(sample);
  }

  // Counts nodes from the members' ranks, which go node by node; else as densely as they fit.
  std::int64_t nodes_of(const std::vector<std::int64_t>& members, std::int64_t ranks) const {
    std::set<std::int64_t> nodes;
    if (std::ssize(members) == ranks) {
      for (const std::int64_t rank : members) nodes.insert(rank / cluster_.gpus_per_node);
    }
    const std::int64_t dense = (ranks + cluster_.gpus_per_node - 1) / cluster_.gpus_per_node;
    return nodes.empty() ? dense : std::ssize(nodes);
  }

  const TraceEvents& events_;
  const std::string& file_;
  const ClusterSpec& cluster_;
  const Accelerator& device_;
  Imported& out_;
  Errors errors_;
  std::vector<double> seconds_;            // of the kernels of each operator
  std::map<std::int64_t, Shape> forward_;  // by sequence number
  std::set<std::int64_t> inputs_done_;     // nodes of autograd whose input gradient was seen
  std::map<std::tuple<CollectiveKind, std::int64_t, std::int64_t>, ImportedCollective> collectives_;
};

}  // namespace

Result<void> import_trace(const std::string& text, const std::string& file,
                          const ClusterSpec& cluster, Imported& out) {
  const auto events = read_trace_events(text, file);
  if (!events) return failure(events.error());
  if (!events->device.empty() && !names_device(events->device, cluster.accelerator)) {
    return failure({ErrorCode::kIllegal,
                    fmt::format("was recorded on '{}', and the cluster '{}' has {}", events->device,
                                cluster.name, cluster.accelerator.title),
                    file, "deviceProperties[0].name",
                    "name the cluster that was measured: --cluster"});
  }
  if (events->kernels.empty()) {
    return failure({ErrorCode::kMissingKey, "holds no kernels", file, "traceEvents",
                    "profile with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]"});
  }
  const auto count = [&] {
    std::size_t points =
        out.gemms.size() + out.gemms_fp8.size() + out.elementwise.size() + out.collectives.size();
    for (const auto& [kernel, measured] : out.attention) points += measured.size();
    return points;
  };
  const std::size_t before = count();
  if (Errors errors = TraceReader(*events, file, cluster, out).read(); !errors.empty()) {
    return failure(std::move(errors));
  }
  if (count() == before) {
    return failure({ErrorCode::kMissingKey, "none of its kernels can be told apart by shape", file,
                    "traceEvents", "profile with record_shapes=True"});
  }
  if (events->device.empty()) {
    out.remarks.push_back(fmt::format("{} names no device: it counts as recorded on {}", file,
                                      cluster.accelerator.title));
  }
  out.sources.push_back("PyTorch trace, " + std::filesystem::path(file).filename().string());
  return {};
}

}  // namespace stepcast
