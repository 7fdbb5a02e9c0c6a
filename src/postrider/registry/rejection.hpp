// The reason why the registry rejected a request. All of these depend on the caller; other errors are thrown.
#pragma once

#include <string>

namespace postrider::registry {

enum class RejectionKind {
  unknown_tenant,
  unknown_endpoint,
  endpoint_exists,
  unknown_subscription,
  unknown_secret,
  unknown_event_type,
  tenant_exists,
  tenant_id_used,   // by a deleted tenant, whose history stays
  reserved_tenant,  // `postrider` itself
  reserved_id,      // an endpoint id of one's own that looks like one made by postrider
  too_many_endpoints,
  too_many_secrets,
  too_many_event_types,
  changed_meanwhile,    // If-Match named another revision
  endpoint_disabled,    // and the call would silently enable it
  stopped_by_operator,  // and the caller is the customer
  operators_only,       // the same, of what a customer may never do
  secret_in_use,        // the secret given is one of the active ones
  secret_invalid,       // the secret does not suit the endpoint's signature scheme
  secret_differs,       // a PUT with a secret that is not the current one
  is_current_secret,    // only overlaps can be ended
  unknown_source,
  source_exists,
  is_last_secret,          // a source keeps at least one
  unknown_forward_tenant,  // of a source
  unknown_contact,         // not on the tenant's list
  url_contact,             // needs no confirmation
  contact_confirmed,       // already
  contact_unsubscribed,    // only the address itself can confirm again
  abandoned,               // the edit itself said no
};

struct Rejection {
  RejectionKind kind;
  std::string detail = {};  // a sentence for people, where there is more to say than the kind does
};

}  // namespace postrider::registry
