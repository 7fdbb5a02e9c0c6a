// Taking and sending notices and confirmation mails.
#include "postrider/upkeep/notices.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "postrider/base/check.hpp"
#include "postrider/upkeep/confirmations.hpp"
#include "postrider/upkeep/upkeep_testing.hpp"
#include "support/receiver.hpp"

namespace postrider::upkeep {
namespace {

// A mail server that accepts connections and never says anything.
struct SilentMailServer {
  SilentMailServer() : socket(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    const bool is_ready =
        bind(socket, reinterpret_cast<sockaddr*>(&address), size) == 0 && listen(socket, 16) == 0;
    CHECK(is_ready);
    getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
    url = "smtp://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  }
  ~SilentMailServer() { close(socket); }
  int socket;
  std::string url;
};

struct NoticesTest : UpkeepTest {
  ~NoticesTest() override { client.close(); }

  void list_contacts(const std::vector<std::string>& contacts) {
    std::string json, list;
    for (const std::string& contact : contacts) {
      json += (json.empty() ? "\"" : ",\"") + contact + "\"";
      list += (list.empty() ? "" : ",") + contact;
    }
    db.sql("update tenant set contacts = '[" + json + "]' where id = 'acme'");
    listed = "{" + list + "}";
  }
  // A warning about a new endpoint to all contacts, due now; the endpoint.
  std::string make_notice(int minutes_ago = 0) {
    const std::string endpoint = make_endpoint();
    db.sql("insert into notice (endpoint_id, tenant_id, kind, stage, contacts, due_at) values (" + endpoint +
           ", 'acme', 'warning', 50, '" + listed + "', now() - interval '" + std::to_string(minutes_ago) +
           " minutes')");
    return endpoint;
  }
  std::string take() { return db.sql("select outcome, endpoint_id from take_notice('{}', 200)"); }
  std::string waiting(const std::string& endpoint) {
    return db.sql("select contacts, tries, due_at > now() from notice where endpoint_id = " + endpoint);
  }
  runtime::Task<void> until(std::string sql, std::string wanted) {
    runtime::Wakeup turn(loop);
    const base::SteadyTime deadline = base::BootClock::now() + 60s;
    while (db.sql(sql) != wanted && base::BootClock::now() < deadline) co_await turn.wait_for(1ms);
    EXPECT_EQ(db.sql(sql), wanted);
  }

