// The audit log: every change by a person or program, in the transaction of the change.
//
//   Snapshot before, after;                       // secrets masked
//   …
//   add_audit(batch, caller, {.action = "endpoint.pause", .tenant = tenant, .object = public_id,
//                             .before = before, .after = after, .reason = reason});
//   add_note(batch, …);                           // the last batch of the change
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/base/json_writer.hpp"
#include "postrider/base/time.hpp"
#include "postrider/model/ids.hpp"
#include "postrider/pg/batch.hpp"
#include "postrider/pg/link.hpp"
#include "postrider/registry/caller.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::registry {

// Shown in place of secrets and of the values of custom headers.
inline constexpr std::string_view masked_text = "***";

// An object at one moment, field by field, as the audit log shows it.
class Snapshot {
 public:
  template <class T>
  Snapshot& add(std::string_view name, const T& value) {
    base::JsonObject member;
    member.add(name, value);
    return keep(member.members(), member.members());
  }
  Snapshot& raw_or_null(std::string_view name, const std::optional<std::string>& json) {
    base::JsonObject member;
    member.raw_or_null(name, json);
    return keep(member.members(), member.members());
  }
  // Shows `json`, but `stored` decides whether the field changed: for masked values.
  Snapshot& masked(std::string_view name, std::string_view json, std::string_view stored) {
    base::JsonObject member;
    member.raw(name, json);
    return keep(member.members(), std::string(stored));
  }

  std::string text() const;
  // Removes equal fields from both. They have the same fields in the same order.
  static void keep_differences(Snapshot& before, Snapshot& after);

 private:
  Snapshot& keep(std::string shown, std::string stored) {
    members_.push_back({std::move(shown), std::move(stored)});
    return *this;
  }
  struct Member {
    std::string shown;  // "name":value
    std::string stored;
  };
  std::vector<Member> members_;
};

std::string_view label(ActorKind kind);

struct AuditEntry {
  std::string_view action;  // "endpoint.pause": what kind of object, and the verb
  std::optional<model::TenantId> tenant{};
  std::string object;                // public ID of the changed object
  std::optional<Snapshot> before{};  // none: it was not there
  std::optional<Snapshot> after{};   // none: it is gone. With both, only differences are kept
  std::optional<std::string> reason{};
};

// Adds the entry to a batch of the change's transaction.
void add_audit(pg::Batch& batch, const Caller& caller, AuditEntry entry);

struct AuditRecord {
  int64_t id = 0;
  base::Timestamp at{};
  std::string actor_kind, actor, action;
  std::optional<std::string> actor_name{};  // owner of the key
  model::Actor on_behalf_of = model::Actor::operator_;
  std::optional<model::TenantId> tenant;
  std::string object;
  std::optional<std::string> before, after;  // JSON
  std::optional<std::string> reason, address, request_id;
};
struct AuditFilter {
  std::optional<std::string> tenant{}, actor{}, action{}, object{};
  bool is_customer = false;  // who must not find out which operator did something: `actor` finds no operators
  std::optional<base::Timestamp> since{}, until{};  // inclusive, exclusive
  // The last one of the page before.
  base::Timestamp before_at = base::Timestamp::max();
  int64_t before_id = INT64_MAX;
  int limit = 50;
};
// Newest first.
runtime::Task<std::vector<AuditRecord>> list_audit(pg::Link& link, AuditFilter filter);

}  // namespace postrider::registry
