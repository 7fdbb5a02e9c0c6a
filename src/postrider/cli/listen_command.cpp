// `postrider listen --forward-to`: a tenant's events on a developer's machine.
//
// The server is asked for what is new; what was forwarded is remembered, so that a break of the connection is
// followed by a catch-up, in order, without repeats. The state that is printed is what the last call showed.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <thread>
#include <unordered_set>

#include "postrider/base/encoding.hpp"
#include "postrider/base/time.hpp"
#include "postrider/cli/groups.hpp"
#include "postrider/cli/invocation.hpp"
#include "postrider/crypto/digest.hpp"
#include "postrider/crypto/signing_key.hpp"

namespace postrider::cli {

namespace {

using namespace std::chrono_literals;

constexpr size_t kSeenMax = 20'000;
constexpr auto kPause = 500ms;
constexpr auto kPauseAfterFailure = 2s;
constexpr auto kForwardTimeout = 30s;

// Ids that are dealt with, the newest kSeenMax of them.
class Seen {
 public:
  bool contains(const std::string& id) const { return ids_.contains(id); }
  void add(const std::string& id) {
    if (!ids_.insert(id).second) return;
    order_.push_back(id);
    if (order_.size() <= kSeenMax) return;
    ids_.erase(order_.front());
    order_.pop_front();
  }

 private:
  std::unordered_set<std::string> ids_;
  std::deque<std::string> order_;
};

// The bytes behind "data": as the server wrote them, so that no number is rounded on the way.
std::string raw_data(const std::string& event) {
  constexpr std::string_view kName = ",\"data\":", kNext = ",\"deliveries\":[";
  const size_t from = event.find(kName), to = event.rfind(kNext);
  if (from == std::string::npos || to == std::string::npos || to < from) return "null";
  return event.substr(from + kName.size(), to - from - kName.size());
}

std::string envelope(const json::object& event, const std::string& tenant, const std::string& data) {
  std::string out = "{\"id\":" + base::json_quoted(event.at("id").as_string()) +
                    ",\"type\":" + base::json_quoted(event.at("type").as_string());
  if (const json::value* version = event.if_contains("version"); version && version->is_string())
    out += ",\"version\":" + base::json_quoted(version->as_string());
  return out + ",\"tenant_id\":" + base::json_quoted(tenant) +
         ",\"created_at\":" + base::json_quoted(event.at("created_at").as_string()) + ",\"data\":" + data +
         "}";
}

class Listening {
 public:
  explicit Listening(Invocation& in)
      : in_(in),
        tenant_(in.argument("tenant")),
        type_(in.value("--type")),
        receiver_({.url = in.value("--forward-to").value_or("")}),
        secret_(crypto::generate_secret(crypto::SignatureScheme::standard)),
        since_(in.value("--since").value_or(base::to_rfc3339(base::wall_now() - 10min))),
        is_catching_up_(in.has("--since")) {}

  int run() {
    say("forwarding to " + receiver_.url() + "; signed with " + secret_ + " while this runs");
    while (true) {
      try {
        look();
      } catch (const ServerUnreachable& error) {
        lost(error.what());
      } catch (const ServerProblem& problem) {
        if (problem.status < 500) throw;
        lost(problem.what());
      }
      std::this_thread::sleep_for(is_connected_ ? std::chrono::milliseconds(kPause) : kPauseAfterFailure);
    }
  }

 private:
  void say(const std::string& text) const {
    std::fprintf(stderr, "%s\n", visible(text).c_str());
    std::fflush(stderr);
  }
  void lost(const std::string& why) {
    if (is_connected_ || is_first_) say("not connected: " + why + "; trying again");
    is_connected_ = false;
    is_first_ = false;
  }

  // What is new, oldest first. The first look only learns what is there, unless --since asked for it.
  void look() {
    std::vector<json::object> fresh = unseen();
    if (!is_connected_) {
      const bool was_lost = !is_first_;
      is_connected_ = true;
      is_first_ = false;
      say(was_lost ? "connected again: " + std::to_string(fresh.size()) + " events to catch up"
                   : "connected to " + in_.server().url());
    }
    std::reverse(fresh.begin(), fresh.end());
    for (const json::object& event : fresh) {
      if (is_catching_up_) forward(event);
      seen_.add(std::string(event.at("id").as_string()));
    }
    is_catching_up_ = true;
  }

  // Pages from the newest on, until one holds something that is known.
  std::vector<json::object> unseen() {
    std::vector<json::object> fresh;
    std::optional<std::string> cursor;
    while (fresh.size() < kSeenMax) {
      Target target("v1", "tenants", tenant_, "events");
      target.with("type", type_).with("since", since_).with("cursor", cursor);
      const json::value page = in_.server().get(target);
      bool is_known = false;
      for (const json::value& each : page.at("data").as_array()) {
        const json::object& event = each.as_object();
        if (seen_.contains(std::string(event.at("id").as_string())))
          is_known = true;
        else
          fresh.push_back(event);
      }
      const json::value* next = page.as_object().if_contains("next_cursor");
      if (is_known || next == nullptr) break;
      cursor = std::string(next->as_string());
    }
    return fresh;
  }

  void forward(const json::object& event) {
    const std::string id(event.at("id").as_string());
    const std::string whole = in_.server().text({"GET", Target("v1", "tenants", tenant_, "events", id)});
    const std::string body = envelope(event, tenant_, raw_data(whole));
    const auto now = std::chrono::duration_cast<std::chrono::seconds>(base::wall_now().time_since_epoch());
    const std::string timestamp = std::to_string(now.count());
    const auto key = crypto::SigningKey::from_secret(crypto::SignatureScheme::standard, secret_);
    const auto digest = crypto::hmac_sha256(key->hmac_key(), {id, ".", timestamp, ".", body});
    RemoteCall call{"POST", Target()};
    call.body = body;
    call.timeout = kForwardTimeout;
    call.headers = {{"webhook-id", id},
                    {"webhook-timestamp", timestamp},
                    {"webhook-signature", "v1," + base::base64_encode(digest.view())},
                    {"webhook-attempt", "1"}};
    const std::string what = id + " " + std::string(event.at("type").as_string());
    try {
      receiver_.text(call);
      in_.out().line(visible(what) + " delivered");
    } catch (const ServerProblem& problem) {
      in_.out().line(visible(what) + " answered " + std::to_string(problem.status));
    } catch (const ServerUnreachable& error) {
      in_.out().line(visible(what) + " not delivered: " + visible(error.what()));
    }
    std::fflush(stdout);
  }

  Invocation& in_;
  std::string tenant_;
  std::optional<std::string> type_;
  Remote receiver_;
  std::string secret_, since_;
  Seen seen_;
  bool is_catching_up_ = false;  // what is found is forwarded
  bool is_connected_ = false, is_first_ = true;
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