  http::AddressGuard guard{{.allow_http = true, .allow_networks = {*http::Network::parse("127.0.0.0/8")}}};
  http::TlsContext tls{{.trust_system_store = false}};
  http::Client client{loop, guard, tls, http::ClientOptions{}};
  crypto::MasterKeys keys = *crypto::MasterKeys::parse(crypto::MasterKeys::generate());
  telemetry::Metrics metrics;
  support::Receiver receiver;
  std::string listed = "{ops@acme.example}";
};

TEST_F(NoticesTest, OneNoticeTakesALimitedTimeAndThoseItDidNotReachComeFirstNextTime) {
  const std::string silent = receiver.url("/silent"), last = receiver.url("/last");
  receiver.answer("/silent", {.hangs = true});
  list_contacts({silent, last});
  const std::string endpoint = make_notice();
  MailSender mails(loop, {});
  Notices notices(loop, {link, client, keys, mails, metrics}, {.time = 1s});
  notices.start();
  run(until("select tries, due_at < now() + interval '10 minutes' from notice", "1|t"));
  EXPECT_EQ(receiver.count("/silent"), 1u);
  EXPECT_EQ(waiting(endpoint), "{" + last + "," + silent + "}|1|t");
  EXPECT_EQ(receiver.count("/last"), 0u) << "the time was used up";

  // The time belongs to the notice, not to the contact: now the other contact gets it, and the first fails
  // again.
  db.sql("update notice set due_at = now()");
  run(until("select tries, due_at < now() + interval '10 minutes' from notice", "2|t"));
  EXPECT_EQ(waiting(endpoint), "{" + silent + "}|2|t");
  EXPECT_EQ(receiver.count("/last"), 1u);
  receiver.answer("/silent", {});
  run(notices.stop());
}

TEST_F(NoticesTest, AMailServerThatDoesNotRespondTakesNoLonger) {
  const SilentMailServer server;
  const std::string url = receiver.url("/last");
  list_contacts({url, "ops@acme.example"});
  const std::string endpoint = make_notice();
  MailSender mails(loop,
                   {.server = {.url = server.url, .ca_file = ""}, .from = "a@b.example", .public_url = ""});
  Notices notices(loop, {link, client, keys, mails, metrics}, {.time = 1s});
  notices.start();
  run(until("select tries, due_at < now() + interval '10 minutes' from notice", "1|t"));
  EXPECT_EQ(waiting(endpoint), "{" + url + ",ops@acme.example}|1|t");
  EXPECT_EQ(receiver.count("/last"), 0u) << "mails come first, and the time was used up";
  run(notices.stop());
}

TEST_F(NoticesTest, AnEndpointThatSomeoneHasLockedDelaysNoOtherNotice) {
  const std::string held = make_notice(5), free = make_notice();
  support::SyncSql person(db.url());
  person("begin; update endpoint set description = 'left open' where id = " + held);
  db.sql("set lock_timeout = '1s'");
  EXPECT_EQ(take(), "send|" + free.substr(1, 36));
  EXPECT_EQ(take(), "");
  person("commit");
  EXPECT_EQ(take(), "send|" + held.substr(1, 36)) << "it was only left for later";
}

TEST_F(NoticesTest, ANoticeIsFinishedWhileItsEndpointIsLocked) {
  list_contacts({receiver.url("/ops")});
  receiver.answer("/ops", {.hangs = true});
  const std::string endpoint = make_notice();
  MailSender mails(loop, {});
  Notices notices(loop, {link, client, keys, mails, metrics}, {});
  notices.start();
  run(until("select tries from notice", "1"));
  support::SyncSql person(db.url());
  person("begin; update endpoint set description = 'left open' where id = " + endpoint);
  receiver.answer("/ops", {});
  run(until("select count(*) from notice", "0"));
  person("commit");
  EXPECT_EQ(db.sql("select notified_stage, notified_at is not null from endpoint where id = " + endpoint),
            "50|t");
  run(notices.stop());
}

struct ConfirmationsTest : UpkeepTest {
  // A request of the tenant for that address, with the limit of one mail per mailbox and day.
  std::string ask(const std::string& tenant, const std::string& address) {
    db.sql("insert into tenant (id) values ('" + tenant +
           "') on conflict do nothing; update tenant set contacts = '[\"" + address + "\"]' where id = '" +
           tenant + "'; insert into contact_request (tenant_id, address) values ('" + tenant + "', '" +
           address + "')");
    const std::string outcome = db.sql("select outcome from take_confirmation(1000, 1)");
    db.sql("delete from contact_request");
    return outcome;
  }
  void next_day(int days = 1) { db.sql("update mail_budget set day = day - " + std::to_string(days)); }
};

TEST_F(ConfirmationsTest, AMailboxGetsThreeTimesItsDailyMailsInThirtyDays) {
  for (int day = 0; day < 3; ++day) {
    EXPECT_EQ(ask("acme", "victim@example.com"), "send") << day;
    EXPECT_EQ(ask("acme", "victim@example.com"), "capped") << day;
    next_day();
  }
  EXPECT_EQ(ask("acme", "victim@example.com"), "capped");
  EXPECT_EQ(ask("other", "victim@example.com"), "capped") << "whichever tenant asks";
  EXPECT_EQ(ask("acme", "victim+tag@example.com"), "capped") << "whatever tag the address has";
  EXPECT_EQ(ask("acme", "someone@example.com"), "send") << "another mailbox has its own";
  next_day(26);
  EXPECT_EQ(ask("acme", "victim@example.com"), "capped") << "the first mail is 29 days old";
  next_day();
  EXPECT_EQ(ask("acme", "victim@example.com"), "send") << "the first mail no longer counts";
  next_day();
  EXPECT_EQ(ask("acme", "victim@example.com"), "send") << "nor does the second";
  EXPECT_EQ(ask("acme", "victim@example.com"), "capped");
}

}  // namespace
}  // namespace postrider::upkeep
