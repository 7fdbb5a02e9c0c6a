// Checks that failing endpoints would be reported: to each tenant's contacts, and to operators.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "postrider/pg/link.hpp"
#include "postrider/runtime/service.hpp"

namespace postrider::upkeep {

struct Recipients {
  int64_t tenants_without_contact = 0;
  std::vector<std::string> first_tenants{};  // of these
  bool has_mail_contact = false;
  bool has_operator = false;  // an endpoint is subscribed to operational events
};

struct MissingRecipient {
  std::string what, advice;
};

// Names no tenants: it is shown without a key.
std::vector<MissingRecipient> missing_recipients(const Recipients& recipients, bool has_mail_server);

// The missing recipients, for any thread.
class RecipientNotes {
 public:
  void set(std::string text);
  std::string text() const;  // lines; empty: nothing is missing, or not known yet

 private:
  mutable std::mutex lock_;
  std::string text_;
};

// Looks at the start and every few minutes, and logs what is missing when that changes. Used on one loop.
class RecipientWatch : public runtime::Service {
 public:
  struct Options {
    bool has_mail_server = false;
  };
  // `notes` outlive it.
  RecipientWatch(runtime::Loop& loop, pg::Link& link, RecipientNotes& notes, Options options)
      : Service(loop), link_(link), notes_(notes), options_(options) {}

 private:
  runtime::Task<runtime::SteadyTime> pass(runtime::SteadyTime now) override;
  runtime::Task<void> look();

  pg::Link& link_;
  RecipientNotes& notes_;
  Options options_;
};

}  // namespace postrider::upkeep
