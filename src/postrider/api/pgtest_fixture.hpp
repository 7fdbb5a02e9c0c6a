// Shared by the tests of this folder: the API on a real socket and a real Postgres.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/value.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "postrider/api/api.hpp"
#include "postrider/http/client/client.hpp"
#include "postrider/http/server/server.hpp"
#include "postrider/inbox/receiver.hpp"
#include "postrider/inbox/waiters.hpp"
#include "postrider/publish/publisher.hpp"
#include "support/database.hpp"

namespace postrider::api {

struct Reply {
  int status = 0;
  std::string head;
  std::string body;

  std::optional<std::string> header(std::string_view name) const;  // name in lower case
  boost::json::value json() const;
  // The text at a pointer of the body; other values as JSON.
  std::string at(std::string_view pointer) const;
  // Pointers of a problem's errors, each followed by a space.
  std::string pointers() const;
};

// These tests deliver nothing.
struct NoDelivery : model::Handoff {
  void offer(std::vector<model::CommittedDelivery>) override {}
};

// One node's API on a thread of its own.
class ApiServer {
 public:
  struct Options {
    std::string database_url;
    http::GuardPolicy guard;
    bool has_resolver = false;
    bool has_database = true;
    pg::Milliseconds statement_timeout{30'000};
    std::function<std::string()> readiness_note = {};
  };
  explicit ApiServer(Options options);
  ~ApiServer();

  struct Call {
    std::string method;
    std::string target;
    std::string body = {};
    std::string key = {};                                        // empty: no Authorization
    std::string headers = "content-type: application/json\r\n";  // with a body
    std::string extra_headers = {};                              // in any case
  };
  Reply send(const Call& call) const;
  // Drops cached keys and tenants, as the control log does in a node.
  void forget_cached();
  // Responses in progress that are streamed: streams and exports.
  int open_bodies();

  // A response that is read piece by piece.
  class Open {
   public:
    Open(const ApiServer& server, const Call& call);
    ~Open();
    Open(const Open&) = delete;
    Open& operator=(const Open&) = delete;
    void read_until(std::string_view text);  // fails the test if it does not come
    // Everything until the server ends the connection, which it does before the time is up or the test fails.
    std::string read_to_end();

   private:
    bool read_some();
    int fd_;
    std::string text_;
  };

  const config::Config& config() const { return config_; }
  const Api& api() const { return *api_; }
  runtime::Worker& worker() { return worker_; }

 private:
  runtime::Task<void> serve();
  runtime::Task<void> stop();
  void wait_for_database();

  config::Config config_;
  runtime::Worker worker_;
  runtime::Loop loop_;
  telemetry::Metrics metrics_;
  http::AddressGuard guard_;
  http::TlsContext tls_{{.trust_system_store = false}};
  crypto::MasterKeys keys_;
  model::IdSource ids_;
  http::Listener listener_;
  std::unique_ptr<http::Resolver> resolver_;
  std::unique_ptr<http::Client> client_;
  std::unique_ptr<pg::Pool> pool_;
  std::unique_ptr<pg::Link> lookups_;
  std::unique_ptr<pg::Link> publish_link_;
  NoDelivery no_delivery_;
  inbox::Waiters waiters_{loop_};
  base::RateLimiter publish_rates_, key_rates_;
  std::unique_ptr<publish::Publisher> publisher_;
  std::unique_ptr<inbox::Receiver> receiver_;
  std::unique_ptr<Api> api_;
  std::unique_ptr<http::Server> server_;
  runtime::TaskGroup group_;
  std::thread thread_;
};

struct ApiTest : testing::Test {
  explicit ApiTest(http::GuardPolicy guard = {}, bool has_resolver = false);

  Reply call(std::string method, std::string target, std::string body = "") {
    return server->send({std::move(method), std::move(target), std::move(body), admin_key});
  }
  Reply get(std::string target) { return call("GET", std::move(target)); }
  Reply post(std::string target, std::string body = "") {
    return call("POST", std::move(target), std::move(body));
  }
  Reply put(std::string target, std::string body) { return call("PUT", std::move(target), std::move(body)); }
  Reply patch(std::string target, std::string body) {
    return call("PATCH", std::move(target), std::move(body));
  }
  Reply remove(std::string target) { return call("DELETE", std::move(target)); }

  // Makes the tenant `acme` and returns the path of its endpoints.
  std::string make_acme();
  // The path of a new endpoint of acme.
  std::string make_endpoint(const std::string& more = "");

  // A new key; `more` continues its document: `,"tenant_id":"acme"`.
  std::string make_key(const std::string& role, const std::string& more = "") {
    const auto made = post("/v1/keys", R"({"role":")" + role + "\"" + more + "}");
    EXPECT_EQ(made.status, 201) << made.body;
    return made.at("/key");
  }

  support::Database database;
  const std::string admin_key = std::string(32, 'k');
  std::unique_ptr<ApiServer> server;
};

}  // namespace postrider::api
