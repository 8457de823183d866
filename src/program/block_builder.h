// SPDX-License-Identifier: Apache-2.0
// Writes a block: buffers, then operations in order. Knows kernels and tensor parallelism, not
// which block it is writing.
#pragma once

#include <initializer_list>
#include <utility>
#include <vector>

#include "layout/fp8_recipe.h"
#include "layout/framework_rules.h"
#include "layout/layout.h"
#include "layout/training.h"
#include "model/model.h"
#include "operation/block_stream.h"
#include "operation/buffer.h"
#include "operation/collective.h"
#include "operation/collective_kind.h"
#include "operation/memory_parts.h"
#include "operation/operation.h"
#include "operation/optional_count.h"
#include "operation/phase.h"
#include "operation/product.h"
#include "program/block.h"
#include "schedule/pass.h"

namespace stepcast {

class AxisGroup;
struct AttentionSizes;
struct GroupedGemm;
struct KernelSize;
struct Scenario;

// Local sizes of one micro-batch on one rank.
struct Shape {
  explicit Shape(const Scenario& scenario);

  std::int64_t batch;     // sequences
  std::int64_t sequence;  // tokens of a sequence on this rank
  std::int64_t cp;
  ContextMethod cp_method;
  bool ring_in_fp32;  // FrameworkTraits::ring_adds_in_fp32, where keys and values travel
  std::int64_t cp_exchange;
  std::int64_t tokens;  // batch * sequence: rows of GEMMs
  std::int64_t rows;    // of norms, dropout and residuals: tokens, or tokens / tp
  std::int64_t hidden;
  std::int64_t heads;     // on this rank
  std::int64_t kv_heads;  // on this rank, replicated below one
  std::int64_t head_dim;
  std::int64_t ffn;          // on this rank
  std::int64_t vocab;        // padded, on this rank
  std::int64_t table_width;  // of a row of the embedding's and the head's table
  std::int64_t tp;
  bool sequence_parallel;
  bool overlap_tp;
  bool dropout;
  bool softmax_in_steps;  // no fused kernel takes these rows (longest_fused_softmax)
  bool in_steps;          // nothing is compiled: chains hand each other whole tensors
  DataType type;          // of activations
  DataType product;       // in which products compute without fp8: `type`, or TF32 of fp32
  Fp8 fp8;                // how products of layers run in it, or in fp4
  Fp8 attention_fp8;      // and those of attention
  bool fp8_params, fp8_attention;
  OptionalCount document_span;  // PackedRows::span, where documents are packed
  DataType gradient;            // of accumulated gradients
  Norm norm;                    // of the model's layers
  TrainingMode mode;
  std::int64_t lora_rank;
  bool drops_adapter_inputs;
  std::int64_t element;  // bytes of `type`

  std::int64_t table_elements() const { return vocab * table_width; }
  DataType attended() const { return fp8_attention ? attention_fp8.type : product; }
};

// A weight gradient is written in one of these ways.
enum class GradientMode {
  kFused,       // the GEMM adds into the main gradient
  kAccumulate,  // a temporary, then an add into the main gradient
  kUnit,        // into the gathered unit's gradient, reduced at its end (FSDP)
};
GradientMode gradient_mode(const Scenario& scenario);

class BlockBuilder {
 public:
  BlockBuilder(const FrameworkRules& rules, const Shape& shape, GradientMode mode, Block& block)
      : rules_(rules), shape_(shape), narrow_(shape.fp8), mode_(mode), block_(block) {}

  using Buffers = std::initializer_list<BufferId>;  // invalid ones are not read

  BufferId buffer(const char* name, std::int64_t elements, DataType type,
                  MemoryCategory category = MemoryCategory::kActivations);
  BufferId activation(const char* name, std::int64_t elements) {
    return buffer(name, elements, shape_.type);
  }

  // The parameter is frozen when only adapters are trained, unless it says how it is stored.
  ParameterId parameter(Parameter parameter);
  ParameterId adapter(const Parameter& parameter);  // always trained
  bool trains(ParameterId id) const {
    return block_.weights[id.index()].storage == WeightStorage::kTrained;
  }
  // Weight, and bias where there is one, of `elements` each.
  std::vector<ParameterId> norm_parameters(const char* weight, const char* bias,
                                           std::int64_t elements, Cut cut = Cut::kNone);
  ParameterId vector(const char* name, std::int64_t elements, Cut cut,
                     Initial initial = Initial::kZeros);

  // Chooses the pass that the next operations go to, and what they count as. Input gradients and
  // weight gradients go to the one backward pass of a block whose form is whole.
  void into(Pass pass, Phase phase);
  void into_input_gradients() { into(Pass::kInputGradient, Phase::kBackward); }
  // Runs `write` with the pass of weight gradients as the target.
  template <class Write>
  void among_weight_gradients(const Write& write) {
    const Target before = target_;
    into(Pass::kWeightGradient, Phase::kWeightGradient);
    write();
    target_ = before;
  }

