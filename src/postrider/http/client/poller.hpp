// Readiness of many descriptors on one loop. The descriptors sit in an epoll set of their own, which is
// itself one descriptor of the loop: an edge-triggered connection then costs no epoll_ctl and no pending
// operation per wait, idle ones hold no buffer, and a peer that closes an idle connection is noticed at once.
#pragma once

#include <cstdint>
#include <memory>

#include "postrider/runtime/loop.hpp"

namespace postrider::http {

class Watch {
 public:
  virtual void on_events(uint32_t epoll_events) = 0;  // may remove or destroy this or any other watch

 protected:
  ~Watch() = default;
};

class Poller {
 public:
  explicit Poller(runtime::Loop& loop);
  ~Poller();
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  using Token = uint32_t;
  Token add(int descriptor, uint32_t epoll_events, Watch& watch);
  void modify(Token token, int descriptor, uint32_t epoll_events);
  void remove(Token token, int descriptor);  // before the descriptor is closed

 private:
  struct State;
  std::shared_ptr<State>
      state_;  // shared with the loop's pending wait, which may outlive the poller by one turn
};

}  // namespace postrider::http
