#include "postrider/cli/background_thread.hpp"

#include <thread>
#include <utility>

#include "postrider/cli/inbox_background.hpp"
#include "postrider/runtime/run_on.hpp"
#include "postrider/upkeep/upkeep.hpp"

namespace postrider::cli {

namespace {

pg::LinkOptions fanout_link(const std::string& url) {
  pg::LinkOptions options;
  options.connect = pg::ConnectOptions::engine(url);
  options.connect.application_name = "postrider fanout";
  return options;
}

pg::LinkOptions upkeep_link(const std::string& url) {
  pg::LinkOptions options;
  options.connect.url = url;
  options.connect.application_name = "postrider upkeep";
  options.connect.lock_timeout = pg::Milliseconds(2'000);  // never make others wait behind us
  return options;
}

}  // namespace

struct BackgroundThread::State {
  explicit State(BackgroundTools background_tools)
      : tools(std::move(background_tools)),
        link(loop, fanout_link(tools.database_url)),
        upkeep_link(loop, cli::upkeep_link(tools.database_url)),
        fanout(loop, link, tools.node,
               {.node_id = tools.node.id(), .chunk_endpoints = tools.config.fanout_chunk_rows}),
        inbox(loop, link, tools),
        upkeep(loop, upkeep_link, tools.metrics) {
    fanout.on_committed([this](const std::vector<int>&) { tools.node.committed(); });
  }

  runtime::Task<void> drain() {
    co_await fanout.stop();
    co_await inbox.stop();
    co_await upkeep.stop();
    co_await upkeep_link.stop();
    co_await link.stop();
  }

  BackgroundTools tools;
  runtime::Loop loop;
  pg::Link link, upkeep_link;
  publish::WideFanout fanout;
  InboxBackground inbox;
  upkeep::Upkeep upkeep;
  runtime::TaskGroup tasks;
  std::thread thread;
};

BackgroundThread::BackgroundThread(BackgroundTools tools)
    : state_(std::make_unique<State>(std::move(tools))) {}
BackgroundThread::~BackgroundThread() = default;

publish::WideFanout& BackgroundThread::fanout() {
  return state_->fanout;
}

inbox::Duties& BackgroundThread::inbox_duties() {
  return state_->inbox.duties();
}

void BackgroundThread::start() {
  State& state = *state_;
  state.loop.post([&state] {
    state.link.start();
    state.upkeep_link.start();
    state.fanout.start();
    state.inbox.start();
    if (state.tools.config.roles.upkeep) state.upkeep.start();
  });
  state.thread = std::thread([&state] { state.loop.run(); });
}

void BackgroundThread::stop() {
  State& state = *state_;
  runtime::run_on(state.loop, state.tasks, [&state] { return state.drain(); });
  state.loop.stop();
  state.thread.join();
}

}  // namespace postrider::cli
