// SPDX-License-Identifier: Apache-2.0
// This project's own executor, which runs every layout with kernels of its own. Where it replicates
// parameters it reduces gradients as PyTorch's DistributedDataParallel does.
#include "layout/framework.h"
#include "layout/framework_rules.h"
#include "layout/frameworks/shared_rules.h"

namespace stepcast {
namespace {

Overlap overlap(const Training&, const Layout&) {
  return {.grad_reduce = true};
}  // a bucket when it is full

FrameworkRules rules(const Training& training, const Layout& layout) {
  FrameworkRules rules = half_precision_rules(training);
  rules.vocab_multiple = 128;  // whole tiles of the products with the table
  rules.fused_gradient_accumulation = true;
  rules.fuses_neighbours = true;
  rules.placeholder_gradients = false;  // it has no autograd
  rules.sums_on_host = true;            // shards of gradients leave as they are reduced
  if (layout.overlap.grad_reduce) {
    rules.bucket_elements = ddp_bucket_elements(training);
  }
  return rules;
}

bool offers(ScheduleKind) { return true; }

}  // namespace

extern const FrameworkTraits kNative = {
    .name = "native",
    .zero = 0,
    .compile = true,
    .gradients_fp32 = false,
    .overlap = overlap,
    .rules = rules,
    .offers = offers,
    .offers_pipeline_overlap = offers,
    .defers_head = true,
    .offload = {.parts = true, .parameters = true},
    .is_own_executor = true,
};

}  // namespace stepcast
