// Publishes to a remote postrider over its API. Events go to /v1/events/batch under their IDs, so an event
// that is sent twice is stored once.
//
// A temporary failure (no connection, 429, 5xx, a key that is not accepted now) leaves the rows as they are
// and makes the next call wait: as long as Retry-After says, otherwise twice as long as the time before. A
// 429 of an item is about its tenant only. Used on one loop.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "postrider/base/backoff.hpp"
#include "postrider/http/client/client.hpp"
#include "postrider/outbox/sink.hpp"

namespace postrider::outbox {

struct HttpSinkOptions {
  http::Url url;                     // of /v1/events/batch
  std::function<std::string()> key;  // the API key; asked for before each call, so that it can be changed
  std::chrono::milliseconds timeout{20'000};  // of one call; shorter than the lease
  std::chrono::milliseconds pause_min{250}, pause_max{30'000};
  std::chrono::milliseconds retry_after_max{300'000};
};

class HttpSink : public Sink {
 public:
  HttpSink(runtime::Loop& loop, http::Client& client, HttpSinkOptions options);

  runtime::Task<std::vector<SinkResult>> send(std::vector<publish::NewEvent> events) override;
  bool tells_itself() const override { return true; }

  // Ends the wait. No more events are taken.
  void stop();
  bool is_reachable() const { return is_reachable_; }

 private:
  using Events = std::vector<publish::NewEvent>;
  struct Part {
    size_t first = 0, count = 0;
  };
  runtime::Task<void> send_part(const Events& events, Part part, std::vector<SinkResult>& outcomes);
  runtime::Task<bool> wait_until_due();
  void reached();
  void not_now(const std::string& why, std::string_view retry_after);

  http::Client& client_;
  HttpSinkOptions options_;
  runtime::Wakeup wakeup_;
  base::SteadyTime due_at_{};
  base::Backoff backoff_;
  bool is_reachable_ = true, is_stopping_ = false;
};

// The items of the batch with the result of each. Pure. No value if the response has another number of items.
std::string item_json(const publish::NewEvent& event);
std::optional<std::vector<SinkResult>> read_outcomes(std::string_view answer, size_t count);

}  // namespace postrider::outbox
