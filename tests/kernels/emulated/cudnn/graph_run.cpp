// SPDX-License-Identifier: Apache-2.0
#include "kernels/emulated/cudnn/graph_run.h"

#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include "kernels/half_values.h"

namespace stepcast::emulated {
namespace {

using cuda::Bf16;
using cuda::Fp16;
using Four = std::array<std::int64_t, 4>;

void expect(bool good, const char* why) {
  if (!good) throw Refused(CUDNN_STATUS_BAD_PARAM, why);
}

Four four(const std::vector<std::int64_t>& numbers) {
  return {numbers[0], numbers[1], numbers[2], numbers[3]};
}
Four dims_of(const Object& tensor) { return four(tensor.numbers(CUDNN_ATTR_TENSOR_DIMENSIONS)); }
Four strides_of(const Object& tensor) { return four(tensor.numbers(CUDNN_ATTR_TENSOR_STRIDES)); }
std::int64_t id_of(const Object& tensor) { return tensor.number(CUDNN_ATTR_TENSOR_UNIQUE_ID); }
bool is_virtual(const Object& tensor) { return tensor.number(CUDNN_ATTR_TENSOR_IS_VIRTUAL) != 0; }
bool is_by_value(const Object& tensor) { return tensor.number(CUDNN_ATTR_TENSOR_IS_BY_VALUE) != 0; }
std::int64_t type_of(const Object& tensor) { return tensor.number(CUDNN_ATTR_TENSOR_DATA_TYPE); }
bool is_16_bit(const Object& tensor) {
  return type_of(tensor) == CUDNN_DATA_BFLOAT16 || type_of(tensor) == CUDNN_DATA_HALF;
}

double rounded_to(std::int64_t type, double x) {
  const auto single = static_cast<float>(x);
  switch (type) {
    case CUDNN_DATA_BFLOAT16:
      return static_cast<double>(to_float(cuda::rounded<Bf16>(single)));
    case CUDNN_DATA_HALF:
      return static_cast<double>(to_float(cuda::rounded<Fp16>(single)));
    case CUDNN_DATA_FLOAT:
      return static_cast<double>(single);
    default:
      return x;  // indices and truths
  }
}

struct Ends {
  std::vector<ObjectPtr> in;
  ObjectPtr out;
};

Ends ends_of(const Object& operation) {
  Ends out;
  const auto add = [&](cudnnBackendAttributeName_t name) {
    if (operation.has(name)) out.in.push_back(operation.object(name));
  };
  switch (operation.type) {
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
      add(CUDNN_ATTR_OPERATION_MATMUL_ADESC);
      add(CUDNN_ATTR_OPERATION_MATMUL_BDESC);
      out.out = operation.object(CUDNN_ATTR_OPERATION_MATMUL_CDESC);
      break;
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
      add(CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
      add(CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
      add(CUDNN_ATTR_OPERATION_POINTWISE_TDESC);
      out.out = operation.object(CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
      break;
    case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
      add(CUDNN_ATTR_OPERATION_REDUCTION_XDESC);
      out.out = operation.object(CUDNN_ATTR_OPERATION_REDUCTION_YDESC);
      break;
    default:
      expect(operation.type == CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, "an operation");
      add(CUDNN_ATTR_OPERATION_RESHAPE_XDESC);
      out.out = operation.object(CUDNN_ATTR_OPERATION_RESHAPE_YDESC);
  }
  return out;
}

void expect_product(const Ends& ends) {
  const Four a = dims_of(*ends.in[0]), b = dims_of(*ends.in[1]), c = dims_of(*ends.out);
  expect(a[0] == c[0] && b[0] == c[0] && a[1] == c[1] && c[1] % b[1] == 0 && a[2] == c[2] &&
             b[3] == c[3] && a[3] == b[2],
         "a product of matrices that fit");
}

void expect_fit(const Object& operation, const Ends& ends) {
  const Four out = dims_of(*ends.out);
  if (operation.type == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR) return expect_product(ends);
  if (operation.type == CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR) {
    Four dims = dims_of(*ends.in[0]), strides = strides_of(*ends.in[0]);
    std::swap(dims[2], dims[3]);
    std::swap(strides[2], strides[3]);
    return expect(dims == out && strides == strides_of(*ends.out), "the same array, transposed");
  }
  const bool reduces = operation.type == CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR;
  for (const ObjectPtr& in : ends.in) {
    for (std::size_t i = 0; i < 4; ++i) {
      const std::int64_t extent = dims_of(*in)[i];
      expect(reduces ? extent % out[i] == 0 : extent == out[i] || extent == 1,
             "dimensions of an operation's tensors");
    }
  }
  if (ends.in.size() == 3) expect(type_of(*ends.in[2]) == CUDNN_DATA_BOOLEAN, "a mask of truths");
}

std::vector<ObjectPtr> operations_of(const Object& graph) {
  return graph.values.at(CUDNN_ATTR_OPERATIONGRAPH_OPS).objects;
}

// The tensors of a graph by their ids.
std::map<std::int64_t, ObjectPtr> tensors_of(const Object& graph) {
  std::map<std::int64_t, ObjectPtr> out;
  for (const ObjectPtr& operation : operations_of(graph)) {
    Ends ends = ends_of(*operation);
    ends.in.push_back(ends.out);
    for (const ObjectPtr& tensor : ends.in) {
      const auto known = out.emplace(id_of(*tensor), tensor);
      expect(known.second || known.first->second == tensor, "two tensors of one id");
    }
  }
  return out;
}

class Run {
 public:
  explicit Run(const Bindings& bindings) : bindings_(bindings) {}

  void operation(const Object& what) {
    const Ends ends = ends_of(what);
    switch (what.type) {
      case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
        return matmul(ends);
      case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
        return reduce(*what.object(CUDNN_ATTR_OPERATION_REDUCTION_DESC), ends);
      case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
        return write(ends.out, [&](const Four& at) {
          return read(*ends.in[0], {at[0], at[1], at[3], at[2]});
        });
      default:
        return pointwise(*what.object(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR), ends);
    }
  }

 private:
  static std::size_t place(const Four& at, const Four& strides) {
    return static_cast<std::size_t>(at[0] * strides[0] + at[1] * strides[1] + at[2] * strides[2] +
                                    at[3] * strides[3]);
  }

  // Repeated along dimensions of 1, and heads of groups.
  double read(const Object& tensor, Four at) const {
    if (is_by_value(tensor)) return static_cast<double>(bindings_.values.at(id_of(tensor)));
    const Four dims = dims_of(tensor);
    for (std::size_t i = 0; i < 4; ++i) at[i] = dims[i] == 1 ? 0 : at[i];
    const std::size_t where = place(at, strides_of(tensor));
    if (is_virtual(tensor)) return inner_.at(id_of(tensor)).at(where);
    const void* data = bindings_.arrays.at(id_of(tensor));
    switch (type_of(tensor)) {
      case CUDNN_DATA_BFLOAT16:
        return static_cast<double>(to_float(static_cast<const Bf16*>(data)[where]));
      case CUDNN_DATA_HALF:
        return static_cast<double>(to_float(static_cast<const Fp16*>(data)[where]));
      default:
        return static_cast<double>(static_cast<const float*>(data)[where]);
    }
  }

  void put(const Object& tensor, const Four& at, double value) {
    const std::size_t where = place(at, strides_of(tensor));
    const auto single = static_cast<float>(value);
    if (is_virtual(tensor)) {
      inner_[id_of(tensor)].at(where) = rounded_to(type_of(tensor), value);
      return;
    }
    void* data = bindings_.arrays.at(id_of(tensor));
    switch (type_of(tensor)) {
      case CUDNN_DATA_BFLOAT16:
        static_cast<Bf16*>(data)[where] = cuda::rounded<Bf16>(single);
        return;
      case CUDNN_DATA_HALF:
        static_cast<Fp16*>(data)[where] = cuda::rounded<Fp16>(single);
        return;
      default:
        static_cast<float*>(data)[where] = single;
    }
  }

  void write(const ObjectPtr& tensor, const std::function<double(const Four&)>& value) {
    const Four dims = dims_of(*tensor), strides = strides_of(*tensor);
    if (is_virtual(*tensor)) {
      const Four last = {dims[0] - 1, dims[1] - 1, dims[2] - 1, dims[3] - 1};
      inner_[id_of(*tensor)].assign(place(last, strides) + 1,
                                    std::numeric_limits<double>::quiet_NaN());
    }
    Four at{};
    for (at[0] = 0; at[0] < dims[0]; ++at[0]) {
      for (at[1] = 0; at[1] < dims[1]; ++at[1]) {
        for (at[2] = 0; at[2] < dims[2]; ++at[2]) {
          for (at[3] = 0; at[3] < dims[3]; ++at[3]) put(*tensor, at, value(at));
        }
      }
    }
  }

  void matmul(const Ends& ends) {
    const Object &a = *ends.in[0], &b = *ends.in[1];
    const std::int64_t inner = dims_of(a)[3], group = dims_of(a)[1] / dims_of(b)[1];
    const bool rounds = is_16_bit(b);  // tensor cores take 16 bits of both
    write(ends.out, [&](const Four& at) {
      double sum = 0;
      for (std::int64_t k = 0; k < inner; ++k) {
        const double left = read(a, {at[0], at[1], at[2], k});
        sum += (rounds ? rounded_to(type_of(b), left) : left) *
               read(b, {at[0], at[1] / group, k, at[3]});
      }
      return sum;
    });
  }

  void reduce(const Object& how, const Ends& ends) {
    const Object& x = *ends.in[0];
    const bool sums = how.number(CUDNN_ATTR_REDUCTION_OPERATOR) == CUDNN_REDUCE_TENSOR_ADD;
    const Four dims = dims_of(x), kept = dims_of(*ends.out);
    write(ends.out, [&](const Four& to) {
      double out = sums ? 0 : -std::numeric_limits<double>::infinity();
      Four part{}, size{};
      for (std::size_t i = 0; i < 4; ++i) size[i] = dims[i] / kept[i];
      for (part[0] = 0; part[0] < size[0]; ++part[0]) {
        for (part[1] = 0; part[1] < size[1]; ++part[1]) {
          for (part[2] = 0; part[2] < size[2]; ++part[2]) {
            for (part[3] = 0; part[3] < size[3]; ++part[3]) {
              Four at{};
              for (std::size_t i = 0; i < 4; ++i) at[i] = to[i] * size[i] + part[i];
              const double value = read(x, at);
              out = sums ? out + value : std::fmax(out, value);
            }
          }
        }
      }
      return out;
    });
  }

  void pointwise(const Object& how, const Ends& ends) {
    const auto in = [&](std::size_t which, const Four& at) { return read(*ends.in[which], at); };
    const std::int64_t mode = how.number(CUDNN_ATTR_POINTWISE_MODE);
    write(ends.out, [&](const Four& at) {
      switch (mode) {
        case CUDNN_POINTWISE_ADD:
          return in(0, at) + in(1, at);
        case CUDNN_POINTWISE_SUB:
          return in(0, at) - in(1, at);
        case CUDNN_POINTWISE_MUL:
          return in(0, at) * in(1, at);
        case CUDNN_POINTWISE_DIV:
          return in(0, at) / in(1, at);
        case CUDNN_POINTWISE_EXP:
          return std::exp(in(0, at));
        case CUDNN_POINTWISE_LOG:
          return std::log(in(0, at));
        case CUDNN_POINTWISE_IDENTITY:
          return in(0, at);
        case CUDNN_POINTWISE_CMP_GE:
          return in(0, at) >= in(1, at) ? 1.0 : 0.0;
        case CUDNN_POINTWISE_BINARY_SELECT:
          return in(2, at) != 0 ? in(0, at) : in(1, at);
        default:  // GEN_INDEX
          return static_cast<double>(
              at[static_cast<std::size_t>(how.number(CUDNN_ATTR_POINTWISE_AXIS))]);
      }
    });
  }

  const Bindings& bindings_;
  std::map<std::int64_t, std::vector<double>> inner_;
};

}  // namespace

void expect_connected(const Object& graph) {
  tensors_of(graph);
  std::set<std::int64_t> written, read;
  for (const ObjectPtr& operation : operations_of(graph)) {
    const Ends ends = ends_of(*operation);
    expect_fit(*operation, ends);
    for (const ObjectPtr& in : ends.in) {
      expect(!is_virtual(*in) || written.count(id_of(*in)) != 0, "read before it is written");
      read.insert(id_of(*in));
    }
    expect(!is_by_value(*ends.out), "a number by value is not written");
    expect(written.insert(id_of(*ends.out)).second, "written twice");
  }
  for (const auto& [id, tensor] : tensors_of(graph)) {
    expect(!is_virtual(*tensor) || read.count(id) != 0, "a virtual tensor that nothing reads");
  }
}

Bindings bindings_of(const Object& graph, const Object& pack) {
  const auto& ids = pack.numbers(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const auto& data = pack.numbers(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  expect(ids.size() == data.size(), "an address for each id");
  Bindings out;
  const auto tensors = tensors_of(graph);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto found = tensors.find(ids[i]);
    expect(found != tensors.end() && !is_virtual(*found->second), "an id of no array");
    void* address = reinterpret_cast<void*>(data[i]);
    expect(address != nullptr &&
               data[i] % found->second->number(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT) == 0,
           "an address that is not aligned");
    if (is_by_value(*found->second)) {
      out.values[ids[i]] = *static_cast<const float*>(address);  // now: it is the caller's
    } else {
      out.arrays[ids[i]] = address;
    }
  }
  for (const auto& [id, tensor] : tensors) {
    expect(is_virtual(*tensor) || out.arrays.count(id) + out.values.count(id) != 0,
           "a tensor without an address");
  }
  return out;
}

void run_graph(const Object& graph, const Bindings& bindings) {
  Run run(bindings);
  for (const ObjectPtr& operation : operations_of(graph)) run.operation(*operation);
}

}  // namespace stepcast::emulated
