#include "postrider/cli/background_thread.hpp"

#include <thread>
#include <utility>

#include "postrider/cli/inbox_background.hpp"
#include "postrider/replay/runner.hpp"
#include "postrider/runtime/run_on.hpp"
#include "postrider/upkeep/notices.hpp"
#include "postrider/upkeep/upkeep.hpp"

namespace postrider::cli {

namespace {

pg::LinkOptions fanout_link(const std::string& url) {
  pg::LinkOptions options;
  options.connect = pg::ConnectOptions::engine(url);
  options.connect.application_name = "postrider fanout";
  return options;
}

// Custom plans: filters of a replay that are not set must not keep the planner from an index.
pg::LinkOptions replay_link(const std::string& url) {
  pg::LinkOptions options;
  options.connect.url = url;
  options.connect.application_name = "postrider replay";
  options.connect.plan_cache_mode = "force_custom_plan";
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
        replay_link(loop, cli::replay_link(tools.database_url)),
        upkeep_link(loop, cli::upkeep_link(tools.database_url)),
        fanout(loop, link, tools.node,
               {.node_id = tools.node.id(), .chunk_endpoints = tools.config.fanout_chunk_rows}),
        inbox(loop, link, tools),
        replays(loop, replay_link, {.node_id = tools.node.id(), .lease_seconds = tools.config.lease_seconds}),
        upkeep(loop, upkeep_link, tools.metrics,
               {.retention = upkeep::RetentionOptions::from(tools.config),
                .disable_after = tools.config.disable_after}),
        client(loop, tools.guard, tools.tls, http::ClientOptions{}),
        notices(loop, upkeep_link, client, tools.keys,
                {.smtp_url = tools.config.smtp_url,
                 .mail_from = tools.config.mail_from,
                 .ca_file = tools.config.extra_ca_file}) {
    replays.on_committed([this] { tools.node.committed(); });
    fanout.on_committed([this](const std::vector<int>&) { tools.node.committed(); });
  }

  runtime::Task<void> drain() {
    co_await fanout.stop();
    co_await inbox.stop();
    co_await replays.stop();
    client.close();
    co_await notices.stop();
    co_await upkeep.stop();  // and its link
    co_await replay_link.stop();
    co_await link.stop();
  }

  BackgroundTools tools;
  runtime::Loop loop;
  pg::Link link, replay_link, upkeep_link;
  publish::WideFanout fanout;
  InboxBackground inbox;
  replay::ReplayRunner replays;
  upkeep::Upkeep upkeep;
  http::Client client;
  upkeep::Notices notices;
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
    state.replay_link.start();
    if (!state.tools.config.roles.upkeep) return;
    state.replays.start();
    state.upkeep.start();
    state.notices.start();
  });
  state.thread = std::thread([&state] { state.loop.run(); });
  runtime::run_on(state.loop, state.tasks, [&state] { return state.inbox.apply_sources(); });
}

void BackgroundThread::stop() {
  State& state = *state_;
  runtime::run_on(state.loop, state.tasks, [&state] { return state.drain(); });
  state.loop.stop();
  state.thread.join();
}

}  // namespace postrider::cli
