// A bare epoll load generator: publishes numbered events over the HTTP API.
//
//   bench_loadgen --target 127.0.0.1:8090 --key KEY [--tenants 100] [--types 10] [--batch 1] [--connections
//   16]
//                 [--rate 0] [--seconds 10] [--count 0] [--window 0 --receiver 127.0.0.1:9000]
//                 [--first-seq 0] [--data-bytes 160] [--tenant-prefix bench-] [--record FILE]
//
// --source S --secret K sends inbound webhooks to /in/S instead, signed as GitHub signs.
// --batch 1 publishes with POST /v1/tenants/{tenant}/events, more with POST /v1/events/batch. --rate N
// (events per second) is an open loop: an event's publish time is when it was due, so waiting for a free
// connection counts.
// --rate 0 is a closed loop; with --window it stops while more than that many events were published but have
// not reached the receiver, so the rate it settles at is the rate at which deliveries keep up.
// --record writes two u64 per event from --first-seq on: when it was sent and when it was acknowledged.
// Prints JSON: events acknowledged, errors, rate, time from sending to acknowledgement.
#include <sys/epoll.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "client_connection.hpp"
#include "event_writer.hpp"
#include "flags.hpp"
#include "histogram.hpp"
#include "http_message.hpp"
#include "net.hpp"

namespace bench {
namespace {

constexpr std::uint64_t poll_step_ns = 5'000'000;  // how often the receiver's count is asked for
constexpr std::uint64_t answer_wait_ns = 30'000'000'000;

struct Options {
  Address target;
  std::size_t connections;
  std::size_t batch;
  double rate;
  std::uint64_t run_ns;
  std::uint64_t count_max;  // 0: until the time is over
  std::uint64_t first_number;
  std::uint64_t window;  // 0: none
  Address receiver;
  std::string record_path;
};

struct Slot {
  std::unique_ptr<ClientConnection> connection;
  std::uint64_t first_number = 0;
  std::size_t events = 0;
};

// Follows how many requests the receiver has got since this was made.
class ReceiverCount {
 public:
  ReceiverCount(Address receiver, int epoll, std::uint64_t tag) : connection_(receiver, epoll, tag) {}

  void ask_when_due(std::uint64_t now) {
    if (connection_.is_busy() || now < next_ns_) return;
    next_ns_ = now + poll_step_ns;
    connection_.send("GET /__count HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n");
  }
  void on_event() {
    const auto response = connection_.read();
    if (!response || response->status != 200) return;
    const std::uint64_t total = number_after(response->body, "").value_or(0);
    if (!is_known_) baseline_ = total;
    is_known_ = true;
    arrived_ = total - baseline_;
  }
  bool is_known() const { return is_known_; }
  std::uint64_t arrived() const { return arrived_; }

 private:
  ClientConnection connection_;
  std::uint64_t next_ns_ = 0;
  std::uint64_t baseline_ = 0;
  std::uint64_t arrived_ = 0;
  bool is_known_ = false;
};

struct Result {
  std::uint64_t sent = 0;
  std::uint64_t acked = 0;
  std::uint64_t rejected = 0;
  std::uint64_t elapsed_ns = 0;
  std::map<int, std::uint64_t> statuses;
  Histogram latency;
  std::vector<std::uint64_t> record;
};

// The response to a batch has one status per item: counts those that are not 2xx.
std::uint64_t rejected_items(std::string_view body) {
  std::uint64_t rejected = 0;
  constexpr std::string_view name = "\"status\":";
  for (auto at = body.find(name); at != std::string_view::npos; at = body.find(name, at + name.size())) {
    const char first = body[std::min(body.find_first_not_of(' ', at + name.size()), body.size() - 1)];
    if (first >= '3' && first <= '9') ++rejected;
  }
  return rejected;
}

class LoadGenerator {
 public:
  LoadGenerator(Options options, EventWriter writer)
      : options_(std::move(options)),
        writer_(std::move(writer)),
        epoll_(make_epoll()),
        slots_(options_.connections) {
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      slots_[i].connection = std::make_unique<ClientConnection>(options_.target, epoll_.get(), i);
      free_.push_back(i);
    }
    if (options_.window > 0)
      receiver_ = std::make_unique<ReceiverCount>(options_.receiver, epoll_.get(), slots_.size());
  }

  Result run() {
    start_ns_ = now_ns();
    const std::uint64_t end = start_ns_ + options_.run_ns;
    while (now_ns() < end && !is_count_reached() && !stop_requested()) {
      if (receiver_) receiver_->ask_when_due(now_ns());
      send_what_may_go();
      wait_for_events();
    }
    result_.elapsed_ns = now_ns() - start_ns_;
    const std::uint64_t patience_end = now_ns() + answer_wait_ns;
    while (free_.size() < slots_.size() && now_ns() < patience_end && !stop_requested()) wait_for_events();
    return std::move(result_);
  }

 private:
  bool is_count_reached() const { return options_.count_max > 0 && result_.sent >= options_.count_max; }

  void send_what_may_go() {
    while (!free_.empty() && !is_count_reached()) {
      std::size_t events = options_.batch;
      if (options_.count_max > 0) events = std::min<std::size_t>(events, options_.count_max - result_.sent);
      const std::uint64_t now = now_ns();
      const std::uint64_t due = due_ns(result_.sent + events - 1);
      if (due > now || !is_window_open()) return;
      send(events, options_.rate > 0 ? due_ns(result_.sent) : now);
    }
  }

  std::uint64_t due_ns(std::uint64_t index) const {
    if (options_.rate <= 0) return 0;
    return start_ns_ + static_cast<std::uint64_t>(static_cast<double>(index) * 1e9 / options_.rate);
  }

