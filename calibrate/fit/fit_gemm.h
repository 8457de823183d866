// SPDX-License-Identifier: Apache-2.0
// Fits the GEMM surface of one device to measured products.
#pragma once

#include <vector>

#include "calibrate/fit/fit_error.h"
#include "calibrate/fit/published.h"
#include "cluster/accelerator.h"
#include "cost/profile.h"

namespace stepcast {

// `table` with the efficiencies of its rows in fractions of the dense peak, in whatever unit they
// were. Nothing else may read rows of a table as efficiencies.
GemmTable in_fractions(GemmTable table, const Accelerator& accelerator);

struct FittedSurface {
  GemmFit fit;
  Neighbourhood neighbourhood;
  FitError form;                    // of the form alone, on the samples it was fitted to
  FitError held_out;                // of form and samples, on fifths of the samples kept from both
  FitError other_sizes;             // of form and samples, on rows whose sizes no sample has
  std::vector<GemmSample> samples;  // as fractions of the dense peak, of the product alone
};

// All of the form's shape is free; `start` gives what is fixed (memory_fraction, tiles, alignment).
// The neighbourhood is the one with the smallest held-out error.
FittedSurface fit_gemm(const Accelerator& accelerator, const std::vector<GemmSample>& samples,
                       const GemmFit& start);

// Forward products of a table of short runs. The form follows the whole table, its two sustained
// values what long products show of the power limit; what gradients cost is `start`'s. An fp8 row
// of such a table holds the cast of x, which a step has as a kernel of its own: it is fitted too,
// and left out of form and samples. `table` is in fractions.
FittedSurface fit_gemm_short_runs(const Accelerator& accelerator, const GemmTable& table,
                                  const GemmFit& start);

// How products of a training step differ from `form`'s: the roles, and the back-to-back factor.
// `samples` are of the device that `form` is of, one after the other as a step has them.
GemmFit fit_gemm_in_training(const Accelerator& accelerator, const std::vector<GemmSample>& samples,
                             const GemmFit& form);

// Fits the surface of a processor's core, in fp32. What describes launches and waves over SMs is
// fixed; the share of memory is free. Needs eight samples or more.
FittedSurface fit_gemm_on_core(const Accelerator& accelerator,
                               const std::vector<GemmSample>& samples, const GemmFit& start);

// Makes do with fewer samples, at least one: takes the family's form, with all its times scaled by
// one factor to the median.
FittedSurface scale_gemm(const Accelerator& accelerator, const std::vector<GemmSample>& samples,
                         const GemmFit& family, DataType precision);

// Fits scattered points: the shape is pulled towards `family`, and no sample bends the result.
FittedSurface fit_gemm_scattered(const Accelerator& accelerator,
                                 const std::vector<GemmSample>& samples, const GemmFit& family,
                                 DataType precision);

}  // namespace stepcast
