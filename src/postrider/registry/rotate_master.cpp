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

// One kind of sealed value: how those with an older key are found, and replaced.
struct Kind {
  const pg::Statement& find;
  const pg::Statement& replace;
};

Task<void> rotate_kind(pg::Link& link, const crypto::MasterKeys& keys, Kind kind, MasterRotation& total,
                       const std::function<void(const MasterRotation&)>& progress) {
  std::string after;
  const std::string current(keys.current_id().view());
  while (true) {
    pg::Params page(after, pg::Bytes{current}, kRowsPerStep);
    const pg::Rows rows = co_await link.run_one(kind.find, std::move(page));
    if (rows.empty()) co_return;
    std::vector<std::string> ids;
    std::vector<std::string> befores, afters;
    for (size_t row = 0; row < rows.size(); ++row) {
      after = rows.get<std::string>(row, 0);
      const auto context = rows.get<std::string_view>(row, 1);
      const std::string_view sealed = rows.get<pg::Bytes>(row, 2).view;
      const auto plain = keys.open(sealed, context);
      if (!plain) {
        ++total.unreadable;
        continue;
      }
      ids.push_back(after);
      befores.emplace_back(sealed);
      afters.push_back(keys.seal(*plain, context));
    }
    std::vector<pg::Bytes> before_bytes;
    for (const auto& text : befores) before_bytes.push_back(pg::Bytes{text});
    std::vector<pg::Bytes> after_bytes;
    for (const auto& text : afters) after_bytes.push_back(pg::Bytes{text});
    pg::Params change(ids, before_bytes, after_bytes);
    const pg::Rows changed = co_await link.run_one(kind.replace, std::move(change));
    total.resealed += static_cast<int64_t>(changed.affected_rows());
    progress(total);
  }
}

}  // namespace

Task<MasterRotation> rotate_master_key(pg::Link& link, const crypto::MasterKeys& keys, const Caller& caller,
                                       std::function<void(const MasterRotation&)> progress) {
  MasterRotation total;
  const Kind kinds[] = {{sql::outdated_secrets, sql::reseal_secrets},
                        {sql::outdated_headers, sql::reseal_headers},
                        {sql::outdated_source_secrets, sql::reseal_source_secrets},
                        {sql::outdated_outbox_urls, sql::reseal_outbox_urls},
                        {sql::outdated_contact_secrets, sql::reseal_contact_secrets}};
  for (const Kind& kind : kinds) co_await rotate_kind(link, keys, kind, total, progress);
  Snapshot after;
  after.add("resealed", total.resealed).add("unreadable", total.unreadable);
  pg::Batch note;
  add_audit(note, caller, {.action = "master_key.rotate", .object = "master_key", .after = std::move(after)});
  co_await link.run(std::move(note));
  co_return total;
}

}  // namespace postrider::registry
