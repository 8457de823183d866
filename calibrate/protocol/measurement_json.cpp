// SPDX-License-Identifier: Apache-2.0
#include "calibrate/protocol/measurement_json.h"

#include "core/json_tree.h"

namespace stepcast {
namespace {

constexpr double kLongest = 1e9;  // seconds: beyond it a duration is a mistake

const std::vector<std::string>& stop_names() {
  static const std::vector<std::string> names = {"not_yet", "precise", "sample_limit", "budget",
                                                 "disturbed"};
  return names;
}

double required_time(ObjectReader& reader, const char* key) {
  return reader.required(key) ? reader.number(key, 0, kLongest).value_or(0) : 0;
}

Rejected read_rejected(const JsonValue& value) {
  ObjectReader reader(value);
  Rejected out;
  out.forced_switch = reader.required_integer("forced_switch", 0);
  out.waited = reader.required_integer("waited", 0);
  out.throttled = reader.required_integer("throttled", 0);
  out.outlier = reader.required_integer("outlier", 0);
  reader.finish();
  return out;
}

}  // namespace

const char* name_of(Stop stop) { return stop_names()[static_cast<std::size_t>(stop)].c_str(); }

Json measurement_json(const Measurement& measurement) {
  Json out = {{"median_s", measurement.median_s},
              {"mean_s", measurement.mean_s},
              {"deviation_s", measurement.deviation_s},
              {"halves", measurement.halves},
              {"p10_s", measurement.p10_s},
              {"p90_s", measurement.p90_s}};
  if (measurement.interval_s) {
    out["low_s"] = measurement.interval_s->low;
    out["high_s"] = measurement.interval_s->high;
  }
  out["n"] = measurement.n;
  out["calls_per_sample"] = measurement.calls_per_sample;
  const Rejected& rejected = measurement.rejected;
  out["rejected"] = {{"forced_switch", rejected.forced_switch},
                     {"waited", rejected.waited},
                     {"throttled", rejected.throttled},
                     {"outlier", rejected.outlier}};
  out["stopped"] = name_of(measurement.stopped);
  return out;
}

Measurement read_measurement(const JsonValue& value) {
  ObjectReader reader(value);
  Measurement out;
  out.median_s = required_time(reader, "median_s");
  out.mean_s = required_time(reader, "mean_s");
  out.deviation_s = required_time(reader, "deviation_s");
  out.halves = reader.number("halves", 1, kLongest).value_or(1);
  out.p10_s = required_time(reader, "p10_s");
  out.p90_s = required_time(reader, "p90_s");
  const auto low = reader.number("low_s", 0, kLongest);
  const auto high = reader.number("high_s", 0, kLongest);
  if (low && high) out.interval_s = MedianInterval{*low, *high};
  out.n = reader.required_integer("n", 0);
  out.calls_per_sample = reader.required_integer("calls_per_sample", 1);
  if (const auto rejected = reader.required("rejected")) out.rejected = read_rejected(*rejected);
  if (reader.required("stopped")) {
    out.stopped = static_cast<Stop>(reader.choice("stopped", stop_names()).value_or(0));
  }
  reader.finish();
  return out;
}

}  // namespace stepcast