  bool is_window_open() const {
    if (!receiver_) return true;
    return receiver_->is_known() && result_.sent < receiver_->arrived() + options_.window;
  }

  void send(std::size_t events, std::uint64_t published_ns) {
    Slot& slot = slots_[free_.back()];
    free_.pop_back();
    slot.first_number = options_.first_number + result_.sent;
    slot.events = events;
    slot.connection->send(options_.batch == 1
                              ? writer_.single({.number = slot.first_number, .published_ns = published_ns})
                              : writer_.batch(slot.first_number, events, published_ns));
    result_.sent += events;
    if (!options_.record_path.empty()) result_.record.resize(result_.sent * 2);
  }

  void wait_for_events() {
    std::uint64_t wait_ns =
        poll_step_ns;  // responses and the receiver's count are events; nothing else opens a slot
    if (options_.rate > 0 && !free_.empty()) {
      const std::uint64_t due = due_ns(result_.sent + options_.batch - 1);
      const std::uint64_t now = now_ns();
      wait_ns = due > now ? std::min<std::uint64_t>(due - now, 100'000'000) : 0;
    }
    const timespec wait{.tv_sec = 0, .tv_nsec = static_cast<long>(wait_ns)};
    epoll_event events[256];
    const int count = epoll_pwait2(epoll_.get(), events, 256, &wait, nullptr);
    for (int i = 0; i < count; ++i) {
      const std::uint64_t tag = events[i].data.u64;
      if (tag == slots_.size())
        receiver_->on_event();
      else
        take_response(tag);
    }
  }

  void take_response(std::size_t index) {
    Slot& slot = slots_[index];
    const bool was_busy = slot.connection->is_busy();
    const auto response = slot.connection->read();
    if (!response) return;
    if (!was_busy) return;  // an idle connection was closed and opened anew
    const std::uint64_t now = now_ns();
    ++result_.statuses[response->status];
    const bool is_taken = response->status >= 200 && response->status < 300;
    const std::uint64_t rejected =
        !is_taken ? slot.events : (options_.batch > 1 ? rejected_items(response->body) : 0);
    result_.rejected += rejected;
    result_.acked += slot.events - std::min<std::uint64_t>(rejected, slot.events);
    result_.latency.record(now - slot.connection->sent_ns());
    for (std::size_t i = 0; !result_.record.empty() && i < slot.events; ++i) {
      const std::size_t at = (slot.first_number - options_.first_number + i) * 2;
      result_.record[at] = slot.connection->sent_ns();
      result_.record[at + 1] = is_taken ? now : 0;
    }
    free_.push_back(index);
  }

  Options options_;
  EventWriter writer_;
  Descriptor epoll_;
  std::vector<Slot> slots_;
  std::vector<std::size_t> free_;
  std::unique_ptr<ReceiverCount> receiver_;
  std::uint64_t start_ns_ = 0;
  Result result_;
};

void write_record(const std::string& path, const std::vector<std::uint64_t>& record) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) throw std::runtime_error("cannot write " + path);
  std::fwrite(record.data(), sizeof(std::uint64_t), record.size(), file);
  std::fclose(file);
}

void print(const Result& result) {
  std::string statuses;
  for (const auto& [status, count] : result.statuses)
    statuses += (statuses.empty() ? "\"" : ",\"") + std::to_string(status) + "\":" + std::to_string(count);
  const double seconds = static_cast<double>(result.elapsed_ns) / 1e9;
  std::printf(
      "{\"sent\":%lu,\"acked\":%lu,\"rejected\":%lu,\"seconds\":%.3f,\"acked_per_s\":%.0f,\"cpu_us\":%lu,"
      "\"statuses\":{%s},\"latency\":%s}\n",
      result.sent, result.acked, result.rejected, seconds, static_cast<double>(result.acked) / seconds,
      own_cpu_us(), statuses.c_str(), result.latency.summary_json().c_str());
}

int run(int argc, char** argv) {
  const Flags flags{
      argc,
      argv,
      {"target", "key", "tenants", "types", "batch", "connections", "rate", "seconds", "count", "window",
       "receiver", "first-seq", "data-bytes", "tenant-prefix", "record", "source", "secret"}};
  raise_descriptor_limit();
  stop_on_signals();
  const std::string target = flags.text("target", "127.0.0.1:8090");
  Options options{.target = parse_address(target),
                  .connections = flags.number("connections", 16),
                  .batch = flags.number("batch", 1),
                  .rate = flags.real("rate", 0),
                  .run_ns = static_cast<std::uint64_t>(flags.real("seconds", 10) * 1e9),
                  .count_max = flags.number("count", 0),
                  .first_number = flags.number("first-seq", 0),
                  .window = flags.number("window", 0),
                  .receiver = {},
                  .record_path = flags.text("record", "")};
  if (options.window > 0) options.receiver = parse_address(flags.text("receiver", ""));
  EventShape shape{.tenant_prefix = flags.text("tenant-prefix", "bench-"),
                   .tenants = flags.number("tenants", 100),
                   .types = flags.number("types", 10),
                   .source = flags.text("source", ""),
                   .secret = flags.text("secret", ""),
                   .data_bytes = flags.number("data-bytes", 160)};
  const std::string record_path = options.record_path;
  LoadGenerator generator{std::move(options),
                          EventWriter{std::move(shape), target, flags.text("key", "none")}};
  const Result result = generator.run();
  if (!record_path.empty()) write_record(record_path, result.record);
  print(result);
  return 0;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  try {
    return bench::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_loadgen: %s\n", error.what());
    return 1;
  }
}
