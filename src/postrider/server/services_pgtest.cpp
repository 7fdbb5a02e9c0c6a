// Starts and stops every recurring service in every order, with the database up, down and lost in between.
// tools/check_services.py requires that each class derived from runtime::Service is in the list below.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "postrider/cluster/membership.hpp"
#include "postrider/cluster/publish_log_follower.hpp"
#include "postrider/cluster/registry_follower.hpp"
#include "postrider/delivery/report/in_flight_writer.hpp"
#include "postrider/delivery/report/lane_wait_writer.hpp"
#include "postrider/delivery/report/rollup_writer.hpp"
#include "postrider/inbox/forwarder.hpp"
#include "postrider/inbox/maintenance.hpp"
#include "postrider/inbox/source_maintenance.hpp"
#include "postrider/outbox/capture.hpp"
#include "postrider/outbox/publisher_sink.hpp"
#include "postrider/outbox/relay.hpp"
#include "postrider/outbox/same_database.hpp"
#include "postrider/outbox/supervisor.hpp"
#include "postrider/publish/fanout.hpp"
#include "postrider/replay/runner.hpp"
#include "postrider/upkeep/confirmations.hpp"
#include "postrider/upkeep/lock_watch.hpp"
#include "postrider/upkeep/notices.hpp"
#include "postrider/upkeep/recipients.hpp"
#include "postrider/upkeep/upkeep.hpp"
#include "support/database.hpp"
#include "support/run.hpp"

namespace postrider::server {
namespace {

using namespace std::chrono_literals;
using runtime::Service;
using runtime::Task;

struct NoHandoff : model::Handoff {
  void offer(std::vector<model::CommittedDelivery>) override {}
};

pg::LinkOptions link_options(const std::string& url) {
  return {.connect = pg::ConnectOptions::engine(url), .pause_min = pg::Milliseconds(10)};
}

outbox::RelayOptions relay_options(const std::string& url) {
  outbox::RelayOptions options;
  options.owner = "test";
  options.listen.connect.url = url;
  return options;
}

// The dependencies of a node's services, each on a separate link.
struct Parts {
  Parts(runtime::Loop& on, const std::string& database_url) : loop(on), url(database_url) {
    ids.synchronise(3, base::wall_now(), base::BootClock::now());
    node.uuid.bytes[0] = 1;
  }

  runtime::Loop& loop;
  std::string url;
  telemetry::Metrics metrics;
  model::IdSource ids;
  model::NodeId node;
  crypto::MasterKeys keys = *crypto::MasterKeys::parse(crypto::MasterKeys::generate());
  http::AddressGuard guard{{}};
  http::TlsContext tls{{.trust_system_store = false}};
  http::Client client{loop, guard, tls, http::ClientOptions{}};
  upkeep::MailSender mails{loop, {}};
  cluster::LeaseClock lease_clock;
  NoHandoff handoff;
  inbox::Rejections rejections{metrics};
  pg::Link link{loop, link_options(url)};
  pg::SessionLease lease{link, outbox::relay_lease(relay_options(url))};
  publish::Publisher publisher{loop, link, ids, handoff, metrics, {}};
  outbox::PublisherSink sink{publisher};
  publish::EventWriter writer{link, ids, handoff, metrics, {}};
  outbox::SameDatabaseDrainer drainer{loop, link, writer, outbox::OutboxMetrics(metrics, "local"), limits()};
  outbox::SameDatabaseCapturePublisher capture_publisher{loop, link, writer,
                                                         outbox::OutboxMetrics(metrics, "local"), limits()};
  upkeep::RecipientNotes recipients;

