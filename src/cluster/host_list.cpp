// SPDX-License-Identifier: Apache-2.0
#include "cluster/host_list.h"

#include <fmt/format.h>

#include <charconv>
#include <cstddef>
#include <optional>

namespace stepcast {
namespace {

constexpr std::int64_t kMostHosts = 131072;  // as many GPUs as a cluster may have
constexpr const char* kHostExample = "names such as node[4-7,0-3],login1";

Errors bad_hosts(std::string message) {
  return {{ErrorCode::kBadValue, std::move(message), "", "", kHostExample}};
}

// Commas inside brackets do not part names.
std::vector<std::string_view> apart_at_commas(std::string_view text) {
  std::vector<std::string_view> out;
  std::size_t begin = 0, depth = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '[') ++depth;
    if (i < text.size() && text[i] == ']' && depth > 0) --depth;
    if (i < text.size() && (text[i] != ',' || depth > 0)) continue;
    if (i > begin) out.push_back(text.substr(begin, i - begin));
    begin = i + 1;
  }
  return out;
}

std::optional<std::int64_t> number_of(std::string_view digits) {
  std::int64_t out = 0;
  const char* end = digits.data() + digits.size();
  const auto read = std::from_chars(digits.data(), end, out);
  // One digit more than any machine has nodes.
  const bool is_number = read.ec == std::errc() && read.ptr == end && digits.size() <= 9;
  return is_number && out >= 0 && digits.front() != '-' ? std::optional(out) : std::nullopt;
}

// "0-3", "007" or "a": what stands in a bracket between commas.
Result<std::vector<std::string>> expand_range(std::string_view range) {
  const std::size_t dash = range.find('-');
  const std::string_view low = range.substr(0, dash);
  const auto first = low.empty() ? std::nullopt : number_of(low);
  const std::string_view high = dash == std::string_view::npos ? low : range.substr(dash + 1);
  const auto last = high.empty() ? std::nullopt : number_of(high);
  if (!first || !last || *last < *first) {
    return failure(bad_hosts(fmt::format("'{}' is no range of numbers", range)));
  }
  if (*last - *first >= kMostHosts) {
    return failure(bad_hosts(fmt::format("'{}' are more than {} hosts", range, kMostHosts)));
  }
  std::vector<std::string> out;
  for (std::int64_t n = *first; n <= *last; ++n)
    out.push_back(fmt::format("{:0{}}", n, low.size()));
  return out;
}

Result<std::vector<std::string>> expand_name(std::string_view name) {
  std::vector<std::string> out = {""};
  while (!name.empty()) {
    const std::size_t open = name.find('[');
    for (std::string& one : out) one += name.substr(0, open);
    if (open == std::string_view::npos) break;
    const std::size_t close = name.find(']', open);
    if (close == std::string_view::npos) {
      return failure(bad_hosts(fmt::format("'{}' has a bracket without its end", name)));
    }
    std::vector<std::string> longer;
    for (const std::string& before : out) {
      for (const std::string_view range :
           apart_at_commas(name.substr(open + 1, close - open - 1))) {
        const auto numbers = expand_range(range);
        if (!numbers) return failure(numbers.error());
        for (const std::string& number : *numbers) longer.push_back(before + number);
        if (longer.size() > static_cast<std::size_t>(kMostHosts)) {
          return failure(bad_hosts(fmt::format("more than {} hosts", kMostHosts)));
        }
      }
    }
    if (longer.empty()) return failure(bad_hosts("empty brackets"));
    out = std::move(longer);
    name.remove_prefix(close + 1);
  }
  return out;
}

struct NumberedHost {
  std::string_view prefix, digits;
  std::int64_t number = -1;  // none
};

NumberedHost numbered(std::string_view host) {
  std::size_t at = host.size();
  while (at > 0 && host[at - 1] >= '0' && host[at - 1] <= '9') --at;
  const std::string_view digits = host.substr(at);
  if (digits.empty() || digits.size() > 9) return {host, {}, -1};
  return {host.substr(0, at), digits, *number_of(digits)};
}

}  // namespace

Result<std::vector<std::string>> expand_hosts(std::string_view text) {
  std::vector<std::string> out;
  for (const std::string_view name : apart_at_commas(text)) {
    const auto hosts = expand_name(name);
    if (!hosts) return failure(hosts.error());
    out.insert(out.end(), hosts->begin(), hosts->end());
    if (out.size() > static_cast<std::size_t>(kMostHosts)) {
      return failure(bad_hosts(fmt::format("more than {} hosts", kMostHosts)));
    }
  }
  return out;
}

std::string compress_hosts(const std::vector<std::string>& hosts) {
  std::string out;
  for (std::size_t i = 0; i < hosts.size();) {
    const NumberedHost first = numbered(hosts[i]);
    // All that have the prefix and as many digits; numbers that are not padded may grow longer.
    std::string ranges;
    std::size_t end = i;
    while (end < hosts.size()) {
      const NumberedHost begin = numbered(hosts[end]);
      if (first.number < 0 || begin.number < 0 || begin.prefix != first.prefix) break;
      std::size_t last = end + 1;
      const auto follows = [&](const NumberedHost& next) {
        return next.prefix == first.prefix &&
               next.number == begin.number + static_cast<std::int64_t>(last - end) &&
               next.digits == fmt::format("{:0{}}", next.number, begin.digits.size());
      };
      while (last < hosts.size() && follows(numbered(hosts[last]))) ++last;
      if (!ranges.empty()) ranges += ',';
      ranges += begin.digits;
      if (last - end > 1) ranges += fmt::format("-{}", numbered(hosts[last - 1]).digits);
      end = last;
    }
    if (!out.empty()) out += ',';
    if (end - i < 2) {
      out += hosts[i];
      end = i + 1;
    } else {
      out += fmt::format("{}[{}]", first.prefix, ranges);
    }
    i = end;
  }
  return out;
}

}  // namespace stepcast
