// A bare epoll HTTP/1.1 receiver that is never the bottleneck of a benchmark.
//
//   bench_receiver --listen 127.0.0.1:9000 [--hosts N] [--record FILE]
//
// The path decides the response: /ok… at once with 200, /delay/MS/… after MS milliseconds, /fail/STATUS/… at
// once with that status, /hang… never. Any other path is treated like /ok, so the receiver can stand in for
// an API. A body may have "bench_t":NS (CLOCK_MONOTONIC when it was published) and "bench_seq":N (its
// number): the first feeds the latency histogram, the second detects duplicates and simultaneous requests.
// GET /__stats gives all figures as JSON, /__count the requests received, /__reset sets everything to zero.
// --hosts N listens on N addresses, 127.1.0.1 and up, on the same port: N distinct hosts for a client's pool.
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstring>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "arrival_ledger.hpp"
#include "flags.hpp"
#include "histogram.hpp"
#include "http_message.hpp"
#include "net.hpp"

namespace bench {
namespace {

constexpr std::uint64_t series_step_ns = 100'000'000;
constexpr std::size_t series_points_max = 36'000;  // an hour
constexpr std::size_t read_bytes = std::size_t{64} * 1024;
constexpr std::uint64_t no_number = ~std::uint64_t{0};

struct Connection {
  Descriptor socket;
  std::string unread;  // the start of a request whose rest has not come
  std::string unsent;
  std::uint64_t id = 0;
  std::uint64_t open_number = no_number;  // of the request being held back
  bool is_holding = false;
  bool is_waiting = false;  // for the socket to take `unsent`
};

struct HeldResponse {
  std::uint64_t due_ns;
  std::uint64_t connection;
};

struct Figures {
  std::uint64_t received = 0;
  std::uint64_t answered = 0;
  std::uint64_t body_bytes = 0;
  std::uint64_t in_flight = 0;
  std::uint64_t in_flight_peak = 0;
  std::uint64_t connections_peak = 0;
  std::uint64_t first_ns = 0;
  std::uint64_t last_ns = 0;
  std::uint64_t started_ns = now_ns();
  std::uint64_t cpu_us_at_start = own_cpu_us();
  Histogram latency;
  std::vector<std::uint32_t> series;
};

std::string answer_text(int status, std::string_view body = "ok") {
  return "HTTP/1.1 " + std::to_string(status) + " Bench\r\ncontent-length: " + std::to_string(body.size()) +
         "\r\n\r\n" + std::string{body};
}

class Receiver {
 public:
  Receiver(Address address, std::size_t hosts, const std::string& record_path)
      : epoll_(make_epoll()), ledger_(record_path), ok_(answer_text(200)) {
    for (std::size_t i = 0; i < hosts; ++i) {
      listeners_.push_back(listen_on(nth_host(address, i)));
      if (address.port == 0) address.port = port_of(listeners_.front().get());
      watch(epoll_.get(), listeners_.back().get(), EPOLLIN, i);
    }
    next_id_ = listeners_.size();
  }

  std::uint16_t port() const { return port_of(listeners_.front().get()); }

  void run() {
    std::vector<epoll_event> events(1024);
    while (!stop_requested()) {
      const int count =
          epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), held_timeout_ms());
      for (int i = 0; i < count; ++i) {
        const std::uint64_t tag = events[i].data.u64;
        if (tag < listeners_.size())
          accept_all(listeners_[tag].get());
        else
          serve(tag);
      }
      answer_due();
    }
  }