  outbox::DrainLimits limits() const {
    outbox::DrainLimits limits;
    limits.lease = &lease;
    return limits;
  }
  cluster::MembershipEvents membership_events() const {
    return {.taken = [](int, int64_t) {},
            .lost = [](int) {},
            .lost_everything = [](int64_t) {},
            .drain = [](int, std::chrono::milliseconds) -> Task<bool> { co_return true; },
            .renewed = [] {}};
  }
};

struct Kind {
  std::string name;
  std::function<std::unique_ptr<Service>(Parts&)> create;
};

std::vector<Kind> kinds() {
  const auto no_rows = []() -> Task<std::vector<delivery::RollupRow>> {
    co_return std::vector<delivery::RollupRow>();
  };
  const auto none_in_flight = []() -> Task<std::vector<delivery::InFlight>> {
    co_return std::vector<delivery::InFlight>();
  };
  const auto no_waits = []() -> Task<std::vector<delivery::LaneWait>> {
    co_return std::vector<delivery::LaneWait>();
  };
  return {
      {"Membership",
       [](Parts& of) {
         return std::make_unique<cluster::Membership>(
             of.loop, of.link, of.lease_clock, of.ids, of.metrics,
             cluster::MembershipOptions{.node_id = of.node, .name = "n", .pass_interval = 1ms},
             of.membership_events());
       }},
      {"PublishLogFollower",
       [](Parts& of) {
         return std::make_unique<cluster::PublishLogFollower>(
             of.loop, of.link, of.node, cluster::PublishLogEvents{.found = [](auto) {}, .missed = [] {}});
       }},
      {"RegistryFollower",
       [](Parts& of) {
         return std::make_unique<cluster::RegistryFollower>(
             of.loop, of.link, cluster::RegistryEvents{.changed = [](auto&) {}, .missed = [] {}});
       }},
      {"RollupWriter",
       [no_rows](Parts& of) {
         return std::make_unique<delivery::RollupWriter>(of.loop, of.link, of.node, no_rows);
       }},
      {"InFlightWriter",
       [none_in_flight](Parts& of) {
         return std::make_unique<delivery::InFlightWriter>(of.loop, of.link, of.node, none_in_flight);
       }},
      {"LaneWaitWriter",
       [no_waits](Parts& of) {
         return std::make_unique<delivery::LaneWaitWriter>(of.loop, of.link, no_waits);
       }},
      {"WideFanout",
       [](Parts& of) {
         return std::make_unique<publish::WideFanout>(of.loop, of.link, of.handoff,
                                                      publish::WideFanoutOptions{.node_id = of.node});
       }},
      {"ReplayRunner",
       [](Parts& of) {
         return std::make_unique<replay::ReplayRunner>(of.loop, of.link,
                                                       replay::RunnerOptions{.node_id = of.node});
       }},
      {"Upkeep",
       [](Parts& of) {
         return std::make_unique<upkeep::Upkeep>(of.loop, of.link, of.metrics, upkeep::UpkeepOptions{});
       }},
      {"LockWatch", [](Parts& of) { return std::make_unique<upkeep::LockWatch>(of.loop, of.link); }},
      {"RecipientWatch",
       [](Parts& of) {
         return std::make_unique<upkeep::RecipientWatch>(of.loop, of.link, of.recipients,
                                                         upkeep::RecipientWatch::Options{});
       }},
      {"Notices",
       [](Parts& of) {
         return std::make_unique<upkeep::Notices>(
             of.loop, upkeep::Notices::Tools{of.link, of.client, of.keys, of.mails, of.metrics},
             upkeep::NoticeOptions{});
       }},
      {"Confirmations",
       [](Parts& of) {
         return std::make_unique<upkeep::Confirmations>(of.loop, of.link, of.mails, of.metrics,
                                                        upkeep::ConfirmationOptions{});
       }},
      {"Maintenance",
       [](Parts& of) {
         return std::make_unique<inbox::Maintenance>(of.loop, of.link, of.rejections, of.metrics,
                                                     inbox::Maintenance::Options{});
       }},
      {"SourceMaintenance",
       [](Parts& of) {
         inbox::ConfiguredSource source;
         source.id = "unknown_tenant";
         source.settings.forward = inbox::Forward{"nobody", "a.b"};
         return std::make_unique<inbox::SourceMaintenance>(
             of.loop, of.link, registry::Context{of.keys, of.ids, support::buckets},
             std::vector<inbox::ConfiguredSource>{source});
       }},
      {"Forwarder",
       [](Parts& of) { return std::make_unique<inbox::Forwarder>(of.loop, of.link, of.publisher, "f"); }},
      {"Relay",
       [](Parts& of) {
         return std::make_unique<outbox::Relay>(of.loop, of.link, of.lease, of.drainer,
                                                outbox::OutboxMetrics(of.metrics, "local"),
                                                relay_options(of.url));
       }},
      {"Capture",
       [](Parts& of) {
         return std::make_unique<outbox::Capture>(
             outbox::CaptureTools{of.loop, of.link, of.link, of.lease, of.capture_publisher,
                                  outbox::CaptureMetrics(of.metrics, "local")},
             outbox::capture_options("local", of.url, of.limits()), [] { return true; });
       }},
      {"RelaySupervisor",
       [](Parts& of) {
         return std::make_unique<outbox::RelaySupervisor>(
             outbox::SupervisorTools{of.loop, of.link, of.sink, of.keys, of.metrics}, relay_options(of.url),
             outbox::DrainLimits{});
       }},
  };
}

class ServicesTest : public testing::TestWithParam<Kind> {
 protected:
  Task<void> turns(int count) {
    runtime::Yield turn{loop};
    for (int i = 0; i < count; ++i) co_await turn;
  }
  Task<void> stop(Service& service) { co_await service.stop(); }
  Task<void> exercise(Service& service, int wakes) {
    service.start();
    service.start();
    for (int i = 0; i < wakes; ++i) {
      co_await turns(i);
      service.wake();
    }
    runtime::TaskGroup others;
    others.spawn(stop(service));
    service.wake();
    co_await service.stop();
    co_await others.join();
    EXPECT_FALSE(service.is_running());
  }
  Task<void> close(Parts& parts) {
    parts.client.close();
    co_await parts.publisher.stop();
    co_await parts.link.stop();
  }
  template <class T>
  T run(Task<T> task) {
    return support::run(loop, std::move(task));
  }
  // Each in the order of a process: parts, link, service; stopped in reverse.
  void cycle(const std::string& url, bool is_up, const std::function<void(Service&)>& use) {
    Parts parts(loop, url);
    parts.link.start();
    if (is_up) run(parts.link.wait_up(base::BootClock::now() + 30s));
    const auto service = GetParam().create(parts);
    use(*service);
    run(service->stop());
    run(close(parts));
  }

  support::Database db;
  runtime::Loop loop;
};

TEST_P(ServicesTest, StopsAtAnyMomentAfterItsStart) {
  for (const int wakes : {0, 1, 2, 5, 9})
    cycle(db.url(), true, [&](Service& service) { run(exercise(service, wakes)); });
}

TEST_P(ServicesTest, StopsBeforeTheDatabaseWasEverReached) {
  for (const int wakes : {0, 3})
    cycle("postgres://127.0.0.1:1/none", false, [&](Service& service) { run(exercise(service, wakes)); });
}

TEST_P(ServicesTest, CanBeStoppedWithoutAStart) {
  cycle(db.url(), true, [](Service&) {});
}

TEST_P(ServicesTest, SurvivesTheLossOfItsSessions) {
  cycle(db.url(), true, [&](Service& service) {
    service.start();
    run(turns(3));
    db.sql(
        "select pg_terminate_backend(pid) from pg_stat_activity "
        "where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'");
    service.wake();
    run(turns(50));
    service.wake();
    run(service.stop());
  });
}

INSTANTIATE_TEST_SUITE_P(All, ServicesTest, testing::ValuesIn(kinds()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace postrider::server
