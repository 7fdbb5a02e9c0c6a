#include "postrider/registry/contact_links.hpp"

#include <utility>
#include <vector>

#include "postrider/base/encoding.hpp"
#include "postrider/crypto/digest.hpp"
#include "postrider/crypto/random.hpp"
#include "postrider/registry/audit.hpp"
#include "postrider/registry/contacts.sql.hpp"

namespace postrider::registry {

namespace {

using runtime::Task;

constexpr size_t kTokenBytes = 32;

std::string_view label(LinkPurpose purpose) {
  return purpose == LinkPurpose::confirm ? "confirm" : "unsubscribe";
}

struct LinkedContact {
  std::string tenant;
  std::string address;
};

template <class Rows>
std::optional<LinkedContact> read_linked(const Rows& rows, const crypto::Digest256& hash) {
  if (rows.empty()) return std::nullopt;
  const sql::LinkRow row = rows.front();
  if (!crypto::constant_time_equal(row.hash.view, hash.view())) return std::nullopt;
  return LinkedContact{std::string(row.tenant_id), std::string(row.address)};
}

// The contact that a valid link leads to. A confirmation link is used up by it.
Task<std::optional<LinkedContact>> find_linked(pg::Transaction& transaction, LinkPurpose purpose,
                                               const crypto::Digest256& hash) {
  if (purpose == LinkPurpose::confirm) {
    const auto taken = co_await transaction.run(sql::take_confirmation_link{.hash = pg::Bytes(hash.view())});
    co_return read_linked(taken, hash);
  }
  const auto found = co_await transaction.run(sql::find_unsubscribe_link{.hash = pg::Bytes(hash.view())});
  co_return read_linked(found, hash);
}

}  // namespace

Task<std::string> create_contact_link(pg::Link& link, NewLink wanted) {
  const std::string token = base::hex_encode(crypto::random_bytes(kTokenBytes));
  const crypto::Digest256 hash = crypto::sha256(token);
  const int days = wanted.purpose == LinkPurpose::confirm ? confirmation_link_days : unsubscribe_link_days;
  co_await link.run(sql::insert_link{.hash = pg::Bytes(hash.view()),
                                     .purpose = label(wanted.purpose),
                                     .tenant = wanted.tenant,
                                     .address = wanted.address,
                                     .days = days});
  co_return "/contacts/" + std::string(label(wanted.purpose)) + "/" + token;
}

Task<bool> follow_contact_link(pg::Link& link, const Caller& caller, LinkPurpose purpose, std::string token) {
  if (!is_link_token(token)) co_return false;
  const bool confirms = purpose == LinkPurpose::confirm;
  const crypto::Digest256 hash = crypto::sha256(token);
  pg::Transaction transaction = co_await link.begin();
  const std::optional<LinkedContact> contact = co_await find_linked(transaction, purpose, hash);
  if (!contact) co_return false;
  const auto& [tenant, address] = *contact;
  bool is_repeated = false;
  if (confirms) {
    co_await transaction.run(sql::confirm_contact{.tenant = tenant, .address = address},
                             sql::forget_confirmations{.tenant = tenant, .address = address});
  } else {
    const auto changed =
        co_await transaction.run(sql::unsubscribe_contact{.tenant = tenant, .address = address});
    is_repeated = changed.empty();
  }
  if (!is_repeated) {
    pg::Batch audit;
    add_audit(audit, caller,
              {.action = confirms ? "contact.confirm" : "contact.unsubscribe",
               .tenant = tenant,
               .object = address});
    co_await transaction.run(std::move(audit));
  }
  co_await transaction.commit();
  co_return true;
}

bool is_link_token(std::string_view text) {
  return text.size() == 2 * kTokenBytes &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace postrider::registry
