// Shared by the Postgres tests of this folder.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "postrider/model/id_source.hpp"
#include "postrider/model/ids.hpp"
#include "postrider/pg/link.hpp"
#include "postrider/upkeep/retention.hpp"
#include "support/database.hpp"
#include "support/run.hpp"

namespace postrider::upkeep {

using namespace std::chrono_literals;

class UpkeepTest : public testing::Test {
 protected:
  UpkeepTest() : link(loop, link_options()) {
    ids.synchronise(3, base::wall_now(), base::BootClock::now());
    link.start();
    run(link.wait_up(base::BootClock::now() + 30s));
    db.sql(
        "insert into tenant (id, contacts) values ('acme', '[\"ops@acme.example\"]'); "
        "insert into contact (tenant_id, address, confirmed_at) values ('acme', 'ops@acme.example', now())");
  }
  ~UpkeepTest() override { run(link.stop()); }

  pg::LinkOptions link_options() {
    pg::LinkOptions options;
    options.connect.url = db.url();
    options.connect.lock_timeout = pg::Milliseconds(5'000);
    return options;
  }
  // A pass on this link.
  runtime::Task<Retired> retire(pg::Link& on, RetentionOptions options) {
    pg::SessionLease lease(on, {.name = kRetentionLease});
    pg::LeaseRenewer keeper(loop, lease);
    auto pass = upkeep::retire(on, keeper, std::move(options));
    const Retired retired = co_await pass;
    co_return retired;
  }
  template <class T>
  T run(runtime::Task<T> task) {
    return support::run(loop, std::move(task));
  }

  // Returns its uuid as SQL has it, quoted.
  std::string make_endpoint(const std::string& tenant = "acme", const std::string& patterns = "{*}") {
    const model::EndpointId id{ids.next()};
    const std::string uuid = "'" + id.uuid.text() + "'";
    db.sql("insert into endpoint (id, public_id, tenant_id, bucket, delivery_tail, url) values (" + uuid +
           ", '" + id.public_id() + "', '" + tenant + "', " +
           std::to_string(model::bucket_of(id, support::buckets)) + ", '" + model::delivery_tail_of(id) +
           "', 'http://127.0.0.1/'); insert into subscription (tenant_id, pattern, endpoint_id) select '" +
           tenant + "', p, " + uuid + " from unnest('" + patterns + "'::text[]) p");
    return uuid;
  }

  support::Database db;
  runtime::Loop loop;
  pg::Link link;
  model::IdSource ids;
};

}  // namespace postrider::upkeep
