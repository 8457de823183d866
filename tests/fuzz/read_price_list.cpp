// SPDX-License-Identifier: Apache-2.0
#include "cluster/cluster.h"
#include "economics/price_document.h"
#include "fuzz/readers.h"
#include "fuzz/target.h"

namespace stepcast::fuzz {

void read_price_list(std::string_view text) {
  with_document(text, [](JsonDocument& document) {
    PriceList prices;
    read_prices(document, prices);
    find_price(prices, some_cluster().spec);
  });
}

}  // namespace stepcast::fuzz
