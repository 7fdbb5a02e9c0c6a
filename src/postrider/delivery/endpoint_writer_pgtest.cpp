// Writes to endpoints, and that a locked endpoint does not delay others.
#include "postrider/delivery/settle/endpoint_writer.hpp"

#include "postrider/delivery/delivery_testing.hpp"

namespace postrider::delivery {
namespace {

struct EndpointWriterTest : DeliveryTest {
  EndpointWriterTest() : link(loop, {.connect = pg::ConnectOptions::engine(db.url())}) {
    make_tenant("acme");
    endpoint = make_endpoint("acme", receiver.url("/in"));
    link.start();
    run(link.wait_up(base::BootClock::now() + 30s));
    writer = std::make_unique<EndpointWriter>(loop, link, node);
  }
  ~EndpointWriterTest() override {
    writer->abandon();
    run(link.stop());
    run(writer->stop());
  }

  // Returns once what can be written now is written.
  void write() { run(writer->drain(base::BootClock::now() + 60s)); }
  runtime::Task<void> until(std::string sql, std::string wanted) {
    runtime::Wakeup turn(loop);
    while (db.sql(sql) != wanted) co_await turn.wait_for(1ms);
  }

  model::NodeId node = node_number(1);
  pg::Link link;
  TestEndpoint endpoint;
  std::unique_ptr<EndpointWriter> writer;
};

TEST_F(EndpointWriterTest, TheLastOfTwoHealthNotesCounts) {
  writer->note_health({endpoint.id, true, "open", ids.now()});
  writer->note_health({endpoint.id, false, "closed", ids.now()});
  write();
  EXPECT_EQ(db.sql("select breaker, failing_since is null, last_success_at is not null from endpoint"),
            "closed|t|t");
}

TEST_F(EndpointWriterTest, AHoldThatEndedLeavesItsSpan) {
  db.sql("update bucket_lease set owner = " + quoted(node.uuid));
  writer->note_hold(endpoint.id, "the key is missing");
  write();
  EXPECT_EQ(db.sql("select count(*) from pause_span"), "0");
  db.sql("update endpoint set held_since = now() - interval '1 hour'");
  writer->note_hold(endpoint.id, "the key is still missing");
  write();
  EXPECT_EQ(db.sql("select count(*) from pause_span"), "0");
  writer->note_hold(endpoint.id, "");
  write();
  EXPECT_EQ(db.sql("select round(extract(epoch from until - since) / 60), held_since is null "
                   "from pause_span join endpoint on endpoint.id = endpoint_id"),
            "60|t");
}

TEST_F(EndpointWriterTest, DisablingAndPausingAreNotedOnce) {
  writer->change_status({endpoint.id, Verdict::Endpoint::disable, "gone"});
  writer->change_status({endpoint.id, Verdict::Endpoint::disable, "gone"});
  writer->change_status({endpoint.id, Verdict::Endpoint::pause, "late"});
  const std::string version = db.sql("select version from registry_version");
  write();
  EXPECT_EQ(db.sql("select status, status_reason, status_by from endpoint"), "disabled|gone|postrider");
  EXPECT_EQ(db.sql("select count(*) from control_log where version > " + version), "1");
}

TEST_F(EndpointWriterTest, DisablingAnEndpointLeavesAnOperatorsPauseToTheOperator) {
  const auto customers = make_endpoint("acme", receiver.url("/in"));
  db.sql("update endpoint set status = 'paused', status_by = 'operator' where id = " +
         quoted(endpoint.id.uuid));
  db.sql("update endpoint set status = 'paused', status_by = 'customer' where id = " +
         quoted(customers.id.uuid));
  writer->change_status({endpoint.id, Verdict::Endpoint::disable, "gone"});
  writer->change_status({customers.id, Verdict::Endpoint::disable, "gone"});
  write();
  const auto state = [this](const TestEndpoint& of) {
    return db.sql("select status, status_by from endpoint where id = " + quoted(of.id.uuid));
  };
  EXPECT_EQ(state(endpoint), "disabled|operator");
  EXPECT_EQ(state(customers), "disabled|postrider");
}

TEST_F(EndpointWriterTest, AnEndpointThatAnOpenTransactionHoldsKeepsNobodyWaiting) {
  support::SyncSql person(db.url());
  person("begin; select pause_endpoint('" + endpoint.id.public_id() + "', 'in a transaction')");
  writer->change_status({endpoint.id, Verdict::Endpoint::disable, "gone"});
  EndpointWriter::HealthChange failing{};
  failing.endpoint = endpoint.id;
  failing.is_failing = true;
  failing.breaker = "closed";
  failing.at = base::wall_now();
  writer->note_health(failing);
  write();
  person("rollback");
  run(until("select status, failing_since is not null from endpoint", "disabled|t"));
}

TEST_F(EndpointWriterTest, TwoEndpointsThatAreGoneDoNotWaitCrosswiseWithAPerson) {
  const auto other = make_endpoint("acme", receiver.url("/in"));
  support::SyncSql person(db.url());
  person("begin; update endpoint set description = 'x' where id = " + quoted(other.id.uuid));
  writer->change_status({endpoint.id, Verdict::Endpoint::disable, "gone"});
  writer->change_status({other.id, Verdict::Endpoint::disable, "gone"});
  EXPECT_NO_THROW(person("set local lock_timeout = '500ms'; select record_change('endpoint', 'acme', " +
                         quoted(other.id.uuid) + ")"));
  person("commit");
  write();
  run(until("select count(*) from endpoint where status = 'disabled'", "2"));
}

TEST_F(EndpointWriterTest, AStatusThatCouldNotBeWrittenIsWrittenLater) {
  support::SyncSql person(db.url());
  person("begin; select from endpoint for update");
  writer->change_status({endpoint.id, Verdict::Endpoint::disable, "gone"});
  write();
  EXPECT_EQ(db.sql("select status from endpoint"), "active");
  person("commit");
  write();
  run(until("select status from endpoint", "disabled"));
}

}  // namespace
}  // namespace postrider::delivery
