// The raw Postgres limit: the rows of a delivery written in pipelined batches over one connection, with no
// project code and nothing else going on.
//
//   bench_raw_pg --database URL [--seconds 5] [--batch 250] [--endpoints 1000]
//   bench_raw_pg --database URL --rate 100 --seconds 5      the time of one small commit on an idle machine
//
// Works on a migrated schema, in a tenant of its own. Per batch: one transaction that inserts the events,
// their queue rows through the subscription join and a publish_log row; one that deletes the queue rows and
// inserts the attempts. Prints JSON: deliveries per second and CPU time per delivery of this process and of
// Postgres, or commit latency.
#include <libpq-fe.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "flags.hpp"
#include "histogram.hpp"
#include "net.hpp"

namespace bench {
namespace {

constexpr const char* make_registry = R"(
  insert into postrider.tenant (id) values ('raw') on conflict do nothing;
  insert into postrider.endpoint (id, public_id, tenant_id, bucket, delivery_tail, url)
  select ('018f0000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, 'raw-' || n, 'raw', n % 64,
         lpad(to_hex(n), 12, '0'), 'http://127.0.0.1:9/'
  from generate_series(1, current_setting('bench.endpoints')::int) as n on conflict do nothing;
  insert into postrider.subscription (tenant_id, pattern, endpoint_id)
  select 'raw', 'raw.e' || n, ('018f0000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid
  from generate_series(1, current_setting('bench.endpoints')::int) as n on conflict do nothing;
  analyze postrider.endpoint, postrider.subscription;)";

constexpr const char* insert_events = R"(
  insert into postrider.event (id, tenant_id, type, body, created_at)
  select e.id, 'raw', e.type, $3, now() from unnest($1::uuid[], $2::text[]) as e (id, type))";

constexpr const char* insert_queue = R"(
  insert into postrider.queue (bucket, id, event_id, endpoint_id, tenant_id, due_at, created_at)
  select p.bucket, (left(replace(e.id::text, '-', ''), 20) || p.delivery_tail)::uuid, e.id, p.id, 'raw', now(), now()
  from unnest($1::uuid[], $2::text[]) as e (id, type)
  join postrider.subscription s on s.tenant_id = 'raw' and s.pattern = e.type and s.enabled
  join postrider.endpoint p on p.id = s.endpoint_id and p.status in ('active', 'paused'))";

constexpr const char* insert_log = R"(
  insert into postrider.publish_log (node_id, first_id, last_id, buckets) values ($1, $2, $3, '{0,1,2,3}'))";

constexpr const char* settle = R"(
  with settled as (
    delete from postrider.queue q
    using unnest($1::int[], $2::uuid[]) as d (bucket, id)
    where q.bucket = d.bucket and q.id = d.id and q.attempts = 0
    returning q.bucket, q.id, q.event_id, q.endpoint_id, q.tenant_id, q.created_at
  )
  insert into postrider.attempt (delivery_id, attempt, bucket, endpoint_id, event_id, tenant_id, outcome, status_code,
                                 started_at, first_byte_us, total_us, preview, address, node_id, created_at)
  select id, 1, bucket, endpoint_id, event_id, tenant_id, 'delivered', 200, now(), 300, 400, 'ok', '127.0.0.1',
         '018f0000-0000-7000-8000-000000000000', created_at
  from settled)";

struct Batch {
  std::string ids;  // array literals
  std::string types;
  std::string settle_buckets;  // sorted by bucket, then id
  std::string settle_ids;
  std::string first_id;
  std::string last_id;
};

// Event n goes to endpoint n % endpoints + 1; its id carries a time near now and is unique in its first ten
// bytes.
class BatchMaker {
 public:
  explicit BatchMaker(std::uint64_t endpoints) : endpoints_(endpoints) {
    using std::chrono::milliseconds;
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    start_ms_ = static_cast<std::uint64_t>(std::chrono::duration_cast<milliseconds>(now).count());
  }

