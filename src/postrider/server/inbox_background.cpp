#include "postrider/server/inbox_background.hpp"

#include <utility>

#include "postrider/inbox/forwarder.hpp"
#include "postrider/inbox/source_maintenance.hpp"
#include "postrider/pg/listener.hpp"
#include "postrider/publish/publisher.hpp"

namespace postrider::server {

namespace {

constexpr std::chrono::seconds kDatabaseWait{10};

publish::PublisherOptions publisher_options(const BackgroundTools& tools) {
  publish::PublisherOptions options;
  options.node_id = tools.engine.id();
  options.data_bytes_max = static_cast<int>(tools.config.payload_bytes_max);
  options.wide_endpoints = tools.config.wide_fanout_endpoints;
  options.rates = &tools.rates;
  return options;
}

pg::ListenerOptions listener_options(const BackgroundTools& tools) {
  pg::ListenerOptions options;
  options.link.connect.url = tools.database_url;
  options.link.connect.application_name = "postrider inbox";
  options.channels = {"postrider_inbox"};
  return options;
}

}  // namespace

struct InboxBackground::State {
  State(runtime::Loop& loop, pg::Link& link, const BackgroundTools& background_tools)
      : tools(background_tools),
        maintenance(loop, link, tools.rejections, tools.metrics, {.measures = tools.config.roles.upkeep}),
        publisher(loop, link, tools.ids, tools.engine, tools.metrics, publisher_options(tools)),
        forwarder(loop, link, publisher, tools.engine.id().public_id()),
        sources(loop, link, {tools.keys, tools.ids, tools.config.buckets}, std::move(tools.sources)),
        listener(loop, listener_options(tools)) {
    publisher.on_committed([this](const std::vector<int>&) { tools.engine.committed(); });
    listener.on_notification([this](std::string_view, std::string_view source) {
      forwarder.wake();
      if (tools.on_inbox) tools.on_inbox(std::string(source));
    });
  }

  BackgroundTools tools;
  inbox::Maintenance maintenance;
  publish::Publisher publisher;
  inbox::Forwarder forwarder;
  inbox::SourceMaintenance sources;
  pg::Listener listener;
};

InboxBackground::InboxBackground(runtime::Loop& loop, pg::Link& link, const BackgroundTools& tools)
    : state_(std::make_unique<State>(loop, link, tools)) {}
InboxBackground::~InboxBackground() = default;

inbox::Maintenance& InboxBackground::maintenance() {
  return state_->maintenance;
}

void InboxBackground::start() {
  state_->maintenance.start();
  state_->listener.start();
  if (state_->tools.config.roles.inbox) state_->forwarder.start();
}

runtime::Task<void> InboxBackground::apply_sources() {
  co_await state_->sources.apply_at_start(base::BootClock::now() + kDatabaseWait);
}

runtime::Task<void> InboxBackground::stop() {
  co_await state_->sources.stop();
  co_await state_->listener.stop();
  co_await state_->forwarder.stop();
  co_await state_->publisher.stop();
  co_await state_->maintenance.stop();
}

}  // namespace postrider::server
