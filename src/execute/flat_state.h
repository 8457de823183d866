// SPDX-License-Identifier: Apache-2.0
// Parameters, gradients and optimizer states of a rank, whole or sharded as the layout's ZeRO stage
// says, on the device or in host memory as its offload says, and where each parameter of each block
// lies among them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "execute/fp8_matrices.h"
#include "execute/host_states.h"
#include "execute/initial_weights.h"
#include "execute/kernel_arrays.h"
#include "execute/shards.h"
#include "execute/windows.h"
#include "program/element_range.h"

namespace stepcast {

struct Parameter;
struct Program;
struct Role;
struct Scenario;
struct StatePart;

// One parameter of one block of the role.
struct PlacedParameter {
  std::int64_t layer;  // decoder layer of the model, kEmbeddingLayer, or kHeadLayer and below
  const Parameter* parameter;
  ElementRange range;  // among the role's flat elements
};
std::vector<PlacedParameter> placed_parameters(const Scenario& scenario, const Program& program,
                                               const Role& role);

class FlatState {
 public:
  FlatState(const Scenario& scenario, const Role& role, const RankGrid& grid, RankId rank,
            Memory& memory);

  void initialise(const Scenario& scenario, const Program& program, const Role& role,
                  std::uint64_t seed, const ModelPart& part, const std::function<void()>& alive);

  bool shards_parameters() const { return shards_parameters_; }
  bool shards_gradients() const { return shards_gradients_; }
  const Shards& shards() const { return shards_; }

  // Whole ones: of the state itself, or of an open window.
  Array parameters(std::int64_t element);
  GradientPlace gradient(ElementRange parameter);
  Array gradients(std::int64_t element);
  Fp8Matrices* fp8_matrices() { return fp8_matrices_ ? &*fp8_matrices_ : nullptr; }
  Windows& parameter_windows() { return parameter_windows_; }
  Windows& gradient_windows() { return gradient_windows_; }

  // Owned elements, where the device keeps them.
  Array owned_parameters(const OwnedPiece& piece);
  Array owned_gradients(const OwnedPiece& piece);
  Array owned_weights(const OwnedPiece& piece);  // fp32: the master weights where there are
  std::vector<float> weights_on_host(const OwnedPiece& piece);  // of any owned elements
  // Whole elements of `range` are at `whole`: adds the owned ones to the shard of gradients, or
  // copies the owned parameters to their places. May be called beside anything else. `shard` has
  // parameters, and `leaving` gets gradients, that the host keeps: one after the other.
  void add_to_shard(ElementRange range, Array whole, Array leaving = {});
  void copy_to_window(ElementRange range, Array whole, Array shard = {});

  // Elements whose states lie in host memory, with their places there; null where none do.
  HostStates* host() { return host_ ? &*host_ : nullptr; }
  std::vector<OwnedPiece> on_host(ElementRange range) const { return on_host_.within(range); }
  std::vector<OwnedPiece> on_host(const StatePart& part) const;
  bool parameters_on_host() const { return parameters_on_host_; }
  bool gradients_leave() const { return gradients_leave_; }  // as they are reduced

  void zero_gradients();
  // *total += the squares of owned gradients outside `excluded` (those that other ranks count).
  void add_squares(const std::vector<ElementRange>& excluded, double* total);
  // This and the next are of the device's states.
  void scale_gradients(float factor);
  // Gradients are clipped to what `squared_norm` says (in the device's memory; null: not at all).
  // With `rounds` parameters get their master weights, as by round_weights().
  void update(const AdamW& settings, std::int64_t step, const float* squared_norm, bool rounds);
  void round_weights();  // master weights to parameters
  // Biases of routers, which update() leaves alone, go one step against the sign of their
  // gradients.
  void balance(bool rounds);

 private:
  void set_weights(ElementRange range, const std::vector<float>& whole);
  // Whose gradients the device keeps.
  const Shards& with_gradients() const { return gradients_leave_ ? on_device_ : shards_; }
  Kernels& kernels() { return device_.kernels(); }

  Memory& memory_;
  Device& device_;
  bool shards_states_, shards_gradients_, shards_parameters_;
  bool parameters_on_host_, gradients_leave_ = false;
  Shards shards_;
  Shards on_host_, on_device_;  // by who updates them
  std::optional<HostStates> host_;
  Tensor parameters_, gradients_, moment1_, moment2_, master_;  // no master: fp32 parameters
  Windows parameter_windows_, gradient_windows_;
  std::optional<Fp8Matrices> fp8_matrices_;  // where whole parameters stay
  std::vector<ElementRange> balancing_;      // what balance() moves
};

}  // namespace stepcast
