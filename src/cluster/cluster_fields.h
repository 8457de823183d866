// SPDX-License-Identifier: Apache-2.0
// The keys of docs/formats/cluster.md, read over a ClusterSpec: what a file leaves out keeps the
// value it had, so a scenario's overrides are read by the same functions as the base they change.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stepcast {

class ObjectReader;
class Topology;
struct Accelerator;
struct ClusterSpec;
struct FailedPart;

// Reads what a regular and an irregular cluster have in common: names, accelerator, and facts that
// software sees.
void read_identity_fields(ObjectReader& reader, const std::string& topologies_folder,
                          ClusterSpec& spec);

// The shape of a regular cluster: node, NICs, fabric.
void read_shape_fields(ObjectReader& reader, ClusterSpec& spec);

// Whether one library speaks for both: NCCL and RCCL do not meet in a collective.
bool can_work_together(const Accelerator& one, const Accelerator& other);

// "nodes" and "gpus"; afterwards both agree and lie within kMaxGpus, or an error is reported.
void read_size_fields(ObjectReader& reader, ClusterSpec& spec);

// The keys without which a description that stands on no base is not a cluster.
void require_shape_fields(ObjectReader& reader, const ClusterSpec& spec);

// `fail` and `degrade`, each a list or one text with commas, the latter also an object: takes what
// has failed out of `whole` and returns it, as it is read back. What the base's own file says of
// failed parts holds where the reader says nothing. Errors: parts that are not there, and what is
// then cut off.
std::vector<FailedPart> read_failed(ObjectReader& reader, const ClusterSpec& base, Topology& whole);

// Does it for a regular cluster, whose other keys are read and sound; and `accelerator_of`, which
// names GPUs that are not of the cluster's accelerator.
void read_part_fields(ObjectReader& reader, const std::string& topologies_folder,
                      ClusterSpec& spec);

// An accelerator under the key "accelerator", by name or written out; nothing where there is none.
std::optional<Accelerator> read_accelerator_key(ObjectReader& reader,
                                                const std::string& topologies_folder);

// The model of GPUs that are of this accelerator (GpuKind), listed in `spec` where it is new.
std::int32_t model_of(const Accelerator& accelerator, ClusterSpec& spec);

// Values that are fine alone and contradict each other.
void check_shape(ObjectReader& reader, const ClusterSpec& spec);

}  // namespace stepcast
