#include "postrider/http/server/proxies.hpp"

#include <algorithm>
#include <stdexcept>

#include "postrider/http/request_grammar.hpp"

namespace postrider::http {

namespace {

std::optional<base::IpAddress> parse_hop(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  const auto address = base::IpAddress::parse(text);
  if (!address) return std::nullopt;
  return address->unmapped();
}

}  // namespace

bool TrustedProxies::trusts(std::string_view address) const {
  const auto parsed = parse_hop(address);
  return parsed && std::any_of(networks_.begin(), networks_.end(),
                               [&](const base::Network& network) { return network.contains(*parsed); });
}

std::string TrustedProxies::client_address(const std::string& peer, const std::vector<Field>& fields) const {
  std::string client = peer;
  for (auto field = fields.rbegin(); field != fields.rend(); ++field) {
    if (!equals_ignoring_case(field->name, "x-forwarded-for")) continue;
    std::string_view list = field->value;
    while (trusts(client)) {
      const size_t comma = list.rfind(',');
      const auto hop = parse_hop(comma == std::string_view::npos ? list : list.substr(comma + 1));
      if (!hop) return client;
      client = hop->to_string();
      if (comma == std::string_view::npos) break;
      list = list.substr(0, comma);
    }
  }
  return client;
}

}  // namespace postrider::http
