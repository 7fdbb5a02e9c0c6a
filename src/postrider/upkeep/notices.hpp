// Tells a tenant's contacts about their endpoint: a warning, that it is disabled, that it is well again. By
// mail, or by a signed POST through the guard. At most one per endpoint and hour, over all nodes.
#pragma once

#include <optional>
#include <string>

#include "postrider/crypto/master_keys.hpp"
#include "postrider/http/client.hpp"
#include "postrider/pg/link.hpp"
#include "postrider/runtime/loop.hpp"
#include "postrider/runtime/task.hpp"
#include "postrider/upkeep/mail.hpp"

namespace postrider::upkeep {

struct NoticeOptions {
  std::string smtp_url;  // empty: no mail
  std::string mail_from;
  std::string ca_file;  // authorities beside the system's, for the mail server
};

struct Notice {
  base::Uuid endpoint_uuid;
  std::string tenant, endpoint, url;
  std::string kind;  // warning, disabled, recovered
  int stage = 0;
  std::optional<base::Timestamp> failing_since;
  std::optional<std::string> detail;
};

// What it says, and what to do.
Mail mail_of(const Notice& notice);
std::string json_of(const Notice& notice);

class Notices {
 public:
  // All of them outlive it.
  Notices(runtime::Loop& loop, pg::Link& link, http::Client& client, const crypto::MasterKeys& keys,
          NoticeOptions options);

  void start();
  runtime::Task<void> stop();

  runtime::Task<bool> run_once();  // one notice; false: none is due. Throws pg::Error

 private:
  runtime::Task<void> run();
  runtime::Task<std::optional<std::string>> tell(const Notice& notice, std::string contact);
  runtime::Task<std::optional<std::string>> post(const Notice& notice, std::string contact);
  runtime::Task<std::optional<std::string>> mail(const Notice& notice, std::string contact);

  runtime::Loop& loop_;
  pg::Link& link_;
  http::Client& client_;
  const crypto::MasterKeys& keys_;
  NoticeOptions options_;
  bool is_stopping_ = false;
  runtime::Wakeup wakeup_;
  runtime::TaskGroup tasks_;
};

}  // namespace postrider::upkeep
