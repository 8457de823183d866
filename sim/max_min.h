// SPDX-License-Identifier: Apache-2.0
// Weighted max-min fairness: activities a with rate x_a, bound b_a, share s_a, uses (resource r,
// weight w). Sum over a of w_ar x_a <= C_r for each r, x_a <= b_a; maximise the smallest x_a/s_a,
// then the next smallest, and so on (progressive filling; Bertsekas & Gallager, section 6.5.2).
//
// The rates do not depend on the order in which activities, resources and uses are given, to the
// last bit: every sum is taken in an order that the summed values alone decide.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace stepcast::sim {

// A system is built piece by piece: clear, add, solve once, read the rates. A resource without
// capacity left gives its users rate 0. Reused, the solver allocates nothing.
class MaxMinSolver {
 public:
  void clear();
  std::int32_t add_resource(double capacity);
  std::int32_t add_activity(double bound, double share);
  void add_use(std::int32_t resource, double weight);  // of the activity added last
  void solve();
  double rate(std::int32_t activity) const;

 private:
  struct Resource {
    double capacity;
    double used = 0;           // by settled activities
    std::int32_t users = 0;    // uses of it
    std::int32_t begin = 0;    // into terms_
    std::int32_t version = 0;  // of its latest entry in fullest_
    std::int32_t round = -1;   // in which it was last touched
  };
  struct Claim {
    double bound;
    double share;
    double rate = 0;
    std::int32_t begin;       // into uses_
    std::int32_t round = -1;  // in which its rate was settled; -1: still rising
  };
  struct ClaimUse {
    std::int32_t resource;
    double weight;
  };
  struct Term {
    double weight;
    std::int32_t claim;
  };
  struct Fill {  // the level x/s at which the resource is full
    double level;
    std::int32_t resource;
    std::int32_t version;
  };

  void group_by_resource();
  void order_by_bound();
  void refresh(std::int32_t resource, double level);
  void settle(std::int32_t claim, double rate, std::int32_t round);
  void drop_stale();
  std::span<const ClaimUse> uses_of(std::int32_t claim) const;
  std::span<const Term> terms_of(const Resource& resource) const;

  std::vector<Resource> resources_;
  std::vector<Claim> claims_;
  std::vector<ClaimUse> uses_;
  std::vector<Term> terms_;            // by resource, in the order of its sums
  std::vector<std::int32_t> order_;    // claims by bound/share
  std::vector<Fill> fullest_;          // heap, lowest level first
  std::vector<std::int32_t> touched_;  // resources whose users were settled in this round
  std::int32_t round_ = 0;
  std::size_t settled_ = 0;
};

}  // namespace stepcast::sim