  Batch next(std::size_t count) {
    Batch batch;
    std::vector<std::pair<std::uint64_t, std::string>> deliveries;
    for (std::size_t i = 0; i < count; ++i, ++number_) {
      const std::uint64_t endpoint = number_ % endpoints_ + 1;
      batch.last_id = id(number_, 0);
      if (i == 0) batch.first_id = batch.last_id;
      batch.ids += (i == 0 ? "{" : ",") + batch.last_id;
      batch.types += (i == 0 ? "{raw.e" : ",raw.e") + std::to_string(endpoint);
      deliveries.emplace_back(endpoint % 64, id(number_, endpoint));
    }
    batch.ids += "}";
    batch.types += "}";
    std::sort(deliveries.begin(), deliveries.end());
    for (const auto& [bucket, delivery] : deliveries) {
      batch.settle_buckets += (batch.settle_buckets.empty() ? "{" : ",") + std::to_string(bucket);
      batch.settle_ids += (batch.settle_ids.empty() ? "{" : ",") + delivery;
    }
    batch.settle_buckets += "}";
    batch.settle_ids += "}";
    return batch;
  }

 private:
  std::string id(std::uint64_t number, std::uint64_t tail) const {
    char text[33];
    std::snprintf(text, sizeof text, "%012lx7%03lx8000%012lx", start_ms_ + number / 4096, number % 4096,
                  tail);
    return text;
  }

  std::uint64_t endpoints_;
  std::uint64_t start_ms_ = 0;
  std::uint64_t number_ = 0;
};

class Session {
 public:
  explicit Session(const std::string& database) : connection_(PQconnectdb(database.c_str()), PQfinish) {
    if (PQstatus(get()) != CONNECTION_OK) throw std::runtime_error(PQerrorMessage(get()));
    execute("set plan_cache_mode = force_generic_plan; set jit = off; set search_path = postrider");
  }

  void execute(const std::string& sql) { check(PQexec(get(), sql.c_str())); }

  void prepare(const char* name, const char* sql) { check(PQprepare(get(), name, sql, 0, nullptr)); }

  void enter_pipeline() {
    if (PQenterPipelineMode(get()) != 1) throw std::runtime_error(PQerrorMessage(get()));
  }

  void send(const char* name, std::initializer_list<const std::string*> parameters) {
    std::vector<const char*> values;
    for (const auto* parameter : parameters) values.push_back(parameter->c_str());
    if (PQsendQueryPrepared(get(), name, static_cast<int>(values.size()), values.data(), nullptr, nullptr,
                            0) != 1)
      throw std::runtime_error(PQerrorMessage(get()));
  }

  // Ends the group and waits for all its results.
  void sync() {
    PQpipelineSync(get());
    for (;;) {
      PGresult* result = PQgetResult(get());
      if (result == nullptr) continue;
      const bool is_end = PQresultStatus(result) == PGRES_PIPELINE_SYNC;
      check(result);
      if (is_end) return;
    }
  }

  int backend_pid() const { return PQbackendPID(get()); }

 private:
  PGconn* get() const { return connection_.get(); }

  void check(PGresult* result) {
    const ExecStatusType status = PQresultStatus(result);
    const std::string message = PQresultErrorMessage(result);
    PQclear(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK && status != PGRES_PIPELINE_SYNC)
      throw std::runtime_error(message);
  }

  std::unique_ptr<PGconn, decltype(&PQfinish)> connection_;
};

int parent_of(int pid) {
  std::ifstream file{"/proc/" + std::to_string(pid) + "/stat"};
  std::string text{std::istreambuf_iterator<char>{file}, {}};
  const auto after_name = text.rfind(')');
  return after_name == std::string::npos ? 0 : std::atoi(text.c_str() + after_name + 4);
}

// CPU time of all processes of the server that the backend belongs to: WAL writer, checkpointer and vacuum
// included.
std::uint64_t server_cpu_us(int backend_pid) {
  const int postmaster = parent_of(backend_pid);
  std::uint64_t total = process_cpu_us(postmaster);
  for (const auto& entry : std::filesystem::directory_iterator{"/proc"}) {
    const int pid = std::atoi(entry.path().filename().c_str());
    if (pid > 0 && parent_of(pid) == postmaster) total += process_cpu_us(pid);
  }
  return total;
}

