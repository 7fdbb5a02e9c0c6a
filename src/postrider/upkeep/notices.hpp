// Sends notices to tenants' contacts: by mail, or by a signed POST through the guard. At most one per
// endpoint and hour, over all nodes.
//
// Several notices are sent at once, each in a limited time, and few of one tenant: its contacts that do not
// respond delay nobody else's notices.
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
#include "postrider/runtime/loop.hpp"
#include "postrider/runtime/task.hpp"
#include "postrider/telemetry/metrics.hpp"
#include "postrider/upkeep/mail_sender.hpp"
#include "postrider/upkeep/notice.hpp"

namespace postrider::upkeep {

struct NoticeOptions {
  int per_tenant = 200;  // messages a day
  std::string user_agent = "postrider/" + std::string(base::kVersion);
  size_t workers = 8;          // notices being sent at once
  int workers_per_tenant = 2;  // of them for one tenant
  std::chrono::seconds time{
      30};  // for all contacts of one notice; those not reached are told first next time
};

class Notices {
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

  void start();
  runtime::Task<void> stop();

 private:
  runtime::Task<void> run();
  runtime::Task<bool> start_one();  // false: none is due, or nobody is free
  runtime::Task<void> tell_all(Notice notice);
  runtime::Task<std::optional<std::string>> tell(const Notice& notice, std::string contact,
                                                 base::SteadyTime deadline);
  runtime::Task<std::optional<std::string>> post(const Notice& notice, std::string contact,
                                                 base::SteadyTime deadline);
  runtime::Task<std::optional<std::string>> mail(const Notice& notice, std::string contact,
                                                 base::SteadyTime deadline);
  std::vector<std::string> busy_tenants() const;

  Tools tools_;
  NoticeOptions options_;
  bool is_stopping_ = false;
  std::map<std::string, int> sending_;  // notices being sent, by tenant
  runtime::Wakeup wakeup_;
  runtime::TaskGroup runner_, workers_;
};

}  // namespace postrider::upkeep
