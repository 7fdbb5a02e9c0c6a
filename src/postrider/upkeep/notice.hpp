// A notice to a contact: an endpoint fails partly or completely, was paused or disabled, or has recovered; or
// the tenant has new dead letters.
//
// A notice names the endpoint's id and its bare host name and has no other text that a customer could choose:
// no path, no reason. Its reader may not know who sent it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/base/time.hpp"
#include "postrider/base/uuid.hpp"
#include "postrider/upkeep/mail.hpp"

namespace postrider::upkeep {

struct DeadLetters {
  struct Endpoint {
    std::string id, host;
    int64_t dead_letters = 0;
    std::map<std::string, int64_t> causes;
  };
  int64_t dead_letters = 0;
  std::string since;
  int64_t endpoint_count = 0;
  std::vector<Endpoint> endpoints;  // those with the most
};

struct Notice {
  base::Uuid endpoint_uuid;
  std::string tenant, endpoint, host;
  std::string kind;  // failing, paused, degraded, warning, disabled, recovered; dead_letters: of the tenant
  int stage = 0;     // of a warning: percent of the time to being disabled
  std::optional<int> attempts{}, failed{};
  std::optional<DeadLetters> dead_letters{};
  std::optional<base::Timestamp> failing_since{};
  std::optional<std::string> cause{};   // of disabled: failing, gone, operator
  std::vector<std::string> contacts{};  // that get the notice
  int tries = 1;
};

std::string host_of(std::string_view url);

// Reads what take_dead_letter_notice() returns.
DeadLetters read_dead_letters(std::string_view content);

// The text of a notice: what happened, and what to do.
Mail mail_of(const Notice& notice, const std::string& unsubscribe_url);
std::string json_of(const Notice& notice);

}  // namespace postrider::upkeep
