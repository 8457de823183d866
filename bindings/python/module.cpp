// SPDX-License-Identifier: Apache-2.0
// The module stepcast._core: the library's public face (src/stepcast) as Python calls it. Scenarios
// come in and answers go out as JSON text; stepcast/*.py makes dicts of them.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "interruptible.h"
#include "raised_errors.h"
#include "stepcast/stepcast.h"

namespace stepcast::python {
namespace {

namespace py = pybind11;

// Errors become an exception.
template <class Answer>
Answer answer_of(Result<Answer> result) {
  if (!result) raise(result.error());
  return std::move(*result);
}
template <class Answer>
Answer answer_of(Result<Answer> result, const std::string& stated) {
  if (!result) raise(result.error(), stated);
  return std::move(*result);
}

// The formats that every answer has.
template <class Answer>
py::class_<Answer> add_answer(py::module_& module, const char* name) {
  return py::class_<Answer>(module, name)
      .def("json", &Answer::json)
      .def("csv", &Answer::csv)
      .def("text", &Answer::text)
      .def("markdown", &Answer::markdown);
}

void add_data(py::module_& module) {
  using api::Data;
  py::class_<Data>(module, "Data")
      .def_static("shipped", &Data::shipped)
      .def_static("open", [](const std::string& folder) { return answer_of(Data::open(folder)); })
      .def("list", [](const Data& data, const std::string& topic,
                      const std::string& filter) { return answer_of(data.list(topic, filter)); })
      .def("suites", [](const Data& data) { return answer_of(api::shipped_suites(data)); });
}

void add_scenario(py::module_& module) {
  using api::Scenario;
  py::class_<Scenario>(module, "Scenario")
      .def_static("parse",
                  [](const api::Data& data, const std::string& json, const std::string& name) {
                    return answer_of(Scenario::parse(data, json, name));
                  })
      .def_static("load",
                  [](const api::Data& data, const std::string& file) {
                    return answer_of(Scenario::load(data, file));
                  })
      .def("with_value",
           [](const Scenario& scenario, const std::string& path, const std::string& value) {
             return answer_of(scenario.with(path, value), scenario.json());
           })
      .def("named", &Scenario::named)
      .def("errors", [](const Scenario& scenario) { return rows_of(scenario.errors()); })
      .def("json", &Scenario::json)
      .def("resolved", [](const Scenario& scenario) {
        return answer_of(scenario.resolved(), scenario.json());
      });
}

api::Prediction predict(const api::Scenario& scenario, const std::vector<std::string>& what_if,
                        bool timeline, bool explain, bool unfolded, bool contention,
                        bool causal_flops, const std::string& prices, std::uint64_t seed) {
  api::PredictOptions options{what_if,      timeline, explain, unfolded, contention,
                              causal_flops, prices,   seed,    {}};
  return answer_of(interruptible([&](const std::function<bool()>& stop) {
                     options.stop = stop;
                     return api::predict(scenario, options);
                   }),
                   scenario.json());
}

void add_prediction(py::module_& module) {
  add_answer<api::Prediction>(module, "Prediction")
      .def("html", [](const api::Prediction& made) { return answer_of(made.html()); })
      .def("trace", [](const api::Prediction& made) { return answer_of(made.trace()); })
      .def("memory_timeline",
           [](const api::Prediction& made) { return answer_of(made.memory_timeline()); });
  module.def("predict", &predict, py::arg("scenario"), py::kw_only(), py::arg("what_if"),
             py::arg("timeline"), py::arg("explain"), py::arg("unfolded"), py::arg("contention"),
             py::arg("causal_flops"), py::arg("prices"), py::arg("seed"));
}

// A caller is told this between two rounds of a search.
py::dict dict_of(const api::PlanProgress& progress) {
  py::dict out;
  out["elapsed_s"] = progress.elapsed.value();
  out["bounded"] = progress.bounded;
  out["replayed"] = progress.replayed;
  out["best_step_time_s"] = progress.best.value();
  out["bound_step_time_s"] = progress.bound.value();
  return out;
}

api::Plan plan(const api::Scenario& scenario, std::int64_t top, std::int64_t replays, int front,
               bool prove, double time_limit_s, const std::string& objective, double memory_margin,
               double risk, const std::string& prices,
               const std::vector<std::map<std::string, std::string>>& why_not, int threads,
               const py::object& progress) {
  api::PlanOptions options;
  options.top = top;
  options.replays = replays;
  options.front = front;
  options.prove = prove;
  options.time_limit = Seconds(time_limit_s);
  options.objective = objective;
  options.memory_margin = memory_margin;
  options.risk = risk;
  options.prices = prices;
  options.why_not = why_not;
  options.threads = threads;
  Told<api::PlanProgress> told;
  if (!progress.is_none()) options.progress = [&](const auto& now) { told.put(now); };
  const auto tell = [&] {
    const auto now = told.take();
    return !now || !progress(dict_of(*now)).is(py::bool_(false));
  };
  return answer_of(interruptible(
                       [&](const std::function<bool()>& stop) {
                         options.stop = stop;
                         return api::plan(scenario, options);
                       },
                       tell),
                   scenario.json());
}

void add_plan(py::module_& module) {
  add_answer<api::Plan>(module, "Plan")
      .def("html", [](const api::Plan& made) { return answer_of(made.html()); })
      .def("places", &api::Plan::places)
      .def("proven", &api::Plan::proven)
      .def("layout", &api::Plan::layout)
      .def("scenario", &api::Plan::scenario);
  module.def("plan", &plan, py::arg("scenario"), py::kw_only(), py::arg("top"), py::arg("replays"),
             py::arg("front"), py::arg("prove"), py::arg("time_limit_s"), py::arg("objective"),
             py::arg("memory_margin"), py::arg("risk"), py::arg("prices"), py::arg("why_not"),
             py::arg("threads"), py::arg("progress"));
}

void add_compare_and_check(py::module_& module) {
  add_answer<api::Comparison>(module, "Comparison").def("html", &api::Comparison::html);
  module.def("compare", [](const std::vector<api::Scenario>& scenarios, int threads) {
    return answer_of(interruptible(
        [&](const std::function<bool()>& stop) { return api::compare(scenarios, threads, stop); }));
  });
  add_answer<api::CheckOutcome>(module, "CheckOutcome")
      .def("html", &api::CheckOutcome::html)
      .def("junit", &api::CheckOutcome::junit)
      .def("passed", &api::CheckOutcome::passed);
  module.def("check", [](const api::Data& data, const std::vector<std::string>& names,
                         const std::vector<std::string>& tolerances, int threads) {
    std::vector<api::Suite> suites;
    for (const std::string& name : names) suites.push_back(answer_of(api::Suite::load(data, name)));
    return answer_of(interruptible([&](const std::function<bool()>& stop) {
      return api::check(suites, tolerances, threads, stop);
    }));
  });
}

}  // namespace

PYBIND11_MODULE(_core, module) {
  module.attr("__version__") = STEPCAST_VERSION;
  add_data(module);
  add_scenario(module);
  add_prediction(module);
  add_plan(module);
  add_compare_and_check(module);
}

}  // namespace stepcast::python
