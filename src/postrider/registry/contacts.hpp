// A tenant's contacts: the addresses on its list, and whether each of them gets notices.
//
// An e-mail address gets notices once it is confirmed, and until it unsubscribes. Its state belongs to the
// tenant and the address and outlives its place on the list. URLs need no confirmation.
#pragma once

#include <optional>
#include <string>

#include "postrider/base/result.hpp"
#include "postrider/base/time.hpp"
#include "postrider/crypto/master_keys.hpp"
#include "postrider/model/ids.hpp"
#include "postrider/pg/batch.hpp"
#include "postrider/pg/link.hpp"
#include "postrider/registry/caller.hpp"
#include "postrider/registry/rejection.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::registry {

struct Contact {
  std::string address;  // as the list spells it
  std::optional<base::Timestamp> confirmed_at{};
  std::optional<base::Timestamp> unsubscribed_at{};
};

// Two addresses with the same key are the same contact. URLs are compared as they are.
std::string contact_key(std::string_view address);

// The list of contacts before and after a change: JSON arrays of addresses; nothing is an empty list.
struct ContactsChange {
  std::optional<std::string> before, after;
};
// Adds to the batch that stores the new list what it means for the addresses it adds: an operator's are
// confirmed at once, the others get a mail that asks them to confirm. Adds nothing if the list is the same.
void add_contacts_change(pg::Batch& batch, const Caller& caller, const model::TenantId& tenant,
                         const ContactsChange& change);

// True if the change adds a URL, whose notices have to be signed.
bool adds_url(const ContactsChange& change);

// The purpose for which the secret of a tenant is sealed.
std::string contact_secret_context(const model::TenantId& tenant);

// A new secret for notices to URLs, as it is shown and as it is stored.
struct ContactSecret {
  std::string text, sealed;
};
ContactSecret generate_contact_secret(const crypto::MasterKeys& keys, const model::TenantId& tenant);

using ContactResult = base::Result<Contact, Rejection>;

// An operator vouches for an address on the list. Rejected for one that unsubscribed. May be repeated.
runtime::Task<ContactResult> vouch_for_contact(pg::Link& link, const Caller& caller, model::TenantId tenant,
                                               std::string address);

// Sends the confirmation mail again, as soon as the caps allow it; also to an address that unsubscribed.
runtime::Task<ContactResult> request_confirmation(pg::Link& link, const Caller& caller,
                                                  model::TenantId tenant, std::string address);

}  // namespace postrider::registry
