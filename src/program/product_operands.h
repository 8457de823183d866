// SPDX-License-Identifier: Apache-2.0
// How the products of a layer read what goes into it: in 16 bits, as it is, or in fp8, as copies
// that are cast, gathered and transposed (program/fp8_operands.h). Each form says what the step
// into a region that tensor parallelism cuts adds, forward and backward, and what is kept.
#pragma once

#include "program/block_builder.h"
#include "program/fp8_operands.h"

namespace stepcast {

// Holds what goes into a layer. In 16 bits `operand` is `x` itself.
struct LinearInput {
  BufferId x;       // in the model's type; invalid where nothing reads it
  Operand operand;  // of the product with W
  BufferId share;   // of this rank, where tensor ranks gather it again for the weight gradient
};

// A layer asks for a tensor [tokens, width], and says who reads it.
struct OperandRequest {
  BufferId x;
  std::int64_t tokens = 0, width = 0;
  bool for_weights = false;  // a weight gradient will read it
  bool also_wide = false;    // adapters read it in 16 bits
  bool cast_again = false;   // it is kept, or made again, in place of its copy by columns
};

class OperandForm {
 public:
  virtual ~OperandForm() = default;
  virtual bool is_fp8() const = 0;

  // Forward: the layer begins a region that is cut by tensor parallelism, or reads what is whole.
  // `name`: of what is gathered.
  virtual LinearInput enter(BlockBuilder& builder, const char* name,
                            const OperandRequest& request) const = 0;
  virtual LinearInput take(BlockBuilder& builder, const OperandRequest& request) const = 0;

  // Backward: the gradient of the output, of a layer that ends a region or of one that begins it.
  virtual LinearInput leave_backward(BlockBuilder& builder, const char* name,
                                     const OperandRequest& request) const = 0;
  virtual LinearInput take_gradient(BlockBuilder& builder, const OperandRequest& request) const = 0;

  // Gathers once more, for the weight gradient, what enter() gathered.
  virtual LinearInput gather_again(BlockBuilder& builder, const char* name,
                                   const OperandRequest& request,
                                   const LinearInput& saved) const = 0;
  // Stands in for `saved` when recomputation has made the layer's input once more.
  virtual LinearInput renewed(const LinearInput& saved, const OperandRequest& request) const = 0;

  // The weight gradient reads these of the layer's input, and of a gradient of its output.
  virtual BufferId input_by_columns(BlockBuilder& builder, const OperandRequest& request,
                                    const LinearInput& input) const = 0;
  virtual BufferId by_columns(BlockBuilder& builder, const OperandRequest& request,
                              const Operand& operand) const = 0;
};

// The form in which products with a model's matrices read their operands.
const OperandForm& operand_form(const BlockBuilder& builder);
// In 16 bits, as they are.
const OperandForm& wide_form();

}  // namespace stepcast
