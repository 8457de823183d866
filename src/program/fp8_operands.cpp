// SPDX-License-Identifier: Apache-2.0
#include "program/fp8_operands.h"

#include <algorithm>
#include <map>

namespace stepcast {
namespace {

BufferId copy_of(BlockBuilder& builder, const char* name, std::int64_t elements) {
  return builder.buffer(name, builder.fp8().copy_bytes(elements), builder.fp8().type);
}

KernelSize size_of_cast(std::int64_t elements, double bytes, std::int64_t launches) {
  return {elements, 0, bytes, launches};
}

// The largest element of a tensor, by a pass of its own. Parts of one tensor have one scale.
BufferId find_scale(BlockBuilder& builder, BufferId x, std::int64_t elements, bool backward,
                    bool cut) {
  const Shape& shape = builder.shape();
  const BufferId largest = builder.buffer("largest_element", 1, DataType::kFp32);
  const double bytes = static_cast<double>(elements) * static_cast<double>(shape.element);
  // One pass finds both, that of what is transformed too.
  const auto subject =
      builder.fp8().recipe->transforms ? CastSubject::kTransformedScale : CastSubject::kScale;
  builder.add(
      "find_scale",
      Cast{subject, backward, shape.type, DataType::kFp32, size_of_cast(elements, bytes, 2)}, {x},
      {largest});
  if (cut) {
    builder.collective("scale", CollectiveKind::kAllReduce, AxisGroup::kTensor, 1, DataType::kFp32,
                       {largest}, {largest}, CollectivePurpose::kScale);
  }
  return largest;
}

// A forward cast of one buffer in 16 bits or more, whose largest element it may know.
const Cast* forward_cast(const Operation& operation) {
  const auto* cast = std::get_if<Cast>(&operation.work);
  if (cast == nullptr || cast->backward || is_scaled(cast->from)) return nullptr;
  return operation.reads.empty() ? nullptr : cast;
}

std::vector<std::int32_t> count_readers(const Block& block) {
  std::vector<std::int32_t> out(block.buffers.size(), 0);
  for (const BlockPass& pass : block.passes) {
    for (const Operation& operation : pass.operations) {
      for (const BufferId id : operation.reads) ++out[id.index()];
    }
  }
  return out;
}

// Lets the norm do a cast of its output, which `readers` operations read; false if it cannot.
bool takes_over(const Fp8& fp8, Operation& norm, const Operation& operation, std::int32_t readers) {
  const Cast* cast = forward_cast(operation);
  const auto& own = std::get<Normalization>(norm.work);
  if (cast->subject == CastSubject::kOperand && cast->to == fp8.type && fp8.norm_writes &&
      readers == 1 && !own.residual) {
    // Both read or write the 16 bits that are no longer there.
    KernelSize& size = *size_of_kernel(norm.work);
    const double wide = static_cast<double>(size_of(cast->from) * cast->size.elements);
    size.bytes += cast->size.bytes - 2 * wide;
    norm.writes = operation.writes;
    return true;
  }
  constexpr std::int32_t kScaleAndCast = 2;
  const bool alone = readers == kScaleAndCast || !fp8.norms_into_products;
  if (cast->subject != CastSubject::kScale || !fp8.norm_finds_scale || !alone) return false;
  norm.writes.insert(norm.writes.begin(), operation.writes.begin(), operation.writes.end());
  return true;
}

}  // namespace

Operand operand_buffers(BlockBuilder& builder, const CopyRoom& room, bool backward,
                        bool by_columns) {
  Operand out;
  out.rows = copy_of(builder, backward ? "gradient_fp8" : "input_fp8", room.rows);
  if (!by_columns) return out;
  out.columns = out.rows;
  if (builder.fp8().has_two_copies()) {
    out.columns = copy_of(builder, backward ? "gradient_fp8_by_columns" : "input_fp8_by_columns",
                          room.columns);
  }
  return out;
}

Operand cast_operand(BlockBuilder& builder, BufferId x, std::int64_t elements, bool backward,
                     bool by_columns, bool cut, std::optional<CopyRoom> room) {
  const Shape& shape = builder.shape();
  const Fp8& fp8 = builder.fp8();
  const Operand out =
      operand_buffers(builder, room.value_or(CopyRoom{elements, elements}), backward, by_columns);
  std::vector<BufferId> copies{out.rows};
  if (out.columns.valid() && out.columns != out.rows) copies.push_back(out.columns);
  const double written =
      static_cast<double>(copies.size()) * static_cast<double>(fp8.copy_bytes(elements));
  BufferId largest;
  if (fp8.recipe->finds_scale) largest = find_scale(builder, x, elements, backward, cut);
  const double read = static_cast<double>(elements) * static_cast<double>(shape.element);
  builder.add(
      fp8.type == DataType::kFp4 ? "cast_to_fp4" : "cast_to_fp8",
      Cast{CastSubject::kOperand, backward, shape.type, fp8.type,
           size_of_cast(elements, read + written, static_cast<std::int64_t>(copies.size()))},
      {x, largest}, {out.rows});
  builder.last().writes = copies;
  return out;
}

BufferId gather_copy(BlockBuilder& builder, const char* name, BufferId share, std::int64_t elements,
                     BlockStream stream) {
  const BufferId whole = copy_of(builder, name, elements);
  builder.collective(name, CollectiveKind::kAllGather, AxisGroup::kTensor,
                     builder.fp8().copy_bytes(elements), builder.fp8().type, {share}, {whole},
                     CollectivePurpose::kActivations, stream);
  return whole;
}

BufferId transposed(BlockBuilder& builder, BufferId rows, std::int64_t elements, bool backward) {
  const Fp8& fp8 = builder.fp8();
  if (!fp8.transposes) return rows;
  const BufferId columns = copy_of(builder, "transposed_fp8", elements);
  builder.add(
      "transpose_fp8",
      Cast{CastSubject::kOperand, backward, fp8.type, fp8.type,
           size_of_cast(elements, 2 * width_of(fp8.type) * static_cast<double>(elements), 1)},
      {rows}, {columns});
  return columns;
}

bool makes_fp8(const Block& block, const Operation& operation) {
  if (operation.writes.empty()) return false;
  if (block.buffers[operation.writes.front().index()].type != DataType::kFp8) return false;
  const auto* cast = std::get_if<Cast>(&operation.work);
  return cast != nullptr ? cast->subject == CastSubject::kOperand && !is_scaled(cast->from)
                         : std::holds_alternative<Normalization>(operation.work);
}

void cast_in_norms(BlockBuilder& builder, const std::vector<BufferId>& apart) {
  // Casts to fp8 beside products in fp4 are those of attention.
  const Fp8& own = builder.fp8();
  const Fp8& fp8 = own.type == DataType::kFp4 ? builder.shape().attention_fp8 : own;
  if (!fp8 || (!fp8.norm_writes && !fp8.norm_finds_scale)) return;
  Block& block = builder.block();
  const std::vector<std::int32_t> readers = count_readers(block);
  for (BlockPass& pass : block.passes) {
    std::vector<Operation> kept;
    kept.reserve(pass.operations.size());
    std::map<BufferId, std::size_t> norms;  // by what they write: their place among those kept
    for (Operation& operation : pass.operations) {
      if (forward_cast(operation) != nullptr) {
        const BufferId x = operation.reads.front();
        const auto norm = norms.find(x);
        const bool taken = norm != norms.end() &&
                           takes_over(fp8, kept[norm->second], operation, readers[x.index()]);
        if (taken) continue;
      }
      const auto* norm = std::get_if<Normalization>(&operation.work);
      const bool fuses = norm != nullptr && !norm->backward &&
                         std::ranges::find(apart, operation.writes.back()) == apart.end();
      if (fuses) norms[operation.writes.back()] = kept.size();
      kept.push_back(std::move(operation));
    }
    pass.operations = std::move(kept);
  }
}

}  // namespace stepcast