  // Any work; invalid buffers are left out of what it reads.
  void add(const char* name, Operation::Work work, Buffers reads, Buffers writes);
  void also_writes(Buffers buffers);  // the operation written last
  // `bytes_per_element` is all traffic of the kernel.
  KernelSize size(std::int64_t elements, std::int64_t width, double bytes_per_element,
                  std::int64_t launches = 1) const;
  // A product with a weight.
  void gemm(const char* name, GemmRole role, std::int64_t m, std::int64_t n, std::int64_t k,
            Buffers reads, Buffers writes, bool bias = false, bool in_fp8 = false);
  void collective(const char* name, CollectiveKind kind, AxisGroup group, std::int64_t elements,
                  DataType type, Buffers reads, Buffers writes,
                  CollectivePurpose purpose = CollectivePurpose::kActivations,
                  BlockStream stream = BlockStream::kCompute);

  // Attaches parameters to the operation written last; invalid ones are left out.
  void uses(std::initializer_list<ParameterId> parameters);
  void uses(const std::vector<ParameterId>& parameters);

  // Rows of tokens between the ranks of a group. `copies`, `store_sms`: as struct Collective has
  // them.
  void exchange(const char* name, AxisGroup group, std::int64_t elements, DataType type,
                Buffers reads, Buffers writes, CollectivePurpose purpose, std::int64_t copies = 0,
                std::int64_t store_sms = 0);

  // The weight gradient of y[tokens, n] = x[tokens, k] w. A frozen weight has none. Where the GEMM
  // adds into the main gradient itself, autograd is still handed a tensor of the weight's shape:
  // `placeholder` allocates it for the operation (Megatron's own linear layers; Transformer Engine
  // keeps one per shape, see lower.cpp).
  void weight_gradient(const char* name, ParameterId weight, std::int64_t n, std::int64_t k,
                       Buffers reads, bool placeholder = false, bool in_fp8 = false,
                       std::int64_t tokens = 0);
  // Does it for the weights of experts; `product` says all but where it writes.
  void weight_gradient(const char* name, ParameterId weight, GroupedGemm product, Buffers reads);
  // Adds that of some tokens to the sum of others', behind the operation written last.
  void add_weight_gradient(const char* name, ParameterId weight, std::int64_t n, std::int64_t k,
                           Buffers reads, bool in_fp8, std::int64_t tokens);
  // A gradient of one weight and micro-batch, and how it joins the main one.
  BufferId fresh_gradient(const char* name, std::int64_t elements);
  void accumulate(ParameterId weight, std::int64_t elements, BufferId fresh);
  void bias_gradient(ParameterId bias, std::int64_t rows, std::int64_t width, Buffers reads);

  // Tensor-parallel edges. A region between them is cut by tp; outside it is whole (or cut along
  // the sequence with sequence parallelism).
  // `width`: elements of a row; 0: the model's.
  BufferId enter_region(const char* name, BufferId x, std::int64_t width = 0);  // forward: gather
  BufferId leave_region(const char* name, BufferId partial);  // forward: reduce-scatter/all-reduce
  // The backward of enter_region() reduces, that of leave_region() gathers or does nothing.
  BufferId enter_backward(const char* name, BufferId gradient, std::int64_t width = 0);
  BufferId leave_backward(const char* name, BufferId gradient);
  // Backward: what enter_region() gathered, for the weight gradient. Where nobody has kept it, it
  // is gathered again.
  BufferId gather_again(const char* name, BufferId x, BufferId gathered, std::int64_t width = 0);

  using Parameters = std::vector<ParameterId>;
  BufferId norm(const char* name, const Parameters& parameters, BufferId x, std::int64_t rows,
                std::int64_t width);
  // A branch (with its bias, where valid) joins the residual stream, and the norm of the sum, in
  // one kernel.
  struct JoinedNorm {
    BufferId sum, y;
  };
  JoinedNorm add_norm(const char* name, const char* sum, const Parameters& parameters,
                      BufferId branch, ParameterId branch_bias, BufferId residual,
                      std::int64_t rows, std::int64_t width);
  // The gradient of a norm at `x`, plus `residual` where it joins a residual stream: in the same
  // kernel or in one of its own (FrameworkRules::fuses_neighbours). The sums for the norm's weights
  // are made by that kernel too, which shares what they read. So they stay with the input gradients
  // where weight gradients are apart, as zero-bubble implementations keep them.
  BufferId norm_backward(const char* name, const Parameters& parameters, BufferId x,
                         BufferId gradient, BufferId residual, std::int64_t rows,
                         std::int64_t width);

