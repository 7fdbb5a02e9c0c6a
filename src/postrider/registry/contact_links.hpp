// Links in mails to contacts. A mail has a random token; the database has its hash and purpose.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "postrider/model/ids.hpp"
#include "postrider/pg/link.hpp"
#include "postrider/registry/caller.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::registry {

enum class LinkPurpose { confirm, unsubscribe };

inline constexpr int confirmation_link_days = 7;
inline constexpr int unsubscribe_link_days = 90;

struct NewLink {
  LinkPurpose purpose;
  model::TenantId tenant;
  std::string address;
};
// Returns the path of the link's page, as "/contacts/confirm/<token>".
runtime::Task<std::string> create_contact_link(pg::Link& link, NewLink wanted);

// Does what the link is for. False if its token is unknown, used or expired. A confirmation link works once.
runtime::Task<bool> follow_contact_link(pg::Link& link, const Caller& caller, LinkPurpose purpose,
                                        std::string token);

// True if it has the form of a token. Most guesses of scanners are rejected without the database.
bool is_link_token(std::string_view text);

}  // namespace postrider::registry
