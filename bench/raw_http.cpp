// The raw HTTP limit: a bare epoll client that POSTs 300-byte bodies to the receiver, with no project code.
//
//   bench_raw_http --target 127.0.0.1:9000 [--connections 64] [--hosts 1] [--seconds 5] [--rate 0]
//
// One request in flight per connection; the connections are spread over the receiver's hosts. --rate paces
// the requests (with one connection: the latency of one POST on an idle machine); 0 sends the next as soon as
// a response arrives. Prints JSON: requests per second, CPU time per request of this process and of the
// receiver, latency.
#include <sys/epoll.h>

#include <cstdio>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "client_connection.hpp"
#include "flags.hpp"
#include "histogram.hpp"
#include "http_message.hpp"
#include "net.hpp"

namespace bench {
namespace {

// The same header fields as a signed delivery, so that both carry the same bytes.
std::string delivery_like_request(std::size_t body_bytes) {
  std::string body = "{\"id\":\"evt_018f0000000070008000000000000000\",\"type\":\"bench.raw\",\"pad\":\"";
  if (body.size() + 2 < body_bytes) body.append(body_bytes - body.size() - 2, 'x');
  body += "\"}";
  return "POST /ok/raw HTTP/1.1\r\nhost: 127.0.0.1\r\nuser-agent: raw/1\r\ncontent-type: application/json\r\n"
         "webhook-id: evt_018f0000000070008000000000000000\r\nwebhook-timestamp: 1775643330\r\n"
         "webhook-signature: v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=\r\nwebhook-attempt: 1\r\n"
         "webhook-delivery-id: dlv_018f0000000070008000000000000000\r\ncontent-length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

// Sends a request to the receiver over a separate connection and waits for the response.
std::uint64_t receiver_cpu_us(Address target) {
  const Descriptor epoll = make_epoll();
  ClientConnection connection{target, epoll.get(), 0};
  connection.send("GET /__stats HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n");
  for (;;) {
    epoll_event event{};
    epoll_wait(epoll.get(), &event, 1, 1000);
    if (const auto response = connection.read()) {
      if (response->status != 200) throw std::runtime_error("the receiver gave no figures");
      return number_after(response->body, "\"cpu_us\":").value_or(0);
    }
  }
}

struct Result {
  std::uint64_t requests = 0;
  std::uint64_t errors = 0;
  std::uint64_t elapsed_ns = 0;
  std::uint64_t own_cpu_us = 0;
  std::uint64_t receiver_cpu_us = 0;
  Histogram latency;
};

class RawLoop {
 public:
  RawLoop(Address target, std::size_t connections, std::size_t hosts)
      : target_(target), epoll_(make_epoll()), request_(delivery_like_request(300)) {
    for (std::size_t i = 0; i < connections; ++i)
      connections_.push_back(
          std::make_unique<ClientConnection>(nth_host(target, i % hosts), epoll_.get(), i));
  }

  Result run(double seconds, double rate) {
    Result result;
    const std::uint64_t receiver_before = receiver_cpu_us(target_);
    const std::uint64_t own_before = own_cpu_us();
    const std::uint64_t start = now_ns();
    const std::uint64_t end = start + static_cast<std::uint64_t>(seconds * 1e9);
    if (rate > 0)
      run_paced(start, end, rate, result);
    else
      run_flat_out(end, result);
    result.elapsed_ns = now_ns() - start;
    result.own_cpu_us = own_cpu_us() - own_before;
    result.receiver_cpu_us = receiver_cpu_us(target_) - receiver_before;
    return result;
  }

 private:
  void run_flat_out(std::uint64_t end, Result& result) {
    for (const auto& connection : connections_) connection->send(request_);
    std::vector<epoll_event> events(connections_.size());
    while (now_ns() < end && !stop_requested()) {
      const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 100);
      for (int i = 0; i < count; ++i) {
        ClientConnection& connection = *connections_[events[i].data.u64];
        if (take_response(connection, result)) connection.send(request_);
      }
    }
  }

  void run_paced(std::uint64_t start, std::uint64_t end, double rate, Result& result) {
    ClientConnection& connection = *connections_.front();
    for (std::uint64_t n = 0; now_ns() < end && !stop_requested(); ++n) {
      sleep_until(start + static_cast<std::uint64_t>(static_cast<double>(n) * 1e9 / rate));
      connection.send(request_);
      epoll_event event{};
      do {
        epoll_wait(epoll_.get(), &event, 1, 100);
      } while (!take_response(connection, result) && !stop_requested());
    }
  }

  static void sleep_until(std::uint64_t at_ns) {
    const timespec until{.tv_sec = static_cast<time_t>(at_ns / 1'000'000'000),
                         .tv_nsec = static_cast<long>(at_ns % 1'000'000'000)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
  }

  static bool take_response(ClientConnection& connection, Result& result) {
    const auto response = connection.read();
    if (!response) return false;
    response->status == 200 ? ++result.requests : ++result.errors;
    result.latency.record(now_ns() - connection.sent_ns());
    return true;
  }

  Address target_;
  Descriptor epoll_;
  std::string request_;
  std::vector<std::unique_ptr<ClientConnection>> connections_;
};

int run(int argc, char** argv) {
  const Flags flags{argc, argv, {"target", "connections", "seconds", "rate", "hosts"}};
  raise_descriptor_limit();
  stop_on_signals();
  RawLoop loop{parse_address(flags.text("target", "")), flags.number("connections", 64),
               flags.number("hosts", 1)};
  const Result result = loop.run(flags.real("seconds", 5), flags.real("rate", 0));
  const double requests = static_cast<double>(std::max<std::uint64_t>(1, result.requests));
  std::printf(
      "{\"requests\":%lu,\"errors\":%lu,\"requests_per_s\":%.0f,\"client_cpu_us\":%.3f,\"receiver_cpu_us\":%."
      "3f,"
      "\"latency\":%s}\n",
      result.requests, result.errors, requests * 1e9 / static_cast<double>(result.elapsed_ns),
      static_cast<double>(result.own_cpu_us) / requests,
      static_cast<double>(result.receiver_cpu_us) / requests, result.latency.summary_json().c_str());
  return 0;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  try {
    return bench::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_raw_http: %s\n", error.what());
    return 1;
  }
}
