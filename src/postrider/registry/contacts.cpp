#include "postrider/registry/contacts.hpp"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <set>
#include <utility>
#include <vector>

#include "postrider/crypto/signing_key.hpp"
#include "postrider/registry/audit.hpp"
#include "postrider/registry/contacts.sql.hpp"
#include "postrider/registry/tenants.sql.hpp"

namespace postrider::registry {

namespace {

using model::TenantId;
using runtime::Task;

std::vector<std::string> addresses(const std::optional<std::string>& list) {
  std::vector<std::string> found;
  if (!list) return found;
  const boost::json::value parsed = boost::json::parse(*list);
  for (const auto& address : parsed.as_array()) found.emplace_back(address.as_string());
  return found;
}

struct Listed {
  Contact contact;
  bool is_url = false;
};

// Locks the tenant, so that the list stays as it is, and finds the address on it.
Task<base::Result<Listed, Rejection>> find_listed(pg::Transaction& transaction, const TenantId& tenant,
                                                  const std::string& address) {
  const auto [tenant_rows, contact_rows] = co_await transaction.run(
      sql::lock_tenant{.id = tenant}, sql::find_contact{.tenant = tenant, .address = address});
  if (tenant_rows.empty()) co_return base::Failure{Rejection{RejectionKind::unknown_tenant}};
  if (contact_rows.empty()) co_return base::Failure{Rejection{RejectionKind::unknown_contact}};
  const auto row = contact_rows.front();
  Listed listed;
  listed.contact.address = row.contact;
  listed.is_url = row.is_url;
  listed.contact.confirmed_at = row.confirmed_at;
  listed.contact.unsubscribed_at = row.unsubscribed_at;
  if (listed.is_url) co_return base::Failure{Rejection{RejectionKind::url_contact}};
  co_return listed;
}

Snapshot snapshot(const Contact& contact) {
  Snapshot fields;
  fields.add("confirmed_at", contact.confirmed_at).add("unsubscribed_at", contact.unsubscribed_at);
  return fields;
}

}  // namespace

std::string contact_key(std::string_view address) {
  std::string key(address);
  if (key.find("://") != std::string::npos) return key;
  for (char& c : key)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
  return key;
}

bool adds_url(const ContactsChange& change) {
  const std::vector<std::string> before = addresses(change.before);
  return std::ranges::any_of(addresses(change.after), [&before](const std::string& address) {
    return address.find("://") != std::string::npos && std::ranges::find(before, address) == before.end();
  });
}

std::string contact_secret_context(const TenantId& tenant) {
  return "contact_secret/" + tenant;
}

ContactSecret generate_contact_secret(const crypto::MasterKeys& keys, const TenantId& tenant) {
  std::string text = crypto::generate_secret(crypto::SignatureScheme::standard);
  std::string sealed = keys.seal(crypto::Purpose::stored_secret, text, contact_secret_context(tenant));
  return {std::move(text), std::move(sealed)};
}

void add_contacts_change(pg::Batch& batch, const Caller& caller, const TenantId& tenant,
                         const ContactsChange& change) {
  const std::vector<std::string> before = addresses(change.before), after = addresses(change.after);
  if (before == after) return;
  std::set<std::string> known;
  for (const std::string& address : before) known.insert(contact_key(address));
  std::vector<std::string> added;
  for (const std::string& address : after)
    if (known.insert(contact_key(address)).second) added.push_back(address);
  batch.add(sql::add_contacts{.tenant = tenant, .addresses = added, .is_operator = caller.is_operator()});
}

Task<ContactResult> vouch_for_contact(pg::Link& link, const Caller& caller, TenantId tenant,
                                      std::string address) {
  pg::Transaction transaction = co_await link.begin();
  const base::Result<Listed, Rejection> listed = co_await find_listed(transaction, tenant, address);
  if (!listed) co_return base::Failure{listed.error()};
  Contact contact = listed->contact;
  if (contact.unsubscribed_at) co_return base::Failure{Rejection{RejectionKind::contact_unsubscribed}};
  if (contact.confirmed_at) co_return contact;
  const auto [vouched, forgotten] =
      co_await transaction.run(sql::vouch_for_contact{.tenant = tenant, .address = address},
                               sql::forget_confirmations{.tenant = tenant, .address = address});
  // It unsubscribed since it was read.
  if (vouched.empty()) co_return base::Failure{Rejection{RejectionKind::contact_unsubscribed}};
  const Snapshot before = snapshot(contact);
  contact.confirmed_at = vouched.front().confirmed_at;
  pg::Batch audit;
  add_audit(audit, caller,
            {.action = "contact.vouch",
             .tenant = tenant,
             .object = contact.address,
             .before = before,
             .after = snapshot(contact)});
  co_await transaction.run(std::move(audit));
  co_await transaction.commit();
  co_return contact;
}

Task<ContactResult> request_confirmation(pg::Link& link, const Caller& caller, TenantId tenant,
                                         std::string address) {
  pg::Transaction transaction = co_await link.begin();
  const base::Result<Listed, Rejection> listed = co_await find_listed(transaction, tenant, address);
  if (!listed) co_return base::Failure{listed.error()};
  const Contact contact = listed->contact;
  if (contact.confirmed_at && !contact.unsubscribed_at)
    co_return base::Failure{Rejection{RejectionKind::contact_confirmed}};
  pg::Batch request;
  request.add(sql::request_confirmation{.tenant = tenant, .address = address});
  add_audit(request, caller,
            {.action = "contact.request_confirmation", .tenant = tenant, .object = contact.address});
  co_await transaction.run(std::move(request));
  co_await transaction.commit();
  co_return contact;
}

}  // namespace postrider::registry
