// What a contact is told about an endpoint: a warning, that it is disabled, that it has recovered.
//
// A notice names the endpoint's id and its bare host name and has no other text that a customer could choose:
// no path, no reason. Whoever gets it did not necessarily choose who sends it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "postrider/base/time.hpp"
#include "postrider/base/uuid.hpp"
#include "postrider/upkeep/mail.hpp"

namespace postrider::upkeep {

struct Notice {
  base::Uuid endpoint_uuid;
  std::string tenant, endpoint, host;
  std::string kind;  // warning, disabled, recovered
  int stage = 0;     // percent of the time to being disabled
  std::optional<base::Timestamp> failing_since{};
  std::optional<std::string> cause{};   // of disabled: failing, gone, operator
  std::vector<std::string> contacts{};  // to tell
  int tries = 1;
};

// What happened, and what to do.
Mail mail_of(const Notice& notice, const std::string& unsubscribe_url);
std::string json_of(const Notice& notice);

}  // namespace postrider::upkeep
