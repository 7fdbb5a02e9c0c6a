#include "postrider/registry/rotate_master.hpp"

#include <string>
#include <utility>
#include <vector>

#include "postrider/registry/audit.hpp"
#include "postrider/registry/rotate_master.sql.hpp"

namespace postrider::registry {

namespace {

using runtime::Task;

constexpr int kRowsPerStep = 200;

// One kind of sealed value: `Find` finds those with an older key, `Replace` writes them.
template <class Find, class Replace>
Task<void> rotate_kind(pg::Link& link, const crypto::MasterKeys& keys, MasterRotation& total,
                       const std::function<void(const MasterRotation&)>& progress) {
  std::string after;
  const std::string current(keys.current_id().view());
  while (true) {
    const Find outdated{.after = after, .key = pg::Bytes(current), .limit = kRowsPerStep};
    const auto rows = co_await link.run(outdated);
    if (rows.empty()) co_return;
    std::vector<std::string> ids;
    std::vector<std::string> befores, afters;
    for (const auto& row : rows) {
      after = row.shown_id;
      const std::string_view context = row.context;
      const std::string_view sealed = row.sealed.view;
      const auto plain = keys.open(crypto::Purpose::stored_secret, sealed, context);
      if (!plain) {
        ++total.unreadable;
        continue;
      }
      ids.push_back(after);
      befores.emplace_back(sealed);
      afters.push_back(keys.seal(crypto::Purpose::stored_secret, *plain, context));
    }
    std::vector<pg::Bytes> before_bytes;
    for (const auto& text : befores) before_bytes.push_back(pg::Bytes{text});
    std::vector<pg::Bytes> after_bytes;
    for (const auto& text : afters) after_bytes.push_back(pg::Bytes{text});
    const Replace resealed{.ids = ids, .before = before_bytes, .after = after_bytes};
    const auto changed = co_await link.run(resealed);
    total.resealed += static_cast<int64_t>(changed.affected_rows());
    progress(total);
  }
}

}  // namespace

Task<MasterRotation> rotate_master_key(pg::Link& link, const crypto::MasterKeys& keys, const Caller& caller,
                                       std::function<void(const MasterRotation&)> progress) {
  MasterRotation total;
  co_await rotate_kind<sql::outdated_secrets, sql::reseal_secrets>(link, keys, total, progress);
  co_await rotate_kind<sql::outdated_headers, sql::reseal_headers>(link, keys, total, progress);
  co_await rotate_kind<sql::outdated_source_secrets, sql::reseal_source_secrets>(link, keys, total, progress);
  co_await rotate_kind<sql::outdated_outbox_urls, sql::reseal_outbox_urls>(link, keys, total, progress);
  co_await rotate_kind<sql::outdated_contact_secrets, sql::reseal_contact_secrets>(link, keys, total,
                                                                                   progress);
  Snapshot after;
  after.add("resealed", total.resealed).add("unreadable", total.unreadable);
  pg::Batch note;
  add_audit(note, caller, {.action = "master_key.rotate", .object = "master_key", .after = std::move(after)});
  co_await link.run(std::move(note));
  co_return total;
}

}  // namespace postrider::registry
