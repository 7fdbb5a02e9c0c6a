// Writes what attempts show about endpoints: health, holds, and that an endpoint is to be paused or disabled.
//
// Changes of one turn of the loop go into one statement each. An endpoint that an open transaction has locked
// is retried later, and nothing waits for it. While the database is unavailable, changes wait.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "postrider/delivery/attempt/verdict.hpp"
#include "postrider/model/ids.hpp"
#include "postrider/pg/link.hpp"
#include "postrider/runtime/loop.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::delivery {

// Receives changes of endpoints.
class EndpointChanges {
 public:
  virtual ~EndpointChanges() = default;

  struct StatusChange {
    model::EndpointId endpoint;
    Verdict::Endpoint what;
    std::string reason;
  };
  virtual void change_status(StatusChange change) = 0;

  struct HealthChange {
    model::EndpointId endpoint;
    bool is_failing;
    std::string breaker;  // "open" or "closed"
    base::Timestamp at;
    int failures = 0;                                   // since the last success
    std::optional<std::string> probe_error = {};        // a failed probe leaves no other trace
    std::optional<base::Timestamp> succeeded_at = {};   // the last success
    std::optional<base::Timestamp> next_probe_at = {};  // while the breaker is open
  };
  // Replaces an earlier change of the same endpoint that is not written yet.
  virtual void note_health(HealthChange change) = 0;

  // Why an endpoint's deliveries are held because nothing can be signed. Empty: they are not held any more.
  virtual void note_hold(model::EndpointId endpoint, std::string reason) = 0;
};

class EndpointWriter : public EndpointChanges {
 public:
  EndpointWriter(runtime::Loop& loop, pg::Link& link, model::NodeId node);

  void change_status(StatusChange change) override;
  void note_health(HealthChange change) override;
  void note_hold(model::EndpointId endpoint, std::string reason) override;

  // Returns when no write is running, at the deadline, or when the database has been unavailable for seconds.
  // Changes of locked endpoints are not waited for.
  runtime::Task<void> drain(base::SteadyTime deadline);
  void abandon() { is_stopping_ = true; }  // unwritten changes are dropped; then stop the link
  runtime::Task<void> stop();

 private:
  using Holds = std::map<model::EndpointId, std::string>;

  void wake();
  bool is_due() const;
  runtime::Task<void> run();
  // These return false if the changes could not be written now; they are kept.
  runtime::Task<bool> write_notes();
  runtime::Task<bool> write_statuses();
  runtime::Task<bool> write_status(const StatusChange& change);
  struct Notes;
  Notes notes(const std::vector<HealthChange>& healths, const Holds& holds) const;
  void keep_locked(const std::vector<HealthChange>& healths, Holds holds, const std::set<base::Uuid>& locked);
  void note_health_unless_newer(const HealthChange& change);
  void retry_locked_later();
  runtime::Task<void> retry_locked();

  runtime::Loop& loop_;
  pg::Link& link_;
  model::NodeId node_;
  std::vector<StatusChange> status_changes_;
  std::vector<StatusChange> locked_statuses_;  // of this round
  std::vector<HealthChange> health_changes_;
  Holds holds_;
  base::SteadyTime not_before_{};  // because an endpoint was locked
  bool is_retry_waiting_ = false;
  bool is_running_ = false;
  bool is_stopping_ = false;
  runtime::Wakeup pause_, retry_, idle_;
  runtime::TaskGroup tasks_;
};

}  // namespace postrider::delivery
