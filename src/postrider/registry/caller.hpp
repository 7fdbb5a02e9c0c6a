// The caller of a change to the registry: its identity, address and condition.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "postrider/model/endpoint_enums.hpp"

namespace postrider::registry {

enum class ActorKind { key, system, sql, console, portal, command };

// `If-Match`: which revisions of the object the change is meant for.
struct Precondition {
  bool must_exist = false;           // If-Match: *
  std::vector<int64_t> revisions{};  // any of these; with none of them and without must_exist: no condition
  bool is_set = false;

  // Of an object that is there.
  bool accepts(int64_t revision) const {
    return !is_set || must_exist ||
           std::find(revisions.begin(), revisions.end(), revision) != revisions.end();
  }
};

struct Caller {
  ActorKind kind = ActorKind::system;
  std::string id = "system";  // "key_…", "link_…" of a session that a link opened, user@host of a command
  std::optional<std::string> name{};  // of a session that a link opened: the label of the link
  std::optional<std::string> address{};
  std::optional<std::string> request_id{};
  Precondition if_match{};
  model::Actor actor = model::Actor::postrider;  // on whose behalf; recorded as `status_by`

  bool is_customer() const { return actor == model::Actor::customer; }
  bool is_operator() const { return actor == model::Actor::operator_; }
  // postrider itself.
  static Caller system() { return {}; }
};

}  // namespace postrider::registry
