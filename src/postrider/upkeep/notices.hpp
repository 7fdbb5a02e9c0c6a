// Sends notices to tenants' contacts: by mail, or by a signed POST through the guard. At most one per
// endpoint and hour, of any kind and over all nodes.
//
// Several notices are sent at once, each in a limited time, and only a few of one tenant, so that contacts
// that do not respond do not delay the notices of other tenants.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "postrider/base/version.hpp"
#include "postrider/crypto/master_keys.hpp"
#include "postrider/http/client/client.hpp"
#include "postrider/pg/link.hpp"
#include "postrider/runtime/service.hpp"
#include "postrider/upkeep/mail_sender.hpp"
#include "postrider/upkeep/metrics.hpp"
#include "postrider/upkeep/notice.hpp"

namespace postrider::upkeep {

struct NoticeOptions {
  int per_tenant = 200;  // messages a day
  std::string user_agent = "postrider/" + std::string(base::kVersion);
  size_t workers = 8;          // notices being sent at once
  int workers_per_tenant = 2;  // of them for one tenant
  // For all contacts of one notice; those not reached come first next time.
  std::chrono::seconds time{30};

  void validate() const;
};

class Notices : public runtime::Service {
 public:
  struct Tools {
    pg::Link& link;
    http::Client& client;
    const crypto::MasterKeys& keys;
    MailSender& mails;
    const telemetry::Metrics& metrics;
  };
  // All of them outlive it.
  Notices(runtime::Loop& loop, Tools tools, NoticeOptions options);

 private:
  runtime::Task<runtime::SteadyTime> pass(runtime::SteadyTime now) override;
  runtime::Task<bool> start_one();  // false: none is due, or no worker is free
  runtime::Task<bool> start_dead_letters(std::vector<std::string> busy);  // the same
  runtime::Task<void> notify_all(Notice notice);
  // Those are notified again; without any, the notice is done.
  runtime::Task<void> store_unreached(const Notice& notice, std::vector<std::string> unreached);
  // Returns the error, or no value if the contact got it.
  runtime::Task<std::optional<std::string>> notify(const Notice& notice, std::string contact,
                                                   base::SteadyTime deadline);
  runtime::Task<std::optional<std::string>> post(const Notice& notice, std::string contact,
                                                 base::SteadyTime deadline);
  runtime::Task<std::optional<std::string>> mail(const Notice& notice, std::string contact,
                                                 base::SteadyTime deadline);
  std::vector<std::string> busy_tenants() const;

  Tools tools_;
  Metrics metrics_;
  NoticeOptions options_;
  std::map<std::string, int> sending_;  // notices being sent, by tenant
};

}  // namespace postrider::upkeep
