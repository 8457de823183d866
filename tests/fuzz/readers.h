// SPDX-License-Identifier: Apache-2.0
// The targets, one function each.
#pragma once

#include <string_view>

namespace stepcast::fuzz {

void read_any_json(std::string_view text);
void override_keys(std::string_view text);
void read_toml(std::string_view text);
void read_yaml(std::string_view text);
void read_script(std::string_view text);
void import_settings(std::string_view text);
void read_model_config(std::string_view text);
void read_topology(std::string_view text);
void read_nccl_topology(std::string_view text);
void forecast_scenario(std::string_view text);
void forecast_settings(std::string_view text);
void forecast_run(std::string_view text);
void import_collectives(std::string_view text);
void import_kernel_tables(std::string_view text);
void import_profiler_trace(std::string_view text);
void read_cost_profile(std::string_view text);
void read_points(std::string_view text);
void read_rank_job(std::string_view text);
void read_rank_results(std::string_view text);
void read_calibrated_rank(std::string_view text);
void read_line_of_rank(std::string_view text);
void read_schedule(std::string_view text);
void read_log(std::string_view text);
void read_goal_schedule(std::string_view text);
void read_chakra_trace(std::string_view text);
void read_price_list(std::string_view text);
void read_recorded_suite(std::string_view text);
void read_check_baseline(std::string_view text);
void read_run_baseline(std::string_view text);

}  // namespace stepcast::fuzz
