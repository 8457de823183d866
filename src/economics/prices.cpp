// SPDX-License-Identifier: Apache-2.0
#include "economics/prices.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "cluster/cluster.h"
#include "cluster/data_folder.h"
#include "core/gathered_errors.h"
#include "core/read_rows.h"
#include "core/row_types.h"
#include "core/text_file.h"
#include "economics/price_document.h"
#include "economics/sky_catalogue.h"

namespace stepcast {
namespace {

// "2026", "2026-05" or "2026-05-07".
bool is_date(const std::string& text) {
  const std::string form = "dddd-dd-dd";
  if (text.size() != 4 && text.size() != 7 && text.size() != 10) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (form[i] == 'd' ? !digit : text[i] != form[i]) return false;
  }
  return true;
}

// A price is of a cluster or of an accelerator; the other name is empty.
using Thing = std::pair<std::string, std::string>;
Thing thing_of(const Price& price) { return {price.cluster, price.accelerator}; }

}  // namespace

void Price::check(const JsonValue& value) const {
  if (cluster.empty() == accelerator.empty()) {
    value.fail(ErrorCode::kBadValue, "a price is of a cluster or of an accelerator",
               "give one of the keys cluster and accelerator");
  }
  if (!as_of.empty() && !is_date(as_of)) {
    ObjectReader(value).fail("as_of", ErrorCode::kBadValue,
                             fmt::format("'{}' is not a date", as_of),
                             "write it like 2026-05 or 2026-05-07");
  }
}

void read_prices(JsonDocument& document, PriceList& prices) {
  ObjectReader object(document.root());
  object.ignore("stepcast_prices");
  std::set<Thing> known;
  for (const Price& price : prices) known.insert(thing_of(price));
  if (const auto list = object.required("prices")) {
    for (const JsonValue& value : list->items()) {
      auto price = read_object<Price>(value);
      if (!known.insert(thing_of(price)).second) {
        value.fail(ErrorCode::kBadValue,
                   fmt::format("a second price of {}{}", price.cluster, price.accelerator),
                   "one of each cluster and accelerator");
      }
      prices.push_back(std::move(price));
    }
  }
  object.finish();
}

namespace {

// The user's own prices in the place of those that ship.
Errors lay_own_over(const std::string& file, PriceList& prices) {
  PriceList own;
  const auto text = read_text_file(file);
  if (!text) return text.error();
  if (is_sky_catalogue(*text)) {
    auto read = read_sky_catalogue(*text, file);
    if (!read) return read.error();
    own = std::move(*read);
  } else {
    auto document = JsonDocument::parse(*text, file);
    if (!document) return document.error();
    read_prices(**document, own);
    if (!(*document)->ok()) return (*document)->errors();
  }
  for (Price& price : own) {
    price.is_own = true;
    std::erase_if(prices, [&](const Price& other) { return thing_of(other) == thing_of(price); });
    prices.push_back(std::move(price));
  }
  return {};
}

}  // namespace

Result<PriceList> load_prices(const PriceFiles& sources) {
  const DataFolder files(sources.folder, "prices");
  PriceList out;
  Errors errors;
  const auto names = files.names();
  if (!names) return failure(names.error());
  for (const std::string& name : *names) {
    auto document = files.open(name);
    if (!document) {
      append(errors, document.error());
      continue;
    }
    read_prices(**document, out);
    append(errors, (*document)->errors());
  }
  if (!sources.own.empty()) append(errors, lay_own_over(sources.own, out));
  if (!errors.empty()) return failure(std::move(errors));
  return out;
}

const Price* find_price(const PriceList& prices, const ClusterSpec& cluster) {
  const Price* market = nullptr;
  for (const Price& price : prices) {
    if (!cluster.other_accelerators.empty()) return nullptr;  // a price is of GPUs of one kind
    if (!price.cluster.empty() && price.cluster == cluster.name) return &price;
    if (price.accelerator.empty() || price.accelerator != cluster.accelerator.name) continue;
    if (cluster.provider.empty() || price.is_own) market = &price;
  }
  return market;
}

std::optional<double> Price::asked(Rental rental) const {
  switch (rental) {
    case Rental::kSpot:
      return spot;
    case Rental::kReserved:
      return reserved;
    case Rental::kOnDemand:
      break;
  }
  return dollars_per_gpu_hour;
}

// Dates of one form are in the order of their letters; a shorter one lasts to its end.
bool is_over_a_year(const std::string& date, const std::string& day) {
  if (date.size() < 4 || day.size() < 10) return false;
  const std::string year_before =
      fmt::format("{:04}{}", std::stoi(day.substr(0, 4)) - 1, day.substr(4));
  return date < year_before.substr(0, date.size());
}

std::string why_no_price(const ClusterSpec& cluster, Rental rental) {
  if (cluster.provider == kNotForRent) return fmt::format("{} is not for rent", cluster.name);
  const char* kind = rental == Rental::kSpot       ? "spot price"
                     : rental == Rental::kReserved ? "reserved price"
                                                   : "price";
  if (!cluster.other_accelerators.empty()) {
    return fmt::format("{} has GPUs of several kinds, and prices are of one", cluster.name);
  }
  if (cluster.provider.empty()) {
    return fmt::format("no {} of {} is listed", kind, cluster.accelerator.name);
  }
  return fmt::format("no {} of {} for {} is known here", kind, cluster.provider,
                     cluster.accelerator.name);
}

Rows Price::fields() {
  using F = Price;
  static constexpr Row all[] = {
      row<&F::cluster>("cluster").says(
          "the cluster that is offered; this or an accelerator, and not both"),
      row<&F::accelerator>("accelerator").says("the accelerator whose market price this is"),
      row<&F::dollars_per_gpu_hour>("usd_per_gpu_hour")
          .required()
          .within(0, 1e6)
          .says("dollars, on demand, for a GPU"),
      row<&F::spot>("spot_usd_per_gpu_hour")
          .within(0, 1e6)
          .says("dollars where the provider takes the GPU back at will (`--spot`)"),
      row<&F::reserved>("reserved_usd_per_gpu_hour")
          .within(0, 1e6)
          .says("dollars for the term that the source names (`run.rental`: reserved)"),
      row<&F::rented_together>("rented_together")
          .within(1, 1 << 20)
          .says("GPUs that are let at once: 1 where single ones are; a whole node unless stated"),
      row<&F::least>("least_time").with_unit().says("what is billed at least, as \"24 h\""),
      row<&F::provider>("provider").required().says("who asks this price"),
      row<&F::as_of>("as_of").required().says("when: 2026, 2026-05 or 2026-05-07"),
      row<&F::source>("source").required().says("where it was read")};
  return rows_of<F>(all);
}

}  // namespace stepcast
