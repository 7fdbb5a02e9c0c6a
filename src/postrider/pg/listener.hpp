// LISTEN on a connection of its own. Notifications are only hints: they are lost while the connection is
// down, so consumers check once after each (re)connect, and also poll.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/pg/link.hpp"

namespace postrider::pg {

struct ListenerOptions {
  LinkOptions link;  // a direct connection: LISTEN does not work through a transaction pooler
  std::vector<std::string> channels;
  // A connection that died silently is noticed within check_interval + check_timeout.
  Milliseconds check_interval{10'000};
  Milliseconds check_timeout{5'000};
};

class Listener {
 public:
  Listener(runtime::Loop& loop, ListenerOptions options);
  ~Listener();  // stop() was awaited, or start() never called
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // Both are called on the loop and set before start(). They must not throw.
  void on_notification(
      base::UniqueFunction<void(std::string_view channel, std::string_view payload)> callback);
  void on_listening(base::UniqueFunction<void()> callback);  // after each (re)connect

  void start();
  runtime::Task<void> stop();
  bool is_listening() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace postrider::pg
