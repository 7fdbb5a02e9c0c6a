// What an exchange of the project's own HTTP client costs, beside bench_raw_http against the same receiver.
//
//   bench_http_client --target 127.0.0.1:9000 [--connections 64] [--hosts 1] [--seconds 5] [--scheme http]
//   [--ca FILE]
//
// Prints JSON: exchanges per second and CPU time per exchange of this process.
#include <sys/resource.h>

#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "flags.hpp"
#include "net.hpp"
#include "postrider/base/check.hpp"
#include "postrider/http/client/client.hpp"

namespace {

using namespace postrider;

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

struct Run {
  http::Client& client;
  std::string headers;
  std::string body;
  runtime::SteadyTime end;
  uint64_t exchanges = 0;
  uint64_t failures = 0;
};

// Each sender goes round its own share of the URLs.
runtime::Task<void> sender(Run& run, const std::vector<http::Url>& urls, size_t first, size_t step) {
  for (size_t i = first; base::BootClock::now() < run.end; i = (i + step) % urls.size()) {
    const http::OutboundRequest request{.url = urls[i],
                                        .headers = run.headers,
                                        .body = run.body,
                                        .deadline = base::BootClock::now() + std::chrono::seconds(10)};
    const http::Exchange exchange = co_await run.client.send(request);
    ++run.exchanges;
    if (exchange.answer() == nullptr || exchange.answer()->status >= 300) ++run.failures;
  }
}

runtime::Task<void> stop_when_done(runtime::TaskGroup& group, runtime::Loop& loop) {
  co_await group.join();
  loop.stop();
}

std::vector<http::Url> make_urls(const std::string& scheme, const std::string& target, size_t hosts) {
  std::vector<http::Url> urls;
  const std::string port = target.substr(target.rfind(':'));
  for (size_t i = 0; i < hosts; ++i) {
    const std::string host =
        "127.1." + std::to_string((i + 1) / 256) + "." + std::to_string((i + 1) % 256) + port;
    const auto url = http::parse_url(scheme + "://" + (hosts == 1 ? target : host) + "/ok/client");
    if (!url.ok()) throw std::runtime_error(std::string(describe(url.error())));
    urls.push_back(*url);
  }
  return urls;
}

constexpr std::pair<std::string_view, std::string_view> kHeaders[] = {
    {"user-agent", "raw/1"},
    {"content-type", "application/json"},
    {"webhook-id", "evt_018f0000000070008000000000000000"},
    {"webhook-timestamp", "1775643330"},
    {"webhook-signature", "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4="},
    {"webhook-attempt", "1"},
    {"webhook-delivery-id", "dlv_018f0000000070008000000000000000"},
};

void run(const bench::Flags& flags) {
  const size_t connections = flags.number("connections", 64);
  const auto urls =
      make_urls(flags.text("scheme", "http"), flags.text("target", ""), flags.number("hosts", 1));
  const http::AddressGuard guard(
      {.allow_http = true, .allow_networks = {*http::Network::parse("127.0.0.0/8")}});
  const http::TlsContext tls({.extra_ca_file = flags.text("ca", ""), .trust_system_store = false});
  runtime::Loop loop;
  http::Client client(loop, guard, tls, {.idle_per_origin_max = connections});
  Run state{.client = client, .headers = {}, .body = std::string(300, 'x'), .end = {}};
  for (const auto& [name, value] : kHeaders) CHECK(http::append_header(state.headers, name, value));

  const double seconds = flags.real("seconds", 5);
  const double cpu_start = cpu_seconds();
  state.end = base::BootClock::now() + std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
  runtime::TaskGroup senders, joiners;
  for (size_t i = 0; i < connections; ++i) senders.spawn(sender(state, urls, i % urls.size(), connections));
  joiners.spawn(stop_when_done(senders, loop));
  loop.run();
  const double cpu_us = (cpu_seconds() - cpu_start) * 1e6;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf(
      "{\"exchanges\":%lu,\"failures\":%lu,\"per_second\":%.0f,\"cpu_us_per_exchange\":%.2f,"
      "\"connections_opened\":%lu,\"tls_resumed\":%lu,\"idle\":%zu,\"rss_kb\":%ld}\n",
      state.exchanges, state.failures, static_cast<double>(state.exchanges) / seconds,
      cpu_us / static_cast<double>(state.exchanges), client.stats().connections_opened,
      client.stats().tls_resumed, client.stats().idle, usage.ru_maxrss);
  client.close();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    bench::raise_descriptor_limit();
    run(bench::Flags(argc, argv, {"target", "connections", "hosts", "seconds", "scheme", "ca"}));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_http_client: %s\n", error.what());
    return 1;
  }
}
