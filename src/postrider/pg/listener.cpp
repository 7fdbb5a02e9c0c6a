#include "postrider/pg/listener.hpp"

#include "postrider/base/check.hpp"

namespace postrider::pg {

using runtime::Task;

struct Listener::State {
  State(runtime::Loop& loop, ListenerOptions chosen)
      : options(std::move(chosen)), link(loop, options.link), wakeup(loop) {}

  void up(Connection& connection);
  Task<void> listen();
  Task<void> keep_checking();

  ListenerOptions options;
  base::UniqueFunction<void(std::string_view, std::string_view)> on_notification;
  base::UniqueFunction<void()> on_listening;
  bool is_listening = false;
  bool is_stopping = false;

  Link link;
  runtime::Wakeup wakeup;
  runtime::TaskGroup running;
};

namespace {

// The result of a check must arrive within check_timeout; otherwise the session closes itself.
ListenerOptions checked(ListenerOptions options) {
  options.link.connect.response_timeout = options.check_timeout;
  return options;
}

std::string listen_sql(const std::string& channel) {
  std::string sql = "listen \"";
  for (const char c : channel) sql.append(c == '"' ? 2 : 1, c);
  return sql + "\"";
}

}  // namespace

void Listener::State::up(Connection& connection) {
  connection.on_notification([this](std::string_view channel, std::string_view payload) {
    if (on_notification) on_notification(channel, payload);
  });
  running.spawn(listen());
}

Task<void> Listener::State::listen() {
  try {
    for (const std::string& channel : options.channels)
      co_await link.connection().execute(listen_sql(channel));
  } catch (const Error&) {
    if (link.is_up()) link.connection().close();
    co_return;
  }
  is_listening = true;
  if (on_listening) on_listening();
}

Task<void> Listener::State::keep_checking() {
  while (!is_stopping) {
    co_await wakeup.wait_for(options.check_interval);
    if (is_stopping || !link.is_up()) continue;
    try {
      co_await link.connection().execute("select 1");
    } catch (const Error&) {
      // The link has noticed, too, and connects again.
    }
  }
}

Listener::Listener(runtime::Loop& loop, ListenerOptions options)
    : state_(std::make_unique<State>(loop, checked(std::move(options)))) {
  state_->link.on_up([state = state_.get()](const LinkUp& up) { state->up(up.connection); });
  state_->link.on_down([state = state_.get()](const Error&) { state->is_listening = false; });
}

Listener::~Listener() = default;

void Listener::on_notification(base::UniqueFunction<void(std::string_view, std::string_view)> callback) {
  state_->on_notification = std::move(callback);
}

void Listener::on_listening(base::UniqueFunction<void()> callback) {
  state_->on_listening = std::move(callback);
}

void Listener::start() {
  CHECK(state_->running.running() == 0);
  state_->link.start();
  state_->running.spawn(state_->keep_checking());
}

Task<void> Listener::stop() {
  state_->is_stopping = true;
  co_await state_->link.stop();
  state_->wakeup.notify();
  co_await state_->running.join();
}

bool Listener::is_listening() const {
  return state_->is_listening;
}

}  // namespace postrider::pg