class RawWrites {
 public:
  RawWrites(const std::string& database, std::uint64_t endpoints) : session_(database), maker_(endpoints) {
    session_.execute("set bench.endpoints = " + std::to_string(endpoints));
    session_.execute(make_registry);
    session_.prepare("begin", "begin");
    session_.prepare("commit", "commit");
    session_.prepare("insert_events", insert_events);
    session_.prepare("insert_queue", insert_queue);
    session_.prepare("insert_log", insert_log);
    session_.prepare("settle", settle);
    session_.enter_pipeline();
  }

  void write_for(double seconds, std::size_t batch_size) {
    std::uint64_t deliveries = 0;
    std::uint64_t publish_ns = 0;
    const std::uint64_t own_before = own_cpu_us();
    const std::uint64_t backend_before = process_cpu_us(session_.backend_pid());
    const std::uint64_t server_before = server_cpu_us(session_.backend_pid());
    const std::uint64_t start = now_ns();
    while (now_ns() < start + static_cast<std::uint64_t>(seconds * 1e9) && !stop_requested()) {
      const Batch batch = maker_.next(batch_size);
      const std::uint64_t before = now_ns();
      publish(batch);
      publish_ns += now_ns() - before;
      settle_all(batch);
      deliveries += batch_size;
    }
    const double elapsed_us = static_cast<double>(now_ns() - start) / 1e3;
    const auto each = [deliveries](auto us) {
      return static_cast<double>(us) / static_cast<double>(deliveries);
    };
    std::printf(
        "{\"deliveries\":%lu,\"batch\":%lu,\"deliveries_per_s\":%.0f,\"wall_us\":%.3f,\"publish_wall_us\":%."
        "3f,\"client_cpu_us\":%.3f,"
        "\"backend_cpu_us\":%.3f,\"server_cpu_us\":%.3f}\n",
        deliveries, batch_size, static_cast<double>(deliveries) * 1e6 / elapsed_us, each(elapsed_us),
        each(publish_ns / 1000), each(own_cpu_us() - own_before),
        each(process_cpu_us(session_.backend_pid()) - backend_before),
        each(server_cpu_us(session_.backend_pid()) - server_before));
  }

  void time_single_commits(double seconds, double rate) {
    Histogram latency;
    const std::uint64_t start = now_ns();
    const std::uint64_t end = start + static_cast<std::uint64_t>(seconds * 1e9);
    for (std::uint64_t n = 0; now_ns() < end && !stop_requested(); ++n) {
      const std::uint64_t due = start + static_cast<std::uint64_t>(static_cast<double>(n) * 1e9 / rate);
      const timespec until{.tv_sec = static_cast<time_t>(due / 1'000'000'000),
                           .tv_nsec = static_cast<long>(due % 1'000'000'000)};
      clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
      const Batch batch = maker_.next(1);
      const std::uint64_t before = now_ns();
      publish(batch);
      latency.record(now_ns() - before);
      settle_all(batch);
    }
    std::printf("{\"commit_latency\":%s}\n", latency.summary_json().c_str());
  }

 private:
  void publish(const Batch& batch) {
    session_.send("begin", {});
    session_.send("insert_events", {&batch.ids, &batch.types, &body_});
    session_.send("insert_queue", {&batch.ids, &batch.types});
    session_.send("insert_log", {&node_, &batch.first_id, &batch.last_id});
    session_.send("commit", {});
    session_.sync();
  }

  void settle_all(const Batch& batch) {
    session_.send("begin", {});
    session_.send("settle", {&batch.settle_buckets, &batch.settle_ids});
    session_.send("commit", {});
    session_.sync();
  }

  Session session_;
  BatchMaker maker_;
  const std::string body_ = std::string(300, 'x');
  const std::string node_ = "018f0000-0000-7000-8000-000000000000";
};

int run(int argc, char** argv) {
  const Flags flags{argc, argv, {"database", "seconds", "batch", "endpoints", "rate"}};
  stop_on_signals();
  RawWrites writes{flags.text("database", ""), flags.number("endpoints", 1000)};
  const double rate = flags.real("rate", 0);
  if (rate > 0)
    writes.time_single_commits(flags.real("seconds", 5), rate);
  else
    writes.write_for(flags.real("seconds", 5), flags.number("batch", 250));
  return 0;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  try {
    return bench::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_raw_pg: %s\n", error.what());
    return 1;
  }
}
