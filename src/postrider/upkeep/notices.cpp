#include "postrider/upkeep/notices.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <thread>
#include <utility>

#include "postrider/base/encoding.hpp"
#include "postrider/base/version.hpp"
#include "postrider/crypto/digest.hpp"
#include "postrider/crypto/random.hpp"
#include "postrider/crypto/signing_key.hpp"
#include "postrider/pg/error.hpp"
#include "postrider/telemetry/log.hpp"
#include "postrider/upkeep/notices.sql.hpp"

namespace postrider::upkeep {

namespace {

using namespace std::chrono_literals;
using runtime::Task;
namespace json = boost::json;

constexpr auto kPass = 2s;
constexpr auto kPostTimeout = 10s;
constexpr int kRetrySeconds = 300;
constexpr int kTriesMax = 12;

std::string secret_context(const std::string& tenant) {
  return "contact_secret/" + tenant;
}

}  // namespace

Mail mail_of(const Notice& notice) {
  Mail mail;
  const std::string since = notice.failing_since ? base::to_rfc3339(*notice.failing_since) : "some time ago";
  mail.text = "Endpoint: " + notice.endpoint + "\nURL: " + notice.url + "\n\n";
  if (notice.kind == "warning") {
    mail.subject = "Webhook endpoint failing: " + notice.endpoint;
    mail.text += "Every attempt to deliver to it has failed since " + since + ". That is " +
                 std::to_string(notice.stage) +
                 " % of the time after which it is disabled.\n\nWhat to do: make the URL answer with a "
                 "status from 200 "
                 "to 299 within its timeout. Pending events are retried by themselves.\n";
  } else if (notice.kind == "disabled") {
    mail.subject = "Webhook endpoint disabled: " + notice.endpoint;
    mail.text +=
        "It is disabled: " + notice.detail.value_or("it was switched off") +
        ".\nNothing is sent to it any more, and what was pending became dead letters.\n\nWhat to do: repair "
        "the URL, test the endpoint, resume it, then replay what failed.\n";
  } else {
    mail.subject = "Webhook endpoint well again: " + notice.endpoint;
    mail.text +=
        "Deliveries to it succeed again. There is nothing to do; what failed for good can be replayed.\n";
  }
  return mail;
}

std::string json_of(const Notice& notice) {
  json::object document{{"type", "endpoint." + notice.kind},
                        {"tenant_id", notice.tenant},
                        {"endpoint_id", notice.endpoint},
                        {"url", notice.url}};
  if (notice.failing_since) document["failing_since"] = base::to_rfc3339(*notice.failing_since);
  if (notice.kind == "warning") document["percent"] = notice.stage;
  document["text"] = mail_of(notice).text;
  return json::serialize(document);
}

Notices::Notices(runtime::Loop& loop, pg::Link& link, http::Client& client, const crypto::MasterKeys& keys,
                 NoticeOptions options)
    : loop_(loop), link_(link), client_(client), keys_(keys), options_(std::move(options)), wakeup_(loop) {}

void Notices::start() {
  tasks_.spawn(run());
}

Task<void> Notices::stop() {
  is_stopping_ = true;
  wakeup_.notify();
  co_await tasks_.join();
}

Task<void> Notices::run() {
  while (!is_stopping_) {
    bool has_more = false;
    try {
      auto pass = run_once();
      has_more = co_await pass;
    } catch (const pg::Error& error) {
      if (error.kind() != pg::Kind::unavailable)
        telemetry::log_warn("notice_failed").field("error", error.what());
    }
    if (!has_more && !is_stopping_) co_await wakeup_.wait_for(kPass);
  }
}

Task<bool> Notices::run_once() {
  const pg::Rows row = co_await link_.run_one(sql::take_notice);
  if (row.empty()) co_return false;
  Notice notice{row.get<base::Uuid>(0, 0),
                row.get<std::string>(0, 1),
                row.get<std::string>(0, 2),
                row.get<std::string>(0, 3),
                row.get<std::string>(0, 4),
                row.get<int32_t>(0, 5),
                row.get<std::optional<base::Timestamp>>(0, 6),
                row.get<std::optional<std::string>>(0, 7)};
  const json::value contacts = json::parse(row.get<std::string>(0, 8));
  const bool is_last_try = row.get<int32_t>(0, 9) >= kTriesMax;
  json::array left;
  for (const json::value& contact : contacts.as_array()) {
    const std::string who = contact.is_string() ? std::string(contact.as_string()) : std::string();
    auto telling = tell(notice, who);
    const std::optional<std::string> trouble = co_await telling;
    if (trouble) {
      telemetry::log_warn("notice_failed").field("endpoint_id", notice.endpoint).field("error", *trouble);
      if (!is_last_try) left.push_back(contact);
    } else {
      telemetry::log_info("notice_sent").field("endpoint_id", notice.endpoint).field("kind", notice.kind);
    }
  }
  const std::string rest = json::serialize(left);
  pg::Params done(notice.endpoint_uuid, notice.stage, rest, kRetrySeconds);
  co_await link_.run_one(sql::finish_notice, std::move(done));
  co_return true;
}

Task<std::optional<std::string>> Notices::tell(const Notice& notice, std::string contact) {
  const bool is_url = contact.find("://") != std::string::npos;
  auto telling = is_url ? post(notice, std::move(contact)) : mail(notice, std::move(contact));
  co_return co_await telling;
}

Task<std::optional<std::string>> Notices::post(const Notice& notice, std::string contact) {
  const auto url = http::parse_url(contact);
  if (!url) co_return "the contact is no URL";
  const std::string body = json_of(notice);
  const std::string id = "ntc_" + base::hex_encode(crypto::random_bytes(16));
  const auto now = std::chrono::duration_cast<std::chrono::seconds>(base::wall_now().time_since_epoch());
  const std::string timestamp = std::to_string(now.count());
  std::string headers;
  http::append_header(headers, "content-type", "application/json");
  http::append_header(headers, "user-agent", "postrider/" + std::string(base::kVersion));
  http::append_header(headers, "webhook-id", id);
  http::append_header(headers, "webhook-timestamp", timestamp);
  pg::Params of_tenant(notice.tenant);
  const pg::Rows secret = co_await link_.run_one(sql::contact_secret, std::move(of_tenant));
  if (!secret.empty()) {
    const auto text = keys_.open(secret.get<pg::Bytes>(0, 0).view, secret_context(notice.tenant));
    if (!text.ok()) co_return "the tenant's contact secret cannot be read";
    const auto key = crypto::SigningKey::from_secret(crypto::SignatureScheme::standard, *text);
    const auto digest = crypto::hmac_sha256(key->hmac_key(), {id, ".", timestamp, ".", body});
    http::append_header(headers, "webhook-signature", "v1," + base::base64_encode(digest.view()));
  }
  http::OutboundRequest request{.url = *url};
  request.headers = headers;
  request.body = body;
  request.deadline = base::BootClock::now() + kPostTimeout;
  const http::Exchange exchange = co_await client_.send(request);
  if (const http::NetFailure* failure = exchange.failure())
    co_return failure->detail.empty() ? std::string(http::describe(failure->error)) : failure->detail;
  const int status = exchange.answer()->status;
  if (status >= 200 && status < 300) co_return std::nullopt;
  co_return "the contact answered " + std::to_string(status);
}

Task<std::optional<std::string>> Notices::mail(const Notice& notice, std::string contact) {
  if (options_.smtp_url.empty()) co_return "there is no smtp_url";
  Mail mail = mail_of(notice);
  mail.from = options_.mail_from;
  mail.to = std::move(contact);
  // A mail server may take seconds, and libcurl blocks: the loop goes on meanwhile.
  runtime::OneShot<std::optional<std::string>> answer;
  std::thread sender([this, &mail, &answer] {
    auto trouble = send_mail({options_.smtp_url, options_.ca_file}, mail);
    loop_.post([&answer, trouble = std::move(trouble)]() mutable { answer.set(std::move(trouble)); });
  });
  std::optional<std::string> trouble = co_await answer;
  sender.join();
  co_return trouble;
}

}  // namespace postrider::upkeep
