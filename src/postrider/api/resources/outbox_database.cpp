#include "postrider/api/resources/outbox_database.hpp"

#include <algorithm>
#include <array>

#include "postrider/outbox/sources.hpp"
#include "postrider/pg/connection.hpp"

namespace postrider::api {

namespace {
constexpr pg::Milliseconds kConnectTimeout{3'000};
constexpr std::array<std::string_view, 5> kNotReady{"42P01", "42883", "3F000", "42501", "42703"};

http::Problem unusable(const std::string& why) {
  return try_later(503, "unavailable", "The database of this outbox cannot be used: " + why);
}

// Without details of rows.
std::string reason_of(const pg::Error& error) {
  if (error.sqlstate().empty() || error.kind() == pg::Kind::unavailable) return error.what();
  const bool is_not_ready =
      std::find(kNotReady.begin(), kNotReady.end(), error.sqlstate()) != kNotReady.end();
  if (!is_not_ready) return "it rejected the statement (SQLSTATE " + error.sqlstate() + ")";
  return "the outbox is not installed (run `postrider outbox install`), or the role lacks permission (`grant "
         "postrider_relay to …`)";
}

Task<ThereResult> run_elsewhere(runtime::Loop& loop, pg::ConnectOptions options, pg::Batch batch) {
  try {
    auto opening = pg::Connection::open(loop, std::move(options));
    const auto connection = co_await opening;
    auto results = co_await connection->run(std::move(batch));
    co_return results;
  } catch (const pg::Error& error) {
    co_return base::Failure{unusable(reason_of(error))};
  }
}

}  // namespace

http::Problem unusable_outbox(const pg::Error& error) {
  return unusable(reason_of(error));
}

http::Problem unknown_outbox() {
  return unknown("outbox");
}

const config::OutboxConfig* find_configured(const Call& call, const std::string& id) {
  for (const auto& outbox : call.services.config.outboxes)
    if (outbox.name == id) return &outbox;
  return nullptr;
}

Task<ThereResult> run_there(Call& call, std::string id, pg::Batch batch, pg::Batch note) {
  const pg::Pool::Handle lease = co_await call.database();
  pg::ConnectOptions options;
  if (const auto* configured = find_configured(call, id)) {
    options.url = configured->database_url;
  } else if (id != outbox::kLocal) {
    auto finding = outbox::find_source(*lease, id);
    const auto source = co_await finding;
    if (!source) co_return base::Failure{unknown_outbox()};
    const auto url = outbox::open_url(call.services.registry.keys, *source);
    if (!url)
      co_return base::Failure{
          unusable("its URL is encrypted with a master key that this server does not have")};
    options.url = *url;
  }
  if (!note.empty()) co_await lease->run(std::move(note));
  if (options.url.empty()) {
    auto results = co_await lease->run(std::move(batch));
    co_return results;
  }
  options.application_name = "postrider api";
  options.connect_timeout = kConnectTimeout;
  auto asking = run_elsewhere(call.services.loop, std::move(options), std::move(batch));
  co_return co_await asking;
}

}  // namespace postrider::api
