// SPDX-License-Identifier: Apache-2.0
// All of the library: forecasts, plans, comparisons, checks, clusters and the engine.
#pragma once

#include "stepcast/check.h"
#include "stepcast/compare.h"
#include "stepcast/data.h"
#include "stepcast/engine.h"
#include "stepcast/errors.h"
#include "stepcast/launch_files.h"
#include "stepcast/plan.h"
#include "stepcast/prediction.h"
#include "stepcast/scenario.h"
#include "stepcast/suites.h"
#include "stepcast/topology.h"
