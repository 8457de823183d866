// SPDX-License-Identifier: Apache-2.0
// A scenario resolved: model, cluster, training and layout with every default filled in, all of it
// legal. layout/read_scenario.h makes it of a file.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cluster/cluster.h"
#include "layout/run_settings.h"
#include "layout/settings.h"
#include "model/model.h"

namespace stepcast {

struct Scenario;

// Another job on other nodes of the fabric, which runs all the time that the first one does.
struct OtherJob {
  std::string nodes;  // "2-3,6"
  std::shared_ptr<const Scenario> scenario;
};

struct Scenario : Settings {
  Model model;
  Cluster cluster;
  std::optional<RunSettings> run;
  std::shared_ptr<const Cluster> all_islands;  // `cluster` is one of them; null: it is the whole
  std::string profile;  // "" = the device's own, "none" = data sheet, or a name or path

  // With other jobs `cluster` has the nodes that they leave, and this is all of it.
  std::shared_ptr<const Cluster> fabric;
  std::vector<OtherJob> other_jobs;
  const Cluster& whole_cluster() const { return all_islands ? *all_islands : cluster; }
  std::int64_t islands() const { return all_islands ? training.outer.islands : 1; }
  std::int64_t micro_batches() const {
    return training.global_batch / (layout.micro_batch * layout.dp);
  }
  std::int64_t padded_vocab() const;
  // Trained by the whole model, and those of them that a token meets.
  std::int64_t adapter_elements() const;
  std::int64_t active_adapter_elements() const;
  // Two stages hold and train the same table: of a tied head, or of prediction modules, which look
  // tokens up beside the head.
  bool shares_trained_table() const {
    const bool is_shared = model.tied_embeddings || (model.mtp_layers > 0 && layout.pp > 1);
    return is_shared && !training.trains_adapters();
  }
};

}  // namespace stepcast