  // Operations written from here on belong to this part of a layer. Returns the part before.
  GraphPart into_part(GraphPart part) { return std::exchange(part_, part); }
  // Operations written from here on are of so many weights. Returns the number before.
  std::int64_t into_groups(std::int64_t groups) { return std::exchange(groups_, groups); }
  // The operation written last, to change it.
  Operation& last() { return operations().back(); }
  // A collective of the backward that a product need not wait for runs on this stream.
  BlockStream backward_stream() const {
    const bool beside = rules_.async_tensor_backward && shape_.tp > 1;
    return beside ? BlockStream::kCommunication : BlockStream::kCompute;
  }

  // Behind the input gradient of a frozen matrix no weight gradient runs that its reduction could
  // run beside. With overlap.tp it is pipelined with the product itself (tp_comm_overlap_rs_dgrad).
  BlockStream reduction_stream() const {
    const bool frozen = shape_.mode != TrainingMode::kPretrain;
    return frozen && shape_.overlap_tp ? BlockStream::kCompute : backward_stream();
  }

  const FrameworkRules& rules() const { return rules_; }
  const Shape& shape() const { return shape_; }
  // How the products that are written now run in fp8 or fp4. A layer may have several ways.
  const Fp8& fp8() const { return narrow_; }
  Fp8 into_fp8(const Fp8& fp8) { return std::exchange(narrow_, fp8); }  // returns the one before
  // In what products of layers, and attention, read their operands.
  DataType multiplied(bool in_fp8) const { return in_fp8 ? narrow_.type : shape_.product; }
  AttentionSizes attention_sizes() const;
  // Weights' gradients are summed in this type over micro-batches, or over the unit's one.
  DataType gradient_type() const {
    return mode_ == GradientMode::kUnit ? shape_.type : shape_.gradient;
  }
  GradientMode mode() const { return mode_; }
  Block& block() { return block_; }

 private:
  ParameterId declare(const Parameter& parameter);
  BufferId reduce(const char* name, BufferId partial, BlockStream stream, std::int64_t width = 0);
  BufferId gather(const char* name, BufferId x, BlockStream stream, std::int64_t width = 0);
  std::int64_t row(std::int64_t width) const { return width > 0 ? width : shape_.hidden; }
  void write_weight_gradient(const char* name, ParameterId weight, std::int64_t elements,
                             Operation::Work product, BufferId fresh, Buffers reads);

  const FrameworkRules& rules_;
  const Shape& shape_;
  Fp8 narrow_;
  GradientMode mode_;
  Block& block_;
  struct Target {
    Pass pass = Pass::kForward;
    Phase phase = Phase::kForward;
  };
  // RMSNorm step by step keeps its input in fp32 and what it scaled, narrowed again, for backward,
  // which then does not read the input (LlamaRMSNorm under autograd).
  struct NormInSteps {
    BufferId input, wide, narrow;
  };
  const NormInSteps* in_steps(BufferId x) const;  // null: its norm is one kernel
  std::vector<NormInSteps> norms_in_steps_;

  std::vector<Operation>& operations() { return block_.pass(target_.pass).operations; }
  Target target_;
  GraphPart part_ = GraphPart::kNone;
  std::int64_t groups_ = 1;
};

// While it lives, operations are of so many weights, which a framework may take one by one.
class InGroups {
 public:
  InGroups(BlockBuilder& builder, std::int64_t groups)
      : builder_(builder), before_(builder.into_groups(groups)) {}
  ~InGroups() { builder_.into_groups(before_); }
  InGroups(const InGroups&) = delete;
  InGroups& operator=(const InGroups&) = delete;

 private:
  BlockBuilder& builder_;
  std::int64_t before_;
};

// While it lives, products run in fp8 or fp4 this way.
class InFp8 {
 public:
  InFp8(BlockBuilder& builder, const Fp8& fp8)
      : builder_(builder), before_(builder.into_fp8(fp8)) {}
  ~InFp8() { builder_.into_fp8(before_); }
  InFp8(const InFp8&) = delete;
  InFp8& operator=(const InFp8&) = delete;

 private:
  BlockBuilder& builder_;
  Fp8 before_;
};

// While it lives, operations belong to this part of a layer.
class InPart {
 public:
  InPart(BlockBuilder& builder, GraphPart part)
      : builder_(builder), before_(builder.into_part(part)) {}
  ~InPart() { builder_.into_part(before_); }
  InPart(const InPart&) = delete;
  InPart& operator=(const InPart&) = delete;

 private:
  BlockBuilder& builder_;
  GraphPart before_;
};

}  // namespace stepcast