 private:
  void accept_all(int listener) {
    for (;;) {
      Descriptor socket{accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)};
      if (!socket.is_open()) return;
      auto connection = std::make_unique<Connection>();
      connection->id = next_id_++;
      watch(epoll_.get(), socket.get(), EPOLLIN | EPOLLRDHUP, connection->id);
      connection->socket = std::move(socket);
      connections_.emplace(connection->id, std::move(connection));
      figures_.connections_peak = std::max<std::uint64_t>(figures_.connections_peak, connections_.size());
    }
  }

  void serve(std::uint64_t id) {
    const auto found = connections_.find(id);
    if (found == connections_.end()) return;
    Connection& connection = *found->second;
    if (!connection.unsent.empty()) flush(connection);
    const ssize_t got = recv(connection.socket.get(), input_, sizeof input_, 0);
    if (got == 0 || (got < 0 && errno != EAGAIN)) return drop(connection);
    if (got < 0) return;

    std::string_view fresh{input_, static_cast<std::size_t>(got)};
    if (!connection.unread.empty()) {
      connection.unread.append(fresh);
      fresh = connection.unread;
    }
    std::string_view rest = fresh;
    while (const auto request = first_message(rest)) {
      handle(connection, *request);
      rest.remove_prefix(request->bytes);
    }
    connection.unread = std::string{rest};
  }

  void handle(Connection& connection, const Message& request) {
    const std::string_view target = target_of(request);
    if (target.starts_with("/__")) return send_text(connection, answer_text(200, control(target)));

    const std::uint64_t at = now_ns();
    const std::uint64_t number = note_arrival(request, at);
    if (target.starts_with("/hang") || target.starts_with("/delay/")) {
      connection.is_holding = true;
      connection.open_number = number;
      figures_.in_flight_peak = std::max(figures_.in_flight_peak, ++figures_.in_flight);
      if (target[1] == 'd') {
        const std::uint64_t delay_ms = number_after(target, "/delay/").value_or(0);
        held_[delay_ms].push_back({.due_ns = at + delay_ms * 1'000'000, .connection = connection.id});
      }
      return;
    }
    ledger_.leave(number);
    ++figures_.answered;
    if (target.starts_with("/fail/"))
      return send_text(connection,
                       answer_text(static_cast<int>(number_after(target, "/fail/").value_or(500))));
    send_text(connection, ok_);
  }

  std::uint64_t note_arrival(const Message& request, std::uint64_t at) {
    ++figures_.received;
    figures_.body_bytes += request.body.size();
    if (figures_.first_ns == 0) figures_.first_ns = at;
    figures_.last_ns = at;
    const std::size_t step = (at - figures_.started_ns) / series_step_ns;
    if (step >= figures_.series.size() && step < series_points_max) figures_.series.resize(step + 1);
    if (step < series_points_max) ++figures_.series[step];

    if (const auto published = number_after(request.body, "\"bench_t\":"); published && *published > 0)
      figures_.latency.record(at > *published ? at - *published : 0);
    const auto number = number_after(request.body, "\"bench_seq\":");
    if (!number) return no_number;
    ledger_.arrive(*number, at);
    return *number;
  }

  void answer_due() {
    const std::uint64_t now = now_ns();
    for (auto& [delay_ms, queue] : held_) {
      while (!queue.empty() && queue.front().due_ns <= now) {
        const auto found = connections_.find(queue.front().connection);
        queue.pop_front();
        if (found == connections_.end() || !found->second->is_holding) continue;
        release(*found->second);
        ++figures_.answered;
        send_text(*found->second, ok_);
      }
    }
  }

  int held_timeout_ms() const {
    std::uint64_t due = ~std::uint64_t{0};
    for (const auto& [delay_ms, queue] : held_)
      if (!queue.empty()) due = std::min(due, queue.front().due_ns);
    if (due == ~std::uint64_t{0}) return 1000;
    const std::uint64_t now = now_ns();
    return due <= now ? 0 : static_cast<int>((due - now + 999'999) / 1'000'000);
  }

  void release(Connection& connection) {
    connection.is_holding = false;
    --figures_.in_flight;
    ledger_.leave(connection.open_number);
  }

  void drop(Connection& connection) {
    if (connection.is_holding) release(connection);
    connections_.erase(connection.id);
  }

  void send_text(Connection& connection, const std::string& text) {
    connection.unsent += text;
    flush(connection);
  }

  // What the socket does not take now goes out when it is writable again; a dead peer is noticed by reading.
  void flush(Connection& connection) {
    const ssize_t sent =
        send(connection.socket.get(), connection.unsent.data(), connection.unsent.size(), MSG_NOSIGNAL);
    if (sent > 0) connection.unsent.erase(0, static_cast<std::size_t>(sent));
    const bool is_waiting = !connection.unsent.empty();
    if (is_waiting == connection.is_waiting) return;
    connection.is_waiting = is_waiting;
    const std::uint32_t events = EPOLLIN | EPOLLRDHUP | (is_waiting ? std::uint32_t{EPOLLOUT} : 0);
    watch(epoll_.get(), connection.socket.get(), events, connection.id);
  }

  std::string control(std::string_view target) {
    if (target.starts_with("/__count")) return std::to_string(figures_.received);
    if (target.starts_with("/__reset")) {
      const std::uint64_t in_flight = figures_.in_flight;
      figures_ = Figures{};
      figures_.in_flight = figures_.in_flight_peak = in_flight;
      ledger_.clear();
      return "{}";
    }
    return stats_json();
  }

  std::string stats_json() const {
    const auto& counts = ledger_.counts();
    std::string out = "{";
    const auto add = [&out](const char* name, std::uint64_t value) {
      out += "\"" + std::string{name} + "\":" + std::to_string(value) + ",";
    };
    add("received", figures_.received);
    add("answered", figures_.answered);
    add("body_bytes", figures_.body_bytes);
    add("in_flight", figures_.in_flight);
    add("in_flight_peak", figures_.in_flight_peak);
    add("connections", connections_.size());
    add("connections_peak", figures_.connections_peak);
    add("unique", counts.unique);
    add("duplicates", counts.duplicates);
    add("overlaps", counts.overlaps);
    add("out_of_range", counts.out_of_range);
    add("first_ns", figures_.first_ns);
    add("last_ns", figures_.last_ns);
    add("started_ns", figures_.started_ns);
    add("now_ns", now_ns());
    add("cpu_us", own_cpu_us() - figures_.cpu_us_at_start);
    out += "\"latency\":" + figures_.latency.summary_json() + ",\"series_step_ms\":100,\"series\":[";
    for (const auto value : figures_.series) out += std::to_string(value) + ",";
    if (out.back() == ',') out.pop_back();
    out += "],\"cdf\":[";
    for (const auto& point : figures_.latency.points())
      out += "[" + std::to_string(point.value_ns) + "," + std::to_string(point.fraction) + "],";
    if (out.back() == ',') out.pop_back();
    return out + "]}";
  }

  Descriptor epoll_;
  std::vector<Descriptor> listeners_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Connection>> connections_;
  std::map<std::uint64_t, std::deque<HeldResponse>>
      held_;  // one queue per delay: each is in due order by itself
  std::uint64_t next_id_ = 0;
  ArrivalLedger ledger_;
  Figures figures_;
  std::string ok_;
  char input_[read_bytes];
};

int run(int argc, char** argv) {
  const Flags flags{argc, argv, {"listen", "hosts", "record"}};
  raise_descriptor_limit();
  stop_on_signals();
  const auto receiver = std::make_unique<Receiver>(parse_address(flags.text("listen", "127.0.0.1:0")),
                                                   flags.number("hosts", 1), flags.text("record", ""));
  std::printf("listening on port %u\n", receiver->port());
  std::fflush(stdout);
  receiver->run();
  return 0;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  try {
    return bench::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_receiver: %s\n", error.what());
    return 1;
  }
}
