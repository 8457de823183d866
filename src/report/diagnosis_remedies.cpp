// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "report/diagnosis_report.h"

namespace stepcast {
namespace {

struct Remedy {
  GapCause cause;
  const char* slower;
  const char* faster = nullptr;  // where the run is better than its forecast; else the same
};

constexpr std::array kRemedies{
    Remedy{GapCause::kBatch,
           "compare batch, micro-batch, sequence length and layers of the run with the scenario"},
    Remedy{GapCause::kStraggler,
           "look at that GPU's clocks, temperature and errors, at its host's load, or exchange the "
           "machine"},
    Remedy{GapCause::kClocks,
           "look at clocks and power (nvidia-smi -q -d PERFORMANCE); where they are as they should "
           "be, fit a profile from the trace (--fit)",
           "fit a profile from the trace (--fit): the one in use is slower"},
    Remedy{GapCause::kKernels,
           "compare libraries and versions, shapes and number types; where the kernel is the one "
           "that is wanted, fit a profile from the trace (--fit)",
           "fit a profile from the trace (--fit)"},
    Remedy{GapCause::kExtraKernels, "fuse or compile them, or find what launches them"},
    Remedy{GapCause::kSlowLink,
           "run nccl-tests on these ranks alone, and look for a NIC, rail or link that is down, "
           "and at NCCL's settings",
           "fit a profile from the trace (--fit): the links in use are slower"},
    Remedy{GapCause::kMoreBytes,
           "compare layout.zero, number types of gradients, buckets and the batch with the run"},
    Remedy{GapCause::kOtherMessages,
           "compare layout.zero, shard_group and parallel degrees with the run"},
    Remedy{GapCause::kLateMessages,
           "launch earlier: CUDA graphs, fewer small kernels, prefetch of parameters, more cores "
           "for the process"},
    Remedy{GapCause::kRankWaits,
           "make the others as early: balance stages, experts and sequence lengths, and look at "
           "the rank that comes last"},
    Remedy{GapCause::kLostOverlap,
           "look at the settings of overlap, CUDA_DEVICE_MAX_CONNECTIONS, bucket sizes and stream "
           "priorities"},
    Remedy{GapCause::kMoreOverlap, "say in the scenario what the run overlaps (layout.overlap)"},
    Remedy{GapCause::kBesideMessages, "whatever makes the communication as fast as its forecast"},
    Remedy{GapCause::kHost,
           "CUDA graphs, torch.compile or fused kernels, a faster data loader, manual garbage "
           "collection, more cores for the process"},
    Remedy{GapCause::kBubble,
           "compare schedule, chunks and micro-batches with the run, and the stages' loads"},
    Remedy{GapCause::kCopies, "pin host memory, copy beside kernels, offload less"},
    Remedy{GapCause::kStarts, "CUDA graphs, and fewer, larger kernels"},
    Remedy{GapCause::kOtherStreams, "look for events and locks between streams"},
    Remedy{GapCause::kUnknown,
           "profile with ProfilerActivity.CPU, too: launches tell what a kernel waited for"}};

}  // namespace

std::string gap_remedy(const Gap& gap) {
  // The host has nothing to launch earlier while it waits itself.
  if (gap.cause == GapCause::kHost && gap.ratio > kHostWaits) {
    return "take out calls that wait for the GPU: .item(), .cpu(), prints, synchronize, checks of "
           "gradients";
  }
  const auto found = std::ranges::find(kRemedies, gap.cause, &Remedy::cause);
  if (found == kRemedies.end()) return "";
  return gap.seconds < 0 && found->faster != nullptr ? found->faster : found->slower;
}

}  // namespace stepcast
