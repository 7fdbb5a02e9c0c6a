// Links that open the portal of one tenant, once. The session has the rights of a customer in that tenant, or
// its reading half, and ends with the link and with the key that created it.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "postrider/base/result.hpp"
#include "postrider/base/time.hpp"
#include "postrider/model/ids.hpp"
#include "postrider/pg/link.hpp"
#include "postrider/registry/caller.hpp"
#include "postrider/runtime/task.hpp"
#include "postrider/web/sessions.hpp"

namespace postrider::web {

struct PortalLinkSettings {
  model::TenantId tenant;
  model::KeyId key;  // that creates it
  std::chrono::seconds lifetime = std::chrono::minutes(5);
  std::chrono::seconds session = portal_limits.idle;  // ends after this time without a request
  bool is_read_only = false;
  bool sees_payloads = true;
  bool is_preview = false;
  std::optional<std::string> label{};   // the person it is for
  std::optional<std::string> origin{};  // of the page that shows the portal in a frame; none: not in a frame
  std::optional<std::string> path{};    // of the page to open, below /portal
};

struct PortalLink {
  model::LinkId id;
  PortalLinkSettings settings;
  base::Timestamp created_at{}, expires_at{};
  std::optional<base::Timestamp> used_at{};
  // Of its session, if that is open.
  std::optional<base::Timestamp> session_last_seen_at{}, session_expires_at{};
};

enum class LinkRejection { unknown_tenant, too_many_links };
struct CreatedPortalLink {
  PortalLink link;
  std::string token;  // for the fragment of the address; not stored
};
using CreatedPortalLinkResult = base::Result<CreatedPortalLink, LinkRejection>;
// `links_max`: links of the tenant that can still be used.
runtime::Task<CreatedPortalLinkResult> create_portal_link(pg::Link& link, registry::Caller caller,
                                                          PortalLinkSettings settings, int links_max);

struct PortalLinkFilter {
  model::TenantId tenant;
  std::optional<model::LinkId> id{};      // only this one
  std::optional<model::LinkId> before{};  // the last one of the page before
  int limit = 50;
};
// Newest first. Links are kept for eight days after they expire.
runtime::Task<std::vector<PortalLink>> list_portal_links(pg::Link& link, PortalLinkFilter filter);

struct PortalLinkName {
  model::TenantId tenant;
  model::LinkId id;
};
// Ends its session, too. False: there is no such link.
runtime::Task<bool> delete_portal_link(pg::Link& link, registry::Caller caller, PortalLinkName name);

struct OpenedPortal {
  OpenedSession session;
  model::TenantId tenant;
  std::optional<std::string> origin, path;
};
// Uses up the link and opens its session. No value if the link is unknown, expired or used, or its key or
// tenant has ended.
runtime::Task<std::optional<OpenedPortal>> follow_portal_link(pg::Link& link, registry::Caller caller,
                                                              std::string token);

}  // namespace postrider::web
