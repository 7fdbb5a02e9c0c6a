#include "postrider/outbox/sources.hpp"

#include "postrider/outbox/sources.sql.hpp"

namespace postrider::outbox {

namespace {

using runtime::Task;

std::string context(const std::string& id) {
  return "outbox_source/" + id;
}

Source read_source(const pg::Rows& rows, size_t row) {
  return {rows.get<std::string>(row, 0), rows.get<std::string>(row, 1),
          std::string(rows.get<pg::Bytes>(row, 2).view), rows.get<base::Timestamp>(row, 3),
          rows.get<base::Timestamp>(row, 4)};
}

}  // namespace

std::string seal_url(const crypto::MasterKeys& keys, const std::string& id, const std::string& url) {
  return keys.seal(url, context(id));
}

base::Result<std::string, crypto::OpenError> open_url(const crypto::MasterKeys& keys, const Source& source) {
  return keys.open(source.sealed, context(source.id));
}

Task<std::vector<Source>> list_sources(pg::Link& link) {
  const auto rows = co_await link.run_one(sql::list_sources);
  std::vector<Source> sources;
  for (size_t i = 0; i < rows.size(); ++i) sources.push_back(read_source(rows, i));
  co_return sources;
}

Task<std::optional<Source>> find_source(pg::Link& link, std::string id) {
  pg::Params params(id);
  const auto rows = co_await link.run_one(sql::find_source, std::move(params));
  std::optional<Source> found;
  if (!rows.empty()) found = read_source(rows, 0);
  co_return found;
}

Task<bool> put_source(pg::Link& link, Source source) {
  pg::Params params(source.id, source.shown_url, pg::Bytes{source.sealed});
  const auto rows = co_await link.run_one(sql::put_source, std::move(params));
  co_return rows.get<bool>(0, 0);
}

Task<bool> delete_source(pg::Link& link, std::string id) {
  pg::Params params(id);
  const auto rows = co_await link.run_one(sql::delete_source, std::move(params));
  co_return rows.affected_rows() > 0;
}

}  // namespace postrider::outbox
