// The inbox's work on the background thread: creates the configured sources, wakes consumers, forwards
// messages, writes rejections down.
#pragma once

#include <memory>

#include "postrider/server/background_thread.hpp"

namespace postrider::server {

class InboxBackground {
 public:
  // The link is that of the thread, for short statements.
  InboxBackground(runtime::Loop& loop, pg::Link& link, const BackgroundTools& tools);
  ~InboxBackground();

  void start();
  runtime::Task<void> apply_sources();  // of the configuration file; failures are retried from then on
  runtime::Task<void> stop();
  inbox::Maintenance& maintenance();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace postrider::server
