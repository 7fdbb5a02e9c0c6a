#include "postrider/api/outbox_database.hpp"

#include "postrider/outbox/sources.hpp"
#include "postrider/pg/connection.hpp"

namespace postrider::api {

namespace {
constexpr pg::Milliseconds kConnectTimeout{3'000};
}

http::Problem unknown_outbox() {
  http::Problem problem;
  problem.status = 404;
  problem.detail = "there is no such outbox";
  return problem;
}

const config::OutboxConfig* find_configured(const Call& call, const std::string& id) {
  for (const auto& outbox : call.services.config.outboxes)
    if (outbox.name == id) return &outbox;
  return nullptr;
}

Task<std::optional<std::vector<pg::Rows>>> run_there(Call& call, std::string id, pg::Batch batch,
                                                     pg::Batch note) {
  std::optional<std::vector<pg::Rows>> answers;
  const pg::Pool::Lease lease = co_await call.database();
  pg::ConnectOptions options;
  if (const auto* configured = find_configured(call, id)) {
    options.url = configured->database_url;
  } else if (id != outbox::kLocal) {
    auto finding = outbox::find_source(*lease, id);
    const auto source = co_await finding;
    if (!source) co_return answers;
    const auto url = outbox::open_url(call.services.registry.keys, *source);
    if (!url) throw pg::Error(pg::Kind::unavailable, "the outbox's database URL cannot be opened");
    options.url = *url;
  }
  if (!note.empty()) co_await lease->run(std::move(note));
  if (options.url.empty()) {
    answers = co_await lease->run(std::move(batch));
    co_return answers;
  }
  options.application_name = "postrider api";
  options.connect_timeout = kConnectTimeout;
  auto opening = pg::Connection::open(call.services.loop, options);
  const auto connection = co_await opening;
  answers = co_await connection->run(std::move(batch));
  co_return answers;
}

}  // namespace postrider::api
