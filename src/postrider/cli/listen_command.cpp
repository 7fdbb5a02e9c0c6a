// `postrider listen`: a tenant's events, or the messages of an inbound source, on a developer's machine.
//
// Follows the tenant's stream. After an interruption it catches up after the last event that it handled;
// events that come twice are recognized by their ID, left out and counted.
#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <thread>

#include "postrider/base/encoding.hpp"
#include "postrider/base/time.hpp"
#include "postrider/cli/endpoint_view.hpp"
#include "postrider/cli/event_stream.hpp"
#include "postrider/cli/groups.hpp"
#include "postrider/cli/human.hpp"
#include "postrider/cli/invocation.hpp"
#include "postrider/cli/listen_secret.hpp"
#include "postrider/crypto/digest.hpp"
#include "postrider/crypto/signing_key.hpp"
#include "postrider/http/url.hpp"

namespace postrider::cli {

namespace {

using namespace std::chrono_literals;

constexpr auto kForwardTimeout = 30s;
constexpr auto kPollPause = 1s;
constexpr auto kLateMax = 10s;  // messages may become visible this much later than their time says

// "invoice.paid", "invoice.*" or "*".
bool matches(const std::string& pattern, std::string_view type) {
  if (pattern == "*") return true;
  if (pattern.ends_with(".*")) return type.starts_with(pattern.substr(0, pattern.size() - 1));
  return type == pattern;
}

std::string checked_forward_url(const std::string& text) {
  const bool has_scheme = text.find("://") != std::string::npos;
  const auto url = http::parse_url(has_scheme ? text : "http://" + text);
  const bool is_only_port = text.find_first_not_of("0123456789") == std::string::npos;
  if (!url || is_only_port)
    throw Misuse("Invalid value \"" + text + "\" for --forward-to: expected a URL such as http://localhost:" +
                 (is_only_port && !text.empty() ? text : "3000") + "/hooks.");
  return has_scheme ? text : "http://" + text;
}

std::string clock_text() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  char text[16];
  std::strftime(text, sizeof text, "%H:%M:%S", &local);
  return text;
}

// Prints a line for each event or message, and forwards it if there is somewhere to forward it to.
class Forwarder {
 public:
  explicit Forwarder(Invocation& in) : in_(in) {
    if (const auto url = in.value("--forward-to"))
      receiver_ = std::make_unique<Remote>(ServerOptions{.url = checked_forward_url(*url)});
  }

  bool is_forwarding() const { return receiver_ != nullptr; }
  std::string url() const { return receiver_ ? receiver_->url() : ""; }

  void pass_on(const std::string& id, const std::string& type, RemoteCall call) {
    json::object line{{"at", base::to_rfc3339(base::wall_now())}, {"id", id}, {"type", type}};
    std::string result;
    if (receiver_) result = "  → " + forward(std::move(call), line);
    print(line, clock_text() + "  " + visible(type) + "  " + visible(id) + result);
  }

  void report_hidden(const std::string& id, const std::string& type) {
    const char* const error = "this API key may not read event data";
    print({{"at", base::to_rfc3339(base::wall_now())}, {"id", id}, {"type", type}, {"error", error}},
          clock_text() + "  " + visible(type) + "  " + visible(id) + "  → not forwarded: " + error);
  }

 private:
  std::string forward(RemoteCall call, json::object& line) {
    const auto begin = std::chrono::steady_clock::now();
    call.timeout = kForwardTimeout;
    try {
      const int status = receiver_->status_of(call);
      const auto took =
          std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begin);
      line["status_code"] = status;
      line["latency_ms"] = took.count() / 1000;
      return http_status_text(json::value(status)).substr(5) + " (" + duration_text(took) + ")";
    } catch (const ServerUnreachable& error) {
      line["error"] = error.what();
      return "failed: " + visible(error.what());
    }
  }

  void print(const json::object& line, const std::string& text) {
    in_.out().line(in_.as_json() ? json::serialize(line) : text);
    std::fflush(stdout);
  }

  Invocation& in_;
  std::unique_ptr<Remote> receiver_;
};

class TenantListener {
 public:
  explicit TenantListener(Invocation& in)
      : in_(in),
        types_(in.values("--event-type")),
        forwarder_(in),
        secret_(listen_secret(in, in.argument("tenant"))) {}

  int run() {
    if (forwarder_.is_forwarding())
      in_.out().note("Forwarding to " + visible(forwarder_.url()) + "\nSigning secret: " + secret_);
    StreamOptions options{Target("v1", "tenants", in_.argument("tenant"), "stream"), std::nullopt,
                          std::nullopt};
    options.target.with("only", "events");
    if (const auto since = in_.time("--since")) options.after = "@" + *since;
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
    const std::string id(event->at("id").as_string()), type(event->at("type").as_string());
    if (!seen_.add(id)) return false;
    const bool is_wanted =
        types_.empty() || std::any_of(types_.begin(), types_.end(),
                                      [&](const std::string& pattern) { return matches(pattern, type); });
    if (!is_wanted) return true;
    const json::value* body = event->if_contains("body");
    if (body != nullptr && body->is_string())
      forwarder_.pass_on(id, type, signed_call(id, std::string(body->as_string())));
    else if (forwarder_.is_forwarding())
      forwarder_.report_hidden(id, type);
    else
      forwarder_.pass_on(id, type, RemoteCall{"POST", Target()});
    return true;
  }

