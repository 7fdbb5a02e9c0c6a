// API keys: 256 bits, shown once, kept as a SHA-256 hash.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "postrider/base/time.hpp"
#include "postrider/crypto/digest.hpp"
#include "postrider/model/ids.hpp"
#include "postrider/pg/link.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::registry {

enum class Role { admin, operator_, customer, publisher, reader };
std::string_view label(Role role);  // as in the API: "operator"
std::optional<Role> parse_role(std::string_view text);

// A token is a key of a customer that lives for minutes to days. Both have the same kind of ID.
enum class KeyKind { key, token };
std::string_view label(KeyKind kind);

// A browser that signed in. It has the rights of a key or, if a link for the portal opened it, of a customer
// of the link's tenant; and a life of its own.
enum class SessionKind { console, portal };
std::string_view label(SessionKind kind);
struct Session {
  model::SessionId id;
  SessionKind kind = SessionKind::console;
  base::Timestamp expires_at{};
  std::optional<model::LinkId> link{};  // the link for the portal that opened it
  std::optional<std::string> label{};   // of that link: the person it is for
  bool is_preview = false;              // an operator views a customer's pages

  bool operator==(const Session&) const = default;
};

// The authenticated caller.
struct Principal {
  model::KeyId key;
  KeyKind kind = KeyKind::key;
  Role role = Role::reader;
  bool is_read_only = false;              // of a customer: its reading half alone
  std::optional<model::TenantId> tenant;  // bound to it; none: all tenants
  bool sees_payloads = true;
  std::optional<double> rate_per_second{};  // requests per node; none: no limit

  std::optional<Session> session{};  // none: the key itself was presented

  // Has a rate and waiting room of its own: the key, or the session that a link opened. So customers who use
  // links of one key do not take its rate from each other, nor from the program that has the key.
  std::string credential_id() const {
    return session && session->link ? session->id.public_id() : key.public_id();
  }
  bool is_bound() const { return tenant.has_value(); }
  bool is_customer() const { return role == Role::customer; }
  // Of the platform's own staff and programs, with the right to change things.
  bool is_operator() const { return !is_bound() && (role == Role::admin || role == Role::operator_); }

  bool operator==(const Principal&) const = default;
};

using KeyHash = crypto::Digest256;
KeyHash hash_key(std::string_view key);
std::string generate_key();  // "pr_" and 64 hex digits

struct FoundKey {
  Principal principal;
  // Until the key expires, by the database's clock; none if that is more than a day away.
  std::optional<std::chrono::microseconds> expires_in;
};
// No value for a key that is unknown, revoked or expired: callers cannot distinguish these.
runtime::Task<std::optional<FoundKey>> find_key(pg::Link& link, KeyHash hash);

inline constexpr size_t admin_key_length_min = 32;

// Called at start. A configured key becomes the configured admin key, and the one configured before stops
// working. Without one, and if no admin key is there at all, one is made and returned, to be printed once.
// Throws std::runtime_error for a configured key that is too short.
runtime::Task<std::optional<std::string>> ensure_admin_key(pg::Link& link, std::string configured);

}  // namespace postrider::registry
