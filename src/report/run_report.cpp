// SPDX-License-Identifier: Apache-2.0
#include "report/run_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/json_tree.h"
#include "economics/batch_notes.h"
#include "economics/run_simulation.h"
#include "report/document_form.h"
#include "report/number_text.h"
#include "report/prediction_json.h"
#include "report/run_columns.h"
#include "report/text_table.h"

namespace stepcast {
namespace {

constexpr double kJoulesPerKwh = 3.6e6;

std::string whole_text(double count) {  // all digits
  return number_text(count, 1 + static_cast<int>(std::log10(std::max(count, 1.0))));
}

std::string within(bool met, double chance, const char* what, const std::string& limit) {
  return fmt::format("{} the {} of {} (chance {})", met ? "within" : "MISSES", what, limit,
                     chance_text(chance));
}

// The days of each part, or a word on what no part says.
void add_beside(const RunTerms& terms, const RunLength& length, std::vector<std::string>& out) {
  if (length.beside.empty()) {
    if (*terms.tokens < kTokensOfWholeRuns) return;
    std::string line = fmt::format(
        "bring-up, evaluation, failed starts and a stage on long sequences are not in it: whole "
        "runs took {} to {} times their steps",
        number_text(kLeastOfWholeRuns, 3), number_text(kMostOfWholeRuns, 3));
    if (length.dollars) {
      line +=
          fmt::format(", here {} to {}", dollars_text(kLeastOfWholeRuns * length.dollars->value),
                      dollars_text(kMostOfWholeRuns * length.dollars->value));
    }
    out.push_back(line + " (run.beside states yours)");
    return;
  }
  std::string parts;
  Seconds training(length.wall_s.value);
  for (const TimeBeside& part : length.beside) {
    parts += fmt::format(", {} {}", part.label, duration_text(part.wall));
    training -= part.wall;
  }
  out.push_back(fmt::format("training takes {} of it{}", duration_text(training), parts));
}

void add_length(const RunTerms& terms, const RunLength& length, std::vector<std::string>& out) {
  const auto days = [](double s) { return duration_text(Seconds(s)); };
  out.push_back(fmt::format("{} tokens: {} steps, {} ({} to {}, central 90 %)",
                            parameters_text(static_cast<std::int64_t>(*terms.tokens)),
                            whole_text(length.steps), days(length.wall_s.value),
                            days(length.wall_s.low), days(length.wall_s.high)));
  if (length.meets_deadline) {
    out.back() += ", " + within(*length.meets_deadline, *length.deadline_chance, "deadline",
                                duration_text(*terms.deadline));
  }
  std::string cost = fmt::format("{} GPU-hours rented", number_text(length.gpu_hours));
  if (length.dollars) {
    cost = fmt::format("{} ({} to {}): {} at ${:.2f}", dollars_text(length.dollars->value),
                       dollars_text(length.dollars->low), dollars_text(length.dollars->high), cost,
                       *terms.dollars_per_gpu_hour);
  }
  if (length.least_billed) {
    cost += fmt::format(", billed for the least of {}", duration_text(terms.least_rental));
  }
  if (length.within_budget) {
    cost += ", " + within(*length.within_budget, *length.budget_chance, "budget",
                          dollars_text(*terms.budget));
  }
  out.push_back(std::move(cost));
  add_beside(terms, length, out);
  if (length.energy) {
    out.push_back(fmt::format("{} MWh with every GPU at its power limit",
                              number_text(length.energy->value() / kJoulesPerKwh / 1000, 3)));
  }
}

}  // namespace

std::vector<WallShare> wall_share_list(const WallShares& shares) {
  return {{"useful", "steps that count", shares.useful},
          {"stragglers", "slow nodes", shares.stragglers},
          {"checkpoint", "checkpoints", shares.checkpoint},
          {"rework", "work done again", shares.rework},
          {"restart", "restarts", shares.restart},
          {"waiting", "waiting for nodes", shares.waiting},
          {"reduced", "fewer replicas", shares.reduced},
          {"checks", "checks of results", shares.checks}};
}

std::vector<std::string> run_lines(const RunTerms& terms, const RunForecast& run) {
  std::vector<std::string> out;
  if (run.length) {
    add_length(terms, *run.length, out);
  } else if (terms.tokens) {
    out.push_back("the run never ends: a restart is interrupted before it gets through");
  }
  if (run.dollars_per_million_tokens) {
    out.push_back(
        fmt::format("{} per million tokens", dollars_text(*run.dollars_per_million_tokens)));
  } else if (!terms.dollars_per_gpu_hour) {
    out.push_back(price_text(terms));
  }
  if (const std::string billed = billed_text(terms); !billed.empty()) out.push_back(billed);
  out.push_back(fmt::format("goodput {} ({} to {}, central 90 %)", percent_text(run.goodput.value),
                            percent_text(run.goodput.low), percent_text(run.goodput.high)));
  if (run.between_interruptions) {
    out.push_back(fmt::format(
        "an interruption every {} on average{}", duration_text(*run.between_interruptions),
        run.length ? fmt::format(", {} in all", number_text(run.length->interruptions, 3)) : ""));
  }
  if (run.interval) {
    std::string line =
        fmt::format("a checkpoint of {} GB takes {}; one every {}",
                    number_text(terms.checkpoint.value() / 1e9, 3),
                    duration_text(terms.hazards.process.checkpoint), duration_text(*run.interval));
    if (run.young) {
      line +=
          fmt::format(" (Young {}, Daly {})", duration_text(*run.young), duration_text(*run.daly));
    }
    out.push_back(std::move(line));
  }
  if (run.spares_needed > terms.hazards.spare_nodes && run.shares.waiting > 0) {
    out.push_back(fmt::format("{} spare nodes would keep waiting below 1 %", run.spares_needed));
  }
  return out;
}

namespace {

TextTable shares_table(const RunForecast& run, bool bars) {
  std::vector<Column> columns{{"wall time", Align::kLeft}, {"share"}};
  if (bars) columns.push_back({"", Align::kLeft});
  TextTable table(std::move(columns));
  for (const WallShare& share : wall_share_list(run.shares)) {
    if (share.share == 0) continue;
    std::vector<std::string> row{share.label, percent_text(share.share)};
    if (bars) row.push_back(bar_text(0, share.share, kBarWidth));
    table.add_row(std::move(row));
  }
  return table;
}

TextTable assumptions_table(const RunTerms& terms) {
  TextTable table({{"assumed", Align::kLeft}, {"is", Align::kLeft}, {"because", Align::kLeft}});
  for (const Assumption& a : terms.assumptions) table.add_row({a.key, a.value, a.basis});
  return table;
}

void put_spread(Json& out, const std::string& name, const std::string& unit,
                const FigureRange& spread) {
  put(out, (name + unit).c_str(), spread.value);
  put(out, (name + "_low" + unit).c_str(), spread.low);
  put(out, (name + "_high" + unit).c_str(), spread.high);
}

void put_length(Json& out, const RunTerms& terms, const RunLength& length) {
  put(out, "tokens", *terms.tokens);
  put(out, "steps", length.steps);
  put(out, "training_time_s", length.training.value());
  put_spread(out, "wall_time", "_s", length.wall_s);
  for (const TimeBeside& part : length.beside) {
    put(out["beside"], (std::string(part.key) + "_s").c_str(), part.wall.value());
  }
  put(out, "interruptions", length.interruptions);
  put(out, "gpu_hours", length.gpu_hours);
  if (length.dollars) put_spread(out, "cost", "_usd", *length.dollars);
  if (length.energy) put(out, "energy_kwh", length.energy->value() / kJoulesPerKwh);
  if (length.meets_deadline) {
    put(out, "deadline_s", terms.deadline->value());
    out["meets_deadline"] = *length.meets_deadline;
    put(out, "deadline_chance", *length.deadline_chance);
  }
  if (length.within_budget) {
    put(out, "budget_usd", *terms.budget);
    out["within_budget"] = *length.within_budget;
    put(out, "budget_chance", *length.budget_chance);
  }
}

void put_checkpoints(Json& out, const RunTerms& terms, const RunForecast& run) {
  Json& object = out["checkpoint"] = Json::object();
  put(object, "bytes", terms.checkpoint.value());
  put(object, "time_s", terms.hazards.process.checkpoint.value());
  if (run.interval) put(object, "interval_s", run.interval->value());
  if (run.young) put(object, "young_interval_s", run.young->value());
  if (run.daly) put(object, "daly_interval_s", run.daly->value());
}

void add_numbers(const Json& object, const std::string& path,
                 std::vector<std::pair<std::string, double>>& out) {
  for (const auto& [key, value] : object.items()) {
    const std::string title = path + "_" + key;
    if (value.is_object()) add_numbers(value, title, out);
    if (value.is_number()) out.emplace_back(title, value.get<double>());
  }
}

}  // namespace

Written run_table(const RunTerms& terms, const RunForecast& run, Form form) {
  const bool markdown = form == Form::kMarkdown;
  Written out = heading("The run", form);
  for (const std::string& one : run_lines(terms, run)) {
    out += markdown ? bullet(one, form) : line(one, form);
  }
  out += paragraph_end(form) + shown(shares_table(run, !markdown), form);
  if (!terms.assumptions.empty()) {
    out += paragraph_end(form) + shown(assumptions_table(terms), form);
  }
  out += paragraph_end(form);
  for (const std::string& note : batch_notes(terms.tokens_per_step)) {
    out += markdown ? bullet(note, form) : line("note: " + note, form);
  }
  return out;
}

Json run_object(const RunTerms& terms, const RunForecast& run) {
  Json out = Json::object();
  put_spread(out, "goodput", "", run.goodput);
  Json& shares = out["wall_shares"] = Json::object();
  for (const WallShare& share : wall_share_list(run.shares)) put(shares, share.key, share.share);
  if (run.between_interruptions) {
    put(out, "between_interruptions_s", run.between_interruptions->value());
  }
  put_checkpoints(out, terms, run);
  out["spare_nodes"] = terms.hazards.spare_nodes;
  out["spare_nodes_for_1_percent_waiting"] = run.spares_needed;
  out["rented_gpus"] = terms.rented_gpus;
  out["rented_together"] = terms.rented_together;
  if (terms.least_rental.value() > 0) put(out, "least_rental_s", terms.least_rental.value());
  if (terms.dollars_per_gpu_hour) put(out, "usd_per_gpu_hour", *terms.dollars_per_gpu_hour);
  if (run.dollars_per_million_tokens) {
    put(out, "usd_per_million_tokens", *run.dollars_per_million_tokens);
  }
  if (run.length) put_length(out, terms, *run.length);
  out["assumptions"] = Json::array();
  for (const Assumption& a : terms.assumptions) {
    out["assumptions"].push_back({{"key", a.key}, {"value", a.value}, {"basis", a.basis}});
  }
  out["notes"] = batch_notes(terms.tokens_per_step);
  return out;
}

std::vector<std::pair<std::string, double>> run_columns(const RunTerms& terms,
                                                        const RunForecast& run) {
  std::vector<std::pair<std::string, double>> out;
  add_numbers(run_object(terms, run), "run", out);
  return out;
}

Written simulation_text(const RunTerms& terms, const RunForecast& run, std::uint64_t seed) {
  constexpr double kInterruptions = 20'000;
  if (!run.between_interruptions || !(run.shares.useful > 0)) return {};
  const Seconds horizon = kInterruptions * *run.between_interruptions;
  const SimulatedRun drawn = simulate_run(terms.hazards, *run.interval, horizon, seed);
  return line(
      fmt::format("goodput {} by the closed form, {} drawn event by event ({} interruptions)",
                  percent_text(run.shares.useful, 2), percent_text(drawn.shares.useful, 2),
                  drawn.interruptions),
      Form::kText);
}

}  // namespace stepcast
