// `postrider listen --forward-to`: a tenant's events on a developer's machine.
//
// Follows the tenant's stream. A break of the connection is said, and followed by a catch-up behind the last
// event that was dealt with; what comes twice is known by its id, left out and counted.
#include <boost/json/parse.hpp>
#include <chrono>
#include <cstdio>

#include "postrider/base/encoding.hpp"
#include "postrider/base/time.hpp"
#include "postrider/cli/event_stream.hpp"
#include "postrider/cli/groups.hpp"
#include "postrider/cli/invocation.hpp"
#include "postrider/crypto/digest.hpp"
#include "postrider/crypto/signing_key.hpp"

namespace postrider::cli {

namespace {

using namespace std::chrono_literals;

constexpr auto kForwardTimeout = 30s;

class Listening {
 public:
  explicit Listening(Invocation& in)
      : in_(in),
        type_(in.value("--type")),
        receiver_({.url = in.value("--forward-to").value_or("")}),
        secret_(crypto::generate_secret(crypto::SignatureScheme::standard)) {}

  int run() {
    std::fprintf(stderr, "forwarding to %s; signed with %s while this runs\n",
                 visible(receiver_.url()).c_str(), secret_.c_str());
    StreamOptions options{Target("v1", "tenants", in_.argument("tenant"), "stream"), std::nullopt,
                          std::nullopt};
    options.target.with("only", "events");
    if (const auto since = in_.value("--since")) options.after = "@" + *since;
    EventStream stream(in_, std::move(options));
    stream.follow([this](const StreamMessage& message) { return take(message); });
    return done;
  }

 private:
  // False: it was forwarded before.
  bool take(const StreamMessage& message) {
    boost::system::error_code error;
    const json::value value = json::parse(message.data, error);
    const json::object* event = error ? nullptr : value.if_object();
    if (message.kind != "event" || event == nullptr) return true;
    if (!seen_.add(std::string(event->at("id").as_string()))) return false;
    if (type_ && event->at("type").as_string() != *type_) return true;
    forward(*event);
    return true;
  }

  void forward(const json::object& event) {
    const std::string id(event.at("id").as_string());
    const std::string what = visible(id + " " + std::string(event.at("type").as_string()));
    const json::value* body = event.if_contains("body");
    if (body == nullptr || !body->is_string()) {
      in_.out().line(what + " not delivered: this key may not see payloads");
      std::fflush(stdout);
      return;
    }
    try {
      receiver_.text(signed_call(id, std::string(body->as_string())));
      in_.out().line(what + " delivered");
    } catch (const ServerProblem& problem) {
      in_.out().line(what + " answered " + std::to_string(problem.status));
    } catch (const ServerUnreachable& error) {
      in_.out().line(what + " not delivered: " + visible(error.what()));
    }
    std::fflush(stdout);
  }

  // The bytes that every receiver gets, with a signature of this run.
  RemoteCall signed_call(const std::string& id, std::string body) const {
    const auto now = std::chrono::duration_cast<std::chrono::seconds>(base::wall_now().time_since_epoch());
    const std::string timestamp = std::to_string(now.count());
    const auto key = crypto::SigningKey::from_secret(crypto::SignatureScheme::standard, secret_);
    const auto digest = crypto::hmac_sha256(key->hmac_key(), {id, ".", timestamp, ".", body});
    RemoteCall call{"POST", Target()};
    call.body = std::move(body);
    call.timeout = kForwardTimeout;
    call.headers = {{"webhook-id", id},
                    {"webhook-timestamp", timestamp},
                    {"webhook-signature", "v1," + base::base64_encode(digest.view())},
                    {"webhook-attempt", "1"}};
    return call;
  }

  Invocation& in_;
  std::optional<std::string> type_;
  Remote receiver_;
  std::string secret_;
  Seen seen_;
};

int listen(Invocation& in) {
  if (!in.value("--forward-to")) throw Misuse("--forward-to says where the events go.");
  Listening listening(in);
  return listening.run();
}

}  // namespace

Command listen_command() {
  return command(
      "listen", "Forward a tenant's events to a URL of this machine, as they are published",
      {argument("tenant", "The tenant's id"), option("--forward-to", "URL", "As http://localhost:3000/hooks"),
       option("--type", "TYPE", "Only this type"),
       option("--since", "TIME", "Also what was published from then on, RFC 3339")},
      listen);
}

}  // namespace postrider::cli
