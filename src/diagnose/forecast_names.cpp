// SPDX-License-Identifier: Apache-2.0
#include "diagnose/forecast_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "layout/scenario.h"
#include "program/run_key.h"
#include "program/walk.h"

namespace stepcast {
namespace {

struct KindWord {
  std::string_view word;  // in small letters without marks
  CollectiveKind kind;
};
// PyTorch's names of collectives, and those that NCCL gives its kernels.
constexpr KindWord kKindWords[] = {{"allreduce", CollectiveKind::kAllReduce},
                                   {"allgather", CollectiveKind::kAllGather},
                                   {"reducescatter", CollectiveKind::kReduceScatter},
                                   {"alltoall", CollectiveKind::kAllToAll},
                                   {"broadcast", CollectiveKind::kBroadcast},
                                   {"sendrecv", CollectiveKind::kSendReceive},
                                   {"send", CollectiveKind::kSendReceive},
                                   {"recv", CollectiveKind::kSendReceive},
                                   {"crossdevicereduce", CollectiveKind::kAllReduce}};

std::string letters(std::string_view text) {
  std::string out;
  for (const unsigned char c : text) {
    if (std::isalpha(c) != 0) out += static_cast<char>(std::tolower(c));
  }
  return out;
}

std::optional<CollectiveKind> kind_in(std::string_view name) {
  const std::string small = letters(name.substr(0, name.find('(')));
  for (const KindWord& one : kKindWords) {
    if (small.find(one.word) != std::string::npos) return one.kind;
  }
  return std::nullopt;
}

}  // namespace

namespace {

std::int64_t products_of_micro_batch(const Program& program, const Role& role) {
  std::int64_t out = 0;
  for (const CountedRun& run : distinct_runs(role)) {
    for_each_operation(program, role, *run.first, [&](const Operation& one, BlockVisit) {
      if (product_of(one.work)) ++out;
    });
  }
  return out;
}

}  // namespace

ForecastNames::ForecastNames(const Scenario& scenario) : grid_(scenario.layout) {
  const Program program = lower(scenario);
  least_products_ = products_of_micro_batch(program, program.roles.front());
  for (const Role& role : program.roles) {
    least_products_ = std::min(least_products_, products_of_micro_batch(program, role));
  }
  std::map<Turned, std::vector<std::string>> by_shape;
  const auto add = [&](const Operation& one, const NamedOperation& named) {
    operations_.emplace(std::pair(std::string(one.name), name_of(one.phase)), named);
  };
  for_each_operation(program, [&](const Operation& one) {
    NamedOperation named{family_of(one)};
    if (const auto* collective = std::get_if<Collective>(&one.work)) {
      named.message = {collective->kind, collective->group};
    }
    if (const auto product = product_of(one.work);
        product && named.family == KernelFamily::kProducts) {
      named.product = product;
      // A weight is called as its forward product is; both gradients have the same shape.
      if (product->role != GemmRole::kForward) return add(one, named);
      auto& names = by_shape[turned({product->batch, product->m, product->n, product->k})];
      if (std::ranges::find(names, one.name) == names.end()) names.emplace_back(one.name);
    }
    add(one, named);
  });
  for (const Role& role : program.roles) {
    for (const Instruction& one : role.instructions) {
      const auto* call = one.as<CollectiveCall>();
      if (call == nullptr) continue;
      NamedOperation named;
      named.message = {call->message.kind, call->group};
      operations_.emplace(std::pair(std::string(one.name), name_of(one.phase())), named);
    }
  }
  for (const auto& [name, named] : operations_) {
    if (named.message) messages_.push_back(*named.message);
  }
  if (scenario.layout.pp > 1) {
    messages_.push_back({CollectiveKind::kSendReceive, AxisGroup::kPipeline});
  }
  std::ranges::sort(messages_);
  // clang 14 takes no subrange of libstdc++.
  messages_.erase(std::unique(messages_.begin(), messages_.end()), messages_.end());
  for (auto& [shape, names] : by_shape) {
    std::string joined;
    for (const std::string& name : names) joined += (joined.empty() ? "" : ", ") + name;
    products_.emplace(shape, joined);
  }
}

ForecastNames::Turned ForecastNames::turned(const ProductShape& shape) {
  Turned out{shape.m, shape.n, shape.k, 0};
  std::sort(out.begin(), out.begin() + 3);
  out[3] = shape.batch;
  return out;
}

const NamedOperation* ForecastNames::find(const std::string& name, const std::string& phase) const {
  const auto found = operations_.find({name, phase});
  return found == operations_.end() ? nullptr : &found->second;
}

std::optional<NamedMessage> ForecastNames::match(const TraceMessage& message,
                                                 const std::string& kernel, RankId rank) const {
  const auto kind = kind_in(message.collective.empty() ? kernel : message.collective);
  const std::optional<CollectiveKind> named = kind ? kind : kind_in(kernel);
  const NamedMessage* of_kind = nullptr;
  const NamedMessage* of_group = nullptr;
  std::size_t alike = 0;
  for (const NamedMessage& one : messages_) {
    const std::vector<RankId> members = grid_.members(one.group, rank);
    bool same = message.group_size < 0 || std::ssize(members) == message.group_size;
    if (std::ssize(message.ranks) == std::ssize(members)) {
      same = same && std::ranges::all_of(members, [&](RankId member) {
               return std::ranges::find(message.ranks, member.value) != message.ranks.end();
             });
    }
    if (!same || members.size() < 2) continue;
    if (of_group == nullptr) of_group = &one;
    if (named != one.kind) continue;
    ++alike;
    if (of_kind == nullptr) of_kind = &one;
  }
  // Nothing tells which of several it was where the trace names no group.
  if (of_kind != nullptr && (alike == 1 || message.group_size > 0)) return *of_kind;
  if (of_group != nullptr && named && message.group_size > 0) {
    return NamedMessage{*named, of_group->group};
  }
  if (named) return NamedMessage{*named, AxisGroup()};
  return std::nullopt;
}

std::string ForecastNames::products_of(const ProductShape& shape) const {
  const auto found = products_.find(turned(shape));
  return found == products_.end() ? "" : found->second;
}

bool ForecastNames::has_like(const ProductShape& shape) const {
  const Turned wanted = turned(shape);
  return std::ranges::any_of(products_, [&](const auto& one) {
    // Both are in order, so a merge counts what they have in common.
    std::array<std::int64_t, 3> common{};
    const auto end = std::set_intersection(wanted.begin(), wanted.begin() + 3, one.first.begin(),
                                           one.first.begin() + 3, common.begin());
    return end - common.begin() >= 2;
  });
}

std::string words_of(const NamedMessage& message) {
  std::string kind = name_of(message.kind);
  std::ranges::replace(kind, '_', '-');
  if (message.group == AxisGroup()) return kind;
  return fmt::format("{} over {}", kind, name_of(message.group));
}

}  // namespace stepcast
