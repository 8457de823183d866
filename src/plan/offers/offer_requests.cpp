// SPDX-License-Identifier: Apache-2.0
#include "plan/offers/offer_requests.h"

#include <fmt/format.h>

#include <algorithm>

#include "cluster/cluster.h"
#include "cluster/named_cluster.h"
#include "core/json.h"
#include "core/json_tree.h"
#include "core/text/escape.h"

namespace stepcast {
namespace {

bool states_size(const SortedJson& cluster) {
  return cluster.contains("gpus") || cluster.contains("nodes");
}

std::string label_of(const SortedJson& cluster) {
  std::string out;
  if (const auto base = cluster.find("base"); base != cluster.end() && base->is_string()) {
    out = base->get<std::string>();
  } else {
    const auto name = cluster.find("name");
    return name != cluster.end() && name->is_string() ? name->get<std::string>() : "inline";
  }
  for (const auto& [key, value] : cluster.items()) {
    if (key == "base" || key == "nodes" || key == "gpus") continue;
    out +=
        fmt::format(" {}={}", key, value.is_string() ? value.get<std::string>() : json_text(value));
  }
  return out;
}

class Requests {
 public:
  Requests(const OfferQuestion& question, const std::string& topologies)
      : question_(question), topologies_(topologies) {}

  Result<std::vector<OfferRequest>> make(const SortedJson& scenario);

 private:
  SortedJson object_of(const SortedJson& cluster) const {
    return cluster.is_string() ? named_cluster(cluster.get<std::string>(), topologies_) : cluster;
  }
  std::int64_t gpus_of(const SortedJson& cluster) const;
  void add(SortedJson cluster, std::optional<std::int64_t> gpus);
  Errors add_counts(const SortedJson& cluster);

  const OfferQuestion& question_;
  const std::string& topologies_;
  std::vector<OfferRequest> out_;
};

// 0 when it cannot be read: whoever reads it again says why.
std::int64_t Requests::gpus_of(const SortedJson& cluster) const {
  const auto stated = cluster.find("gpus");
  if (stated != cluster.end() && stated->is_number_integer()) return stated->get<std::int64_t>();
  const auto document = JsonDocument::from(cluster, "");
  const Cluster read = read_cluster(document->root(), topologies_);
  return document->ok() ? read.gpus() : 0;
}

void Requests::add(SortedJson cluster, std::optional<std::int64_t> gpus) {
  if (gpus) set_gpus(cluster, *gpus, topologies_);
  OfferRequest request{json_text(cluster), label_of(cluster), question_.source, gpus.value_or(0)};
  const bool again = std::any_of(out_.begin(), out_.end(), [&](const OfferRequest& other) {
    return other.cluster == request.cluster;
  });
  if (!again) out_.push_back(std::move(request));
}

Errors Requests::add_counts(const SortedJson& cluster) {
  bool any = false;
  for (const std::int64_t count : question_.counts) {
    if (question_.max_gpus && count > *question_.max_gpus) continue;
    add(cluster, count);
    any = true;
  }
  if (any) return {};
  return {{ErrorCode::kIllegal,
           fmt::format("the least is {}, and at most {} are allowed", question_.counts.front(),
                       *question_.max_gpus),
           "", "--gpus", "a larger --max-gpus (plan.max_gpus)"}};
}

Result<std::vector<OfferRequest>> Requests::make(const SortedJson& scenario) {
  const auto own = scenario.find("cluster");
  const bool several = !question_.clusters.empty();
  if (!several && own == scenario.end()) {
    return failure({ErrorCode::kMissingKey, "no cluster is given", "", "--gpus",
                    "--clusters a,b, or --cluster NAME"});
  }
  // Sizes that are stated: the scenario's cluster serves those that state none.
  std::int64_t usual = 0;
  if (several && question_.counts.empty() && own != scenario.end()) {
    const SortedJson cluster = object_of(*own);
    if (cluster.is_object() && states_size(cluster)) usual = gpus_of(cluster);
  }
  bool counts_used = false;
  for (const SortedJson& stated : several ? question_.clusters : std::vector<SortedJson>{*own}) {
    const SortedJson cluster = object_of(stated);
    if (!cluster.is_object()) {
      return failure({ErrorCode::kWrongType, json_text(stated) + " is not a cluster", "",
                      question_.source, "a name like \"dgx-h100\" or an object"});
    }
    const bool own_size = several && states_size(cluster);
    if (!question_.counts.empty() && !own_size) {
      if (Errors errors = add_counts(cluster); !errors.empty()) return failure(std::move(errors));
      counts_used = true;
      continue;
    }
    std::optional<std::int64_t> gpus;
    if (!own_size && usual > 0) gpus = usual;
    if (question_.max_gpus) {
      const std::int64_t there = gpus ? *gpus : gpus_of(cluster);
      if (there > *question_.max_gpus) gpus = question_.max_gpus;
    }
    add(cluster, gpus);
  }
  if (!question_.counts.empty() && !counts_used) {
    return failure({ErrorCode::kIllegal, "every cluster states a size of its own", "", "--gpus",
                    "names without xN in " + question_.source});
  }
  return std::move(out_);
}

}  // namespace

Result<std::vector<OfferRequest>> offer_requests(const SortedJson& scenario,
                                                 const OfferQuestion& question,
                                                 const std::string& topologies_folder) {
  return Requests(question, topologies_folder).make(scenario);
}

}  // namespace stepcast
