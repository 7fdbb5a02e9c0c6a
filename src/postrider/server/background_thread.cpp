#include "postrider/server/background_thread.hpp"

#include <utility>

#include "postrider/replay/runner.hpp"
#include "postrider/runtime/loop_thread.hpp"
#include "postrider/server/inbox_background.hpp"
#include "postrider/upkeep/confirmations.hpp"
#include "postrider/upkeep/lock_watch.hpp"
#include "postrider/upkeep/notices.hpp"
#include "postrider/upkeep/upkeep.hpp"

namespace postrider::server {

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
  options.connect.lock_timeout =
      pg::Milliseconds(2'000);  // never make others queue after a lock request of ours
  return options;
}

// For notices to URLs.
http::ClientOptions client_options(const config::Config& config) {
  http::ClientOptions options;
  if (!config.bind_address.empty()) options.bind_address = http::IpAddress::parse(config.bind_address);
  return options;
}

}  // namespace

struct BackgroundThread::State {
  explicit State(BackgroundTools background_tools)
      : tools(std::move(background_tools)),
        link(loop, fanout_link(tools.database_url)),
        replay_link(loop, server::replay_link(tools.database_url)),
        upkeep_link(loop, server::upkeep_link(tools.database_url)),
        fanout(loop, link, tools.engine,
               {.node_id = tools.engine.id(), .chunk_endpoints = tools.config.fanout_chunk_rows}),
        inbox(loop, link, tools),
        replays(loop, replay_link,
                {.node_id = tools.engine.id(), .lease_seconds = tools.config.lease_seconds}),
        upkeep(loop, upkeep_link, tools.metrics,
               {.retention = upkeep::RetentionOptions::from(tools.config),
                .health = upkeep::HealthOptions::from(tools.config)}),
        lock_watch(loop, link),
        recipients(loop, upkeep_link, tools.recipients, {.has_mail_server = !tools.config.smtp_url.empty()}),
        client(loop, tools.guard, tools.tls, client_options(tools.config)),
        mails(loop, {.server = {tools.config.smtp_url, tools.config.extra_ca_file},
                     .from = tools.config.mail_from,
                     .public_url = tools.config.public_url}),
        notices(loop, {upkeep_link, client, tools.keys, mails, tools.metrics},
                {.per_tenant = tools.config.notices_per_tenant, .user_agent = tools.config.user_agent}),
        confirmations(loop, upkeep_link, mails, tools.metrics,
                      {.per_tenant = tools.config.confirmation_mails_per_tenant,
                       .per_address = tools.config.confirmation_mails_per_address}) {
    replays.on_committed([this] { tools.engine.committed(); });
    fanout.on_committed([this](const std::vector<int>&) { tools.engine.committed(); });
  }

  runtime::Task<void> drain() {
    co_await lock_watch.stop();
    co_await recipients.stop();
    co_await fanout.stop();
    co_await inbox.stop();
    co_await replays.stop();
    client.close();
    co_await notices.stop();
    co_await confirmations.stop();
    co_await upkeep.stop();  // and its link
    co_await replay_link.stop();
    co_await link.stop();
  }

  BackgroundTools tools;
  runtime::LoopThread on;
  runtime::Loop& loop = on.loop;
  pg::Link link, replay_link, upkeep_link;
  publish::WideFanout fanout;
  InboxBackground inbox;
  replay::ReplayRunner replays;
  upkeep::Upkeep upkeep;
  upkeep::LockWatch lock_watch;
  upkeep::RecipientWatch recipients;
  http::Client client;
  upkeep::MailSender mails;
  upkeep::Notices notices;
  upkeep::Confirmations confirmations;
};

BackgroundThread::BackgroundThread(BackgroundTools tools)
    : state_(std::make_unique<State>(std::move(tools))) {}
BackgroundThread::~BackgroundThread() = default;

publish::WideFanout& BackgroundThread::fanout() {
  return state_->fanout;
}

inbox::Maintenance& BackgroundThread::inbox_maintenance() {
  return state_->inbox.maintenance();
}

void BackgroundThread::start() {
  State& state = *state_;
  state.loop.post([&state] {
    state.link.start();
    state.upkeep_link.start();
    state.fanout.start();
    state.inbox.start();
    state.replay_link.start();
    state.recipients.start();
    if (!state.tools.config.roles.upkeep) return;
    state.replays.start();
    state.upkeep.start();
    state.lock_watch.start();
    state.notices.start();
    state.confirmations.start();
  });
  state.on.start();
  state.on.run([&state] { return state.inbox.apply_sources(); });
}

void BackgroundThread::stop() {
  State& state = *state_;
  state.on.run([&state] { return state.drain(); });
  state.on.stop();
}

}  // namespace postrider::server
