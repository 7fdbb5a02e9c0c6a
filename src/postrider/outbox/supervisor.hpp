// Keeps one relay per outbox in another database, as the registry says now. Each has links of its own, so
// that one that is down or slow does not touch the others. Used on one loop.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "postrider/outbox/capture.hpp"
#include "postrider/outbox/other_database.hpp"
#include "postrider/outbox/relay.hpp"
#include "postrider/outbox/sources.hpp"

namespace postrider::outbox {

// One that the configuration file names; the registry's of the same name gives way.
struct ConfiguredOutbox {
  std::string name, database_url;
  std::optional<std::chrono::milliseconds> poll{};
  std::optional<std::chrono::seconds> retain{};
};

struct SupervisorTools {
  runtime::Loop& loop;
  pg::Link& registry;  // to postrider's own database
  Sink& sink;
  const crypto::MasterKeys& keys;
  const telemetry::Metrics& metrics;
  std::vector<ConfiguredOutbox> configured = {};
};

class RelaySupervisor : public runtime::Service {
 public:
  // `options` is what all relays have in common.
  RelaySupervisor(SupervisorTools tools, RelayOptions options, DrainLimits limits);
  ~RelaySupervisor() override;

 private:
  struct Unit;
  // An outbox as it is to be relayed. `sealed` as in the registry, empty for the file's, which do not change.
  struct Wanted {
    std::string sealed, url;
    std::optional<std::chrono::milliseconds> poll{};
    std::optional<std::chrono::seconds> retain{};
  };

  runtime::Task<runtime::SteadyTime> pass(runtime::SteadyTime now) override;
  runtime::Task<void> finish() override;
  // Starts and stops relays until they are those of the registry. Throws pg::Error.
  runtime::Task<void> apply();
  runtime::Task<std::map<std::string, Wanted>> wanted();
  void start_unit(const std::string& name, const Wanted& wanted);

  SupervisorTools tools_;
  RelayOptions options_;
  DrainLimits limits_;
  std::map<std::string, std::unique_ptr<Unit>> units_;
};

// The settings of a relay's two sessions in the outbox's database.
pg::LinkOptions relay_link(const std::string& url);
pg::LinkOptions listen_link(const std::string& url);

}  // namespace postrider::outbox
