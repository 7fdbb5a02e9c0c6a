// The outboxes in other databases that this postrider relays. Where they are is sealed with the master key
// and never shown; people see `display_url`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "postrider/crypto/master_keys.hpp"
#include "postrider/pg/link.hpp"
#include "postrider/registry/caller.hpp"

namespace postrider::outbox {

inline const std::string kLocal = "local";  // the one in postrider's own database

struct Source {
  std::string id;
  std::string display_url;
  std::string sealed;  // the database's URL
  base::Timestamp created_at{};
  base::Timestamp updated_at{};
};

std::string seal_url(const crypto::MasterKeys& keys, const std::string& id, const std::string& url);
base::Result<std::string, crypto::OpenError> open_url(const crypto::MasterKeys& keys, const Source& source);

// All throw pg::Error.
runtime::Task<std::vector<Source>> list_sources(pg::Link& link);
runtime::Task<std::optional<Source>> find_source(pg::Link& link, std::string id);
// Both write to the audit log. Made, or its URL changed; false: it was there.
runtime::Task<bool> put_source(pg::Link& link, const registry::Caller& caller, Source source);
runtime::Task<bool> delete_source(pg::Link& link, const registry::Caller& caller, std::string id);
// For the audit log: a change of rows that were set aside.
struct StuckChange {
  std::string_view action;                   // "outbox.release"
  std::optional<std::vector<int64_t>> rows;  // none: all
  std::optional<std::string> reason = {};
};
pg::Batch stuck_note(const registry::Caller& caller, const std::string& id, StuckChange change);
// The same for its setting.
pg::Batch on_invalid_note(const registry::Caller& caller, const std::string& id,
                          const std::string& on_invalid);

}  // namespace postrider::outbox
