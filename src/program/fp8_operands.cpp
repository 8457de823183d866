// SPDX-License-Identifier: Apache-2.0
#include "program/fp8_operands.h"

namespace stepcast {
namespace {

BufferId copy_of(BlockBuilder& builder, const char* name, std::int64_t elements) {
  return builder.buffer(name, builder.shape().fp8.copy_bytes(elements), DataType::kFp8);
}

KernelSize size_of_cast(std::int64_t elements, double bytes, std::int64_t launches) {
  return {elements, 0, bytes, launches};
}

// The norm before writes the copies, in place of its 16-bit output where nobody else reads that.
bool write_in_norm(BlockBuilder& builder, BufferId x, const std::vector<BufferId>& copies,
                   double copied, bool keeps_wide) {
  if (builder.begins_pass()) return false;
  Operation& before = builder.last();
  const auto* norm = std::get_if<Normalization>(&before.work);
  const bool fits = builder.shape().fp8.norm_writes && norm != nullptr && !norm->backward &&
                    !norm->residual && before.writes == std::vector<BufferId>{x};
  if (!fits) return false;
  KernelSize& size = *size_of_kernel(before.work);
  size.bytes += copied;
  if (!keeps_wide) {
    size.bytes -= static_cast<double>(size.elements) * static_cast<double>(builder.shape().element);
    before.writes.clear();
  }
  before.writes.insert(before.writes.end(), copies.begin(), copies.end());
  return true;
}

bool comes_from_norm(BlockBuilder& builder, BufferId x) {
  if (builder.begins_pass()) return false;
  const Operation& before = builder.last();
  return std::holds_alternative<Normalization>(before.work) && !before.writes.empty() &&
         before.writes.back() == x;
}

// The largest element of a tensor, by a pass of its own: a norm finds it beside its own work. Parts
// of one tensor have one scale.
void find_scale(BlockBuilder& builder, BufferId x, std::int64_t elements, bool backward, bool cut) {
  const Shape& shape = builder.shape();
  const BufferId largest = builder.buffer("largest_element", 1, DataType::kFp32);
  if (!backward && shape.fp8.norm_finds_scale && comes_from_norm(builder, x)) {
    builder.last().writes.insert(builder.last().writes.begin(), largest);
  } else {
    const double bytes = static_cast<double>(elements) * static_cast<double>(shape.element);
    builder.add("find_scale",
                Cast{CastSubject::kScale, backward, shape.type, DataType::kFp32,
                     size_of_cast(elements, bytes, 2)},
                {x}, {largest});
  }
  if (!cut) return;
  builder.collective("scale", CollectiveKind::kAllReduce, AxisGroup::kTensor, 1, DataType::kFp32,
                     {largest}, {largest}, CollectivePurpose::kScale);
}

}  // namespace

Operand cast_operand(BlockBuilder& builder, BufferId x, std::int64_t elements, bool backward,
                     bool by_columns, bool cut, bool keeps_wide) {
  const Shape& shape = builder.shape();
  const Fp8& fp8 = shape.fp8;
  Operand out;
  out.rows = copy_of(builder, backward ? "gradient_fp8" : "input_fp8", elements);
  std::vector<BufferId> copies{out.rows};
  if (by_columns && fp8.has_two_copies()) {
    out.columns =
        copy_of(builder, backward ? "gradient_fp8_by_columns" : "input_fp8_by_columns", elements);
    copies.push_back(out.columns);
  } else if (by_columns) {
    out.columns = out.rows;
  }
  const double written =
      static_cast<double>(copies.size()) * static_cast<double>(fp8.copy_bytes(elements));
  if (!backward && write_in_norm(builder, x, copies, written, keeps_wide)) return out;
  if (fp8.recipe->finds_scale) find_scale(builder, x, elements, backward, cut);
  const double read = static_cast<double>(elements) * static_cast<double>(shape.element);
  builder.add(
      "cast_to_fp8",
      Cast{CastSubject::kOperand, backward, shape.type, DataType::kFp8,
           size_of_cast(elements, read + written, static_cast<std::int64_t>(copies.size()))},
      {x}, {out.rows});
  builder.last().writes = copies;
  return out;
}

BufferId gather_copy(BlockBuilder& builder, const char* name, BufferId share, std::int64_t elements,
                     BlockStream stream) {
  const BufferId whole = copy_of(builder, name, elements);
  builder.collective(name, CollectiveKind::kAllGather, AxisGroup::kTensor,
                     builder.shape().fp8.copy_bytes(elements), DataType::kFp8, {share}, {whole},
                     CollectivePurpose::kActivations, stream);
  return whole;
}

BufferId transposed(BlockBuilder& builder, BufferId rows, std::int64_t elements, bool backward) {
  if (!builder.shape().fp8.transposes) return rows;
  const BufferId columns = copy_of(builder, "transposed_fp8", elements);
  builder.add("transpose_fp8",
              Cast{CastSubject::kOperand, backward, DataType::kFp8, DataType::kFp8,
                   size_of_cast(elements, 2.0 * static_cast<double>(elements), 1)},
              {rows}, {columns});
  return columns;
}

}  // namespace stepcast