  // The bytes that every receiver gets, signed with this machine's secret.
  RemoteCall signed_call(const std::string& id, std::string body) const {
    const auto now = std::chrono::duration_cast<std::chrono::seconds>(base::wall_now().time_since_epoch());
    const std::string timestamp = std::to_string(now.count());
    const auto key = crypto::SigningKey::from_secret(crypto::SignatureScheme::standard, secret_);
    if (!key.ok()) throw Misuse("The secret in --secret-file is invalid: " + key.error());
    const auto digest = crypto::hmac_sha256(key->hmac_key(), {id, ".", timestamp, ".", body});
    RemoteCall call{"POST", Target()};
    call.body = std::move(body);
    call.headers = {{"webhook-id", id},
                    {"webhook-timestamp", timestamp},
                    {"webhook-signature", "v1," + base::base64_encode(digest.view())},
                    {"webhook-attempt", "1"}};
    return call;
  }

  Invocation& in_;
  std::vector<std::string> types_;
  Forwarder forwarder_;
  std::string secret_;
  Seen seen_;
};

// Inbound messages have no stream: the list is polled.
class SourceListener {
 public:
  explicit SourceListener(Invocation& in) : in_(in), source_(*in.value("--source")), forwarder_(in) {}

  int run() {
    base::Timestamp since = base::wall_now();
    if (const auto asked = in_.time("--since")) since = *base::parse_rfc3339(*asked);
    bool is_connected = false;
    while (true) {
      try {
        for (const json::value& message : messages_since(since)) pass_on(message.as_object());
        if (!is_connected) in_.out().note("connected to " + in_.server().url());
        is_connected = true;
      } catch (const ServerUnreachable& error) {
        if (is_connected) in_.out().note(std::string("not connected: ") + error.what() + "; trying again");
        is_connected = false;
      }
      since = std::max(since, newest_ - kLateMax);
      std::this_thread::sleep_for(kPollPause);
    }
  }

 private:
  json::array messages_since(base::Timestamp since) {
    json::array all;
    std::optional<std::string> cursor;
    do {
      Target target("v1", "sources", source_, "messages");
      target.with("since", base::to_rfc3339(since)).with("limit", "250").with("cursor", cursor);
      const json::value page = in_.server().get(target);
      for (const json::value& message : page.at("data").as_array()) all.push_back(message);
      const json::value* next = page.as_object().if_contains("next_cursor");
      cursor = next && next->is_string() ? std::optional(std::string(next->get_string())) : std::nullopt;
    } while (cursor);
    std::reverse(all.begin(), all.end());  // the list has the newest first
    return all;
  }

  void pass_on(const json::object& message) {
    const std::string id(message.at("id").as_string());
    if (!seen_.add(id)) return;
    if (const auto time = base::parse_rfc3339(message.at("received_at").as_string()))
      newest_ = std::max(newest_, *time);
    const json::value* body = message.if_contains("body");
    if (body == nullptr || !body->is_string()) return forwarder_.report_hidden(id, source_);
    RemoteCall call{"POST", Target()};
    call.body = std::string(body->get_string());
    if (const json::value* headers = message.if_contains("headers"); headers && headers->is_object())
      for (const auto& header : headers->get_object())
        if (header.key() != "user-agent" && header.value().is_string())
          call.headers.emplace_back(std::string(header.key()), std::string(header.value().get_string()));
    forwarder_.pass_on(id, source_, std::move(call));
  }

  Invocation& in_;
  std::string source_;
  Forwarder forwarder_;
  base::Timestamp newest_;
  Seen seen_;
};

int listen(Invocation& in) {
  if (in.has("tenant") == in.has("--source"))
    throw Misuse("Give either a tenant, as in `postrider listen acme`, or --source SOURCE.");
  if (in.has("--source")) return SourceListener(in).run();
  if (in.has("--print-secret")) {
    in.out().line(listen_secret(in, in.argument("tenant")));
    return done;
  }
  return TenantListener(in).run();
}

}  // namespace

Command listen_command() {
  return command(
             "listen", "Show a tenant's events as they are published, and forward them to your machine",
             {optional_argument("tenant", "Tenant ID"),
              option("--source", "SOURCE", "Instead of a tenant: messages received from this inbound source"),
              option("--forward-to", "URL", "Send them to this URL, such as http://localhost:3000/hooks"),
              list_option("--event-type", "TYPE", "Only this event type or pattern (repeatable)"),
              option("--since", "TIME",
                     "Start with events since this time: 10m, 1h or an RFC 3339 timestamp"),
              option("--secret-file", "FILE", "Sign with the secret in this file"),
              flag("--print-secret", "Print the signing secret of this tenant and exit")},
             listen)
      .example("postrider listen acme --forward-to http://localhost:3000/hooks")
      .example("postrider listen acme --event-type 'invoice.*' --since 10m")
      .example("postrider listen --source stripe --forward-to http://localhost:3000/stripe");
}

}  // namespace postrider::cli
