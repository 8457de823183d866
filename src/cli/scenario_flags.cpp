// SPDX-License-Identifier: Apache-2.0
#include "cli/scenario_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>

#include "cluster/named_cluster.h"
#include "core/data_name.h"
#include "core/gathered_errors.h"
#include "core/json.h"
#include "core/json_tree.h"
#include "core/text/characters.h"
#include "core/text/escape.h"
#include "core/unit_text.h"
#include "layout/keys.h"
#include "layout/override.h"
#include "model/import_model.h"
#include "model/import_native.h"
#include "model/model.h"

namespace stepcast::cli {
namespace {

// --cluster names other hardware for the same run. Without a size of its own it keeps the size of
// the cluster that it replaces, except for this machine, whose size is given.
void keep_size(const SortedJson& replaced, const std::string& topologies, SortedJson& scenario) {
  if (!scenario["cluster"].is_string()) return;
  const std::string name = scenario["cluster"].get<std::string>();
  if (is_path(name) || name == "local") return;
  const SortedJson before =
      replaced.is_string() ? named_cluster(replaced.get<std::string>(), topologies) : replaced;
  SortedJson named = named_cluster(name, topologies);
  if (!before.is_object() || named.contains("nodes") || named.contains("gpus")) return;
  for (const char* size : {"nodes", "gpus"}) {
    if (before.contains(size)) named[size] = before[size];
  }
  if (named.size() > 1) scenario["cluster"] = std::move(named);
}

// --nodes and --gpus resize whatever cluster there is, so a name becomes an object first, and the
// size that they replace goes.
void prepare_cluster(const ScenarioFlags& flags, const std::string& topologies,
                     SortedJson& scenario) {
  const auto given = [&](const char* flag) {
    return std::any_of(flags.values.begin(), flags.values.end(), [&](const auto& value) {
      return value->flag == flag && value->option.given();
    });
  };
  const bool nodes = given("--nodes"), gpus = given("--gpus");
  if (!nodes && !gpus) return;
  SortedJson& cluster = scenario["cluster"];
  if (cluster.is_string()) cluster = named_cluster(cluster.get<std::string>(), topologies);
  if (!cluster.is_object()) return;
  if (nodes && !gpus) cluster.erase("gpus");
  if (gpus && !nodes) cluster.erase("nodes");
}

// --assume reads a config.json of an unknown model_type as FAMILY, by replacing its model_type.
Errors assume_family(const std::string& family, SortedJson& scenario) {
  const auto known = supported_families();
  if (std::find(known.begin(), known.end(), family) == known.end()) {
    const std::string near = did_you_mean(family, known);
    return {{ErrorCode::kBadValue, fmt::format("'{}' is not a known family", family), "",
             "--assume", near.empty() ? "one of " + one_of(known) : near}};
  }
  SortedJson& model = scenario["model"];
  if (model.is_string()) {
    std::string path = model.get<std::string>();
    std::error_code none;
    if (std::filesystem::is_directory(path, none)) {
      path += "/config.json";
    } else if (!is_path(path)) {
      return {};
    }
    const auto config = JsonDocument::load(path);
    if (!config) return config.error();
    model = (*config)->root().raw();
    // Out of its file a model has no name but that of its family.
    if (model.is_object() && !model.contains("name")) model["name"] = model_name_of_file(path);
  }
  if (!model.is_object()) return {};
  // The reader reports a type that is no text.
  SortedJson& type = model["model_type"];
  const bool is_known = std::find(known.begin(), known.end(), type) != known.end();
  if (!type.is_null() && (!type.is_string() || is_known)) return {};
  type = family;
  const auto config = JsonDocument::from(model, "");
  const auto beyond = keys_beyond(config->root(), family);
  if (beyond.empty()) return {};
  return {{ErrorCode::kIllegal,
           fmt::format("'{}' has nothing of {}: the forecast would be of another model", family,
                       fmt::join(beyond, ", ")),
           "", "--assume",
           "state the model in the native form (docs/formats/model.md), or take keys out that cost "
           "nothing"}};
}

}  // namespace

Errors set_key(const std::string& text, const DataFolders& folders, SortedJson& scenario) {
  const auto split = split_set(text);
  if (!split) return split.error();
  // A key of a cluster or a model that is only named so far.
  const auto named = [&](const char* key) -> SortedJson* {
    const auto found = scenario.find(key);
    const bool inside = split->first.starts_with(std::string(key) + ".");
    return inside && found != scenario.end() && found->is_string() ? &*found : nullptr;
  };
  if (SortedJson* cluster = named("cluster")) {
    *cluster = named_cluster(cluster->get<std::string>(), folders.topologies);
  }
  if (SortedJson* model = named("model")) {
    const auto known = find_model(model->get<std::string>(), folders.models);
    if (!known) return {};  // the reader says that there is none
    *model = to_native_json(*known);
  }
  return apply_override(scenario, split->first, split->second);
}

namespace {

bool sets_key(const std::vector<std::string>& sets, const std::string& key) {
  return std::any_of(sets.begin(), sets.end(),
                     [&](const std::string& set) { return set.substr(0, set.find('=')) == key; });
}

// "--gpus, --set layout.zero": all that was laid over the file.
std::string flags_laid_over(const ScenarioFlags& flags) {
  std::vector<std::string> words;
  for (const auto& value : flags.values) {
    if (value->option.given()) words.push_back(value->flag);
  }
  for (const std::string& set : flags.sets)
    words.push_back("--set " + set.substr(0, set.find('=')));
  for (const std::string& set : flags.varied) {
    words.push_back("--vary " + set.substr(0, set.find('=')));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

}  // namespace

Errors apply_flags(const ScenarioFlags& flags, const DataFolders& folders, SortedJson& scenario) {
  Errors errors;
  const auto set = [&](const ScenarioFlags::Value& value) {
    if (!value.option.given()) return;
    const bool quoted = value.text && is_utf8(value.value);  // the override refuses other bytes
    std::string text = quoted ? json_literal(value.value) : value.value;
    if (value.count) {
      auto number = value.count(value.value);
      if (!number) {
        for (Error& error : number.error()) {
          error.path = value.flag;
          error.hint = "a number such as " + value.example;
        }
        append(errors, number.error());
        return;
      }
      text = json_text(SortedJson(*number));
    }
    append(errors, apply_override(scenario, value.path, text));
  };
  const SortedJson replaced = scenario.contains("cluster") ? scenario["cluster"] : SortedJson();
  for (const auto& value : flags.values) {
    if (value->path != "cluster" || !value->option.given()) continue;
    set(*value);
    keep_size(replaced, folders.topologies, scenario);
  }
  prepare_cluster(flags, folders.topologies, scenario);
  for (const auto& value : flags.values) {
    if (value->path != "cluster") set(*value);
  }
  for (const auto* list : {&flags.sets, &flags.varied}) {
    for (const std::string& text : *list) append(errors, set_key(text, folders, scenario));
  }
  if (!flags.assume.empty()) append(errors, assume_family(flags.assume, scenario));
  if (flags.spot) append(errors, set_key("run.rental=spot", folders, scenario));
  return errors;
}

namespace {

// "tp" where the key is layout.tp.
void suggest_whole_path(Error& error, const ScenarioFlags& flags) {
  if (error.code != ErrorCode::kUnknownKey) return;
  for (const auto& value : flags.values) {
    if (!value->path.ends_with("." + error.path)) continue;
    error.hint = fmt::format("did you mean '{}'?", value->path);
    return;
  }
}

// The error with the flag that gave the value, or that would give a missing one. Whether one did.
bool name_value_flag(Error& error, const ScenarioFlags& flags) {
  const bool missing = error.code == ErrorCode::kMissingKey;
  for (const auto& value : flags.values) {
    const bool given = value->option.given();
    // A flag names a cluster by its base.
    if (given && (value->path == error.path || value->path + ".base" == error.path)) {
      error.path = fmt::format("{} ({})", value->flag, error.path);
      error.file.clear();
      return true;
    }
    // When a whole object such as `training` is missing, name the first flag that sets one of its
    // keys: that key is required.
    if (missing && !given && (value->path + ".").starts_with(error.path + ".")) {
      const std::string flag = fmt::format("{} {}", value->flag, value->option.type());
      error.hint = error.hint.empty() ? "give " + flag : error.hint + ", or " + flag;
      return false;
    }
  }
  return false;
}

// The error without a file where a flag gave the value, named unless the caller does that. Whether
// one did.
bool name_path_flag(Error& error, const ScenarioFlags& flags) {
  const bool varied = sets_key(flags.varied, error.path);
  const bool fixed = !varied && sets_key(flags.fixed, error.path);
  const bool set = !varied && !fixed && sets_key(flags.sets, error.path);
  const bool named = error.path.starts_with("--");
  if (fixed) error.path = "--fix " + error.path;
  if (set) error.path = "--set " + error.path;
  const bool of_flag = varied || fixed || set || named;
  if (of_flag) error.file.clear();
  return of_flag;
}

}  // namespace

Errors name_flags(Errors errors, const ScenarioFlags& flags) {
  for (Error& error : errors) {
    if (!error.file.empty() && error.file != flags.file) continue;
    suggest_whole_path(error, flags);
    if (name_path_flag(error, flags) || name_value_flag(error, flags)) continue;
    // The file may be sound by itself.
    const std::string over = flags_laid_over(flags);
    if (error.code == ErrorCode::kIllegal && !error.file.empty() && !over.empty()) {
      error.file += " with " + over;
    }
  }
  return errors;
}

namespace {

ScenarioFlags::Value& add_value(CommandLine app, ScenarioFlags& flags, const char* flag,
                                const char* path, const char* type, const char* help) {
  auto value = std::make_unique<ScenarioFlags::Value>();
  value->flag = flag;
  value->path = path;
  value->option = app.add(flag, value->value, help).type_name(type).group("Scenario");
  return *flags.values.emplace_back(std::move(value));
}

}  // namespace

void add_scenario_flags(CommandLine app, ScenarioFlags& flags) {
  app.add("SCENARIO", flags.file, "scenario file (JSON); flags override it");
  add_scenario_values(app, flags);
}

void add_scenario_values(CommandLine app, ScenarioFlags& flags) {
  const auto add = [&](const char* flag, const char* path, const char* type, const char* help,
                       bool text = false) {
    add_value(app, flags, flag, path, type, help).text = text;
  };
  add("--model", "model", "NAME|PATH", "shipped model, or a Hugging Face config.json", true);
  add("--cluster", "cluster", "NAME[xNODES]", "shipped cluster, or a file", true);
  add("--nodes", "cluster.nodes", "N", "nodes of the cluster");
  add("--gpus", "cluster.gpus", "N", "GPUs of the cluster");
  add("--profile", "profile", "NAME|PATH",
      "measured costs; none takes kernels from the data sheet, collectives stay measured", true);
  for (const Key* key : keys()) {
    if (key->flag.name == nullptr) continue;
    // A range is plain from the flag's type; words are not.
    const std::string accepts = key->type->accepts();
    const bool range = std::isdigit(static_cast<unsigned char>(accepts.front())) != 0;
    const std::string help = range ? key->help : fmt::format("{}: {}", key->help, accepts);
    add(key->flag.name, key->path, key->flag.value, help.c_str(), key->flag.text);
  }
  app.add("--set", flags.sets, "any scenario key, for example layout.overlap.tp=true")
      .type_name("PATH=VALUE")
      .one_word()
      .group("Scenario");
  app.add("--assume", flags.assume, "read an unknown model_type as this family")
      .type_name("FAMILY")
      .group("Scenario");
}

void add_run_flags(CommandLine app, ScenarioFlags& flags) {
  const auto count = [&](const char* flag, const char* path, const char* type, const char* example,
                         const char* help, Result<double> (*read)(std::string_view)) {
    auto& value = add_value(app, flags, flag, path, type, help);
    value.count = read;
    value.example = example;
  };
  count("--tokens", "run.tokens", "N", "2T",
        "tokens to train, for example 2T: forecasts days, dollars, goodput", parse_count);
  count("--examples", "run.examples", "N", "50k",
        "the same for a fine-tuning, beside --tokens-per-example", parse_count);
  count("--epochs", "run.epochs", "N", "3", "passes through the examples, 1 unless stated",
        parse_count);
  count("--tokens-per-example", "run.tokens_per_example", "N", "700", "their mean length",
        parse_count);
  add_value(app, flags, "--deadline", "run.deadline", "TIME", "limit of the run, for example 30d")
      .text = true;
  count("--budget", "run.budget", "DOLLARS", "500k", "limit of the run, for example 500k",
        parse_dollars);
  count("--price", "run.price_per_gpu_hour", "DOLLARS", "2.5",
        "price of a GPU-hour instead of the listed one", parse_dollars);
  app.add_switch("--spot", flags.spot, "GPUs that the provider takes back, at their listed price");
}

void add_prices_flag(CommandLine app, std::string& file) {
  app.add("--prices", file, "prices of your own, which go before those that ship")
      .type_name("FILE")
      .group("Scenario");
}

void add_demand_flags(CommandLine app, ScenarioFlags& flags) {
  auto& value = add_value(app, flags, "--min-tokens-per-s", "plan.min_tokens_per_s", "N",
                          "with --advise: tokens/s of all GPUs that are enough, for example 20k");
  value.count = parse_count;
  value.example = "20k";
}

Result<std::pair<std::string, std::string>> split_set(const std::string& text) {
  const auto equals = text.find('=');
  if (equals == std::string::npos) {
    return failure({ErrorCode::kBadValue, fmt::format("'{}' has no value", text), "", "--set",
                    "path=value, as in layout.tp=8"});
  }
  return std::make_pair(text.substr(0, equals), text.substr(equals + 1));
}

namespace {

// The scenario of one place of what `plan --format json` wrote, as it was resolved there.
Result<SortedJson> scenario_at(const SortedJson& plan, std::int64_t place,
                               const std::string& file) {
  if (!plan.is_object() || !plan.contains("plans") || !plan["plans"].is_array()) {
    return failure({ErrorCode::kFormat, "holds no places", file, "--place",
                    "a file of stepcast plan --format json"});
  }
  for (const SortedJson& one : plan["plans"]) {
    if (!one.is_object() || !one.contains("place") || !(one["place"] == place)) continue;
    if (!one.contains("prediction") || !one["prediction"].is_object() ||
        !one["prediction"].contains("resolved")) {
      break;
    }
    return one["prediction"]["resolved"];
  }
  return failure({ErrorCode::kNotFound, fmt::format("has no place {}", place), file, "--place",
                  fmt::format("1 to {}", plan["plans"].size())});
}

}  // namespace

Result<StatedText> stated_text(const ScenarioFlags& flags, const DataFolders& folders) {
  SortedJson scenario = SortedJson{{"stepcast", 1}};
  if (!flags.file.empty()) {
    const auto document = JsonDocument::load(flags.file);
    if (!document) return failure(document.error());
    scenario = (*document)->root().raw();
    if (flags.place) {
      auto found = scenario_at(scenario, *flags.place, flags.file);
      if (!found) return failure(found.error());
      scenario = std::move(*found);
    } else if (scenario.is_object() && scenario.contains("plans")) {
      return failure({ErrorCode::kFormat, "is a plan, and no scenario", flags.file, "",
                      "stepcast export FILE --place 1 --to TARGET exports one of its places"});
    }
  }
  // The reader reports a document that is not an object.
  StatedText out;
  if (scenario.is_object()) {
    if (scenario.contains("layout")) out.layout_of_file = json_text(scenario["layout"]);
    out.errors = apply_flags(flags, folders, scenario);
  }
  out.text = json_text(scenario);
  return out;
}

}  // namespace stepcast::cli
