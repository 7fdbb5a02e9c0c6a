// Names, with a DNS server of the test's own.
#include <sys/resource.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <unordered_map>

#include "postrider/http/client/state.hpp"
#include "postrider/http/client/testing.hpp"

namespace postrider::http {
namespace {

struct Zone {
  struct Name {
    std::vector<std::string> addresses{};  // IPv4 and IPv6
    uint32_t ttl = 60;
    int rcode = 0;
    bool is_silent = false;  // queried, but never gets a response
  };
  std::unordered_map<std::string, Name> names;
};

// Responds to A and AAAA queries over UDP.
class DnsServer {
 public:
  explicit DnsServer(Zone zone, const std::string& host = "127.0.0.1", uint16_t port = 0)
      : zone_(std::move(zone)) {
    socket_ = socket(AF_INET, SOCK_DGRAM, 0);
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = inet_addr(host.c_str());
    name.sin_port = htons(port);
    socklen_t size = sizeof name;
    EXPECT_EQ(bind(socket_, reinterpret_cast<sockaddr*>(&name), size), 0);
    getsockname(socket_, reinterpret_cast<sockaddr*>(&name), &size);
    port_ = ntohs(name.sin_port);
    stop_ = eventfd(0, 0);
    thread_ = std::thread([this] { serve(); });
  }
  ~DnsServer() {
    const uint64_t one = 1;
    EXPECT_EQ(write(stop_, &one, sizeof one), static_cast<ssize_t>(sizeof one));
    thread_.join();
    close(socket_);
    close(stop_);
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  uint16_t port() const { return port_; }
  int questions() const { return questions_; }
  void set(const std::string& name, Zone::Name answer) {
    const std::lock_guard lock(mutex_);
    zone_.names[name] = std::move(answer);
  }

 private:
  void serve() {
    while (true) {
      pollfd waits[] = {{socket_, POLLIN, 0}, {stop_, POLLIN, 0}};
      poll(waits, 2, -1);
      if (waits[1].revents & POLLIN) return;
      char bytes[512];
      sockaddr_in from{};
      socklen_t size = sizeof from;
      const auto received =
          recvfrom(socket_, bytes, sizeof bytes, 0, reinterpret_cast<sockaddr*>(&from), &size);
      if (received < 12) continue;
      ++questions_;
      const std::string reply = answer(std::string(bytes, static_cast<size_t>(received)));
      if (!reply.empty())
        sendto(socket_, reply.data(), reply.size(), 0, reinterpret_cast<sockaddr*>(&from), size);
    }
  }

  std::string answer(const std::string& query) {
    std::string name;
    size_t at = 12;
    while (at < query.size() && query[at] != 0) {
      const auto length = static_cast<size_t>(query[at]);
      if (!name.empty()) name += '.';
      name += query.substr(at + 1, length);
      at += length + 1;
    }
    const int type = query[at + 2];
    const std::string question = query.substr(12, at + 5 - 12);

    const std::lock_guard lock(mutex_);
    const auto found = zone_.names.find(name);
    const Zone::Name entry = found == zone_.names.end() ? Zone::Name{.rcode = 3} : found->second;
    if (entry.is_silent) return "";
    std::string records;
    int count = 0;
    for (const std::string& text : entry.addresses) {
      const IpAddress address = *IpAddress::parse(text);
      if ((type == 1) == address.is_v6) continue;
      const size_t size = address.is_v6 ? 16 : 4;
      records += std::string("\xc0\x0c\x00", 3) + static_cast<char>(type) + std::string("\x00\x01", 2);
      for (int shift = 24; shift >= 0; shift -= 8) records += static_cast<char>(entry.ttl >> shift);
      records += '\0';
      records += static_cast<char>(size);
      records.append(reinterpret_cast<const char*>(address.bytes.data()), size);
      ++count;
    }
    std::string reply = query.substr(0, 2) + "\x81" + static_cast<char>(0x80 | entry.rcode);
    reply += std::string("\x00\x01\x00", 3) + static_cast<char>(count) + std::string(4, '\0');
    return reply + question + records;
  }

  Zone zone_;
  std::mutex mutex_;
  int socket_ = -1;
  int stop_ = -1;
  uint16_t port_ = 0;
  std::atomic<int> questions_ = 0;
  std::thread thread_;
};

class ClientNames : public ClientTest {
 protected:
  void use_names(const DnsServer& dns) { make_client({.resolver = {.servers = dns.address()}}); }

  std::string lookup(const std::string& name, std::chrono::milliseconds timeout = 20s) {
    std::string result;
    runtime::TaskGroup group;
    group.spawn(lookup_one(name, timeout, result));
    run_until_done(group);
    return result;
  }
  runtime::Task<void> lookup_one(std::string name, std::chrono::milliseconds timeout, std::string& result) {
    const auto found = co_await client_->resolver().resolve(name, base::BootClock::now() + timeout);
    if (!found.ok()) {
      result = "error " + std::to_string(static_cast<int>(found.error()));
      co_return;
    }
    for (const IpAddress& address : *found) result += address.to_string() + " ";
  }
  static std::string error(LookupError error) { return "error " + std::to_string(static_cast<int>(error)); }
};

TEST_F(ClientNames, AreAskedFromTheServersOfAChangedResolvConf) {
  const DnsServer before({{{"a.example", {.addresses = {"10.0.0.1"}}}}});
  const DnsServer after({{{"b.example", {.addresses = {"10.0.0.2"}}}}}, "127.0.0.2", before.port());
  const std::string path = testing::TempDir() + "resolv.conf." + std::to_string(getpid());
  const auto write = [&](const std::string& server) {
    std::ofstream(path + ".new") << "nameserver " << server << "\n";
    ASSERT_EQ(std::rename((path + ".new").c_str(), path.c_str()), 0);
  };
  write("127.0.0.1");
  make_client({.resolver = {.resolv_conf = path, .resolv_conf_interval = 0ms, .port = before.port()}});
  EXPECT_EQ(lookup("a.example"), "10.0.0.1 ");
  EXPECT_EQ(lookup("b.example"), error(LookupError::not_found));
  write("127.0.0.2");
  EXPECT_EQ(lookup("c.example"), error(LookupError::not_found));
  EXPECT_EQ(after.questions(), 2) << "one for each family";
  EXPECT_EQ(lookup("a.example"), "10.0.0.1 ") << "what is fresh is kept";
  std::remove(path.c_str());
}

TEST_F(ClientNames, LookupsInProgressEndWithTheServersTheyStartedWith) {
  DnsServer before({{{"slow.example", {.is_silent = true}}}});
  const DnsServer after({{{"b.example", {.addresses = {"10.0.0.2"}}}}}, "127.0.0.2", before.port());
  const std::string path = testing::TempDir() + "resolv.conf.slow." + std::to_string(getpid());
  std::ofstream(path) << "nameserver 127.0.0.1\n";
  make_client({.resolver = {.resolv_conf = path,
                            .resolv_conf_interval = 0ms,
                            .port = before.port(),
                            .query_timeout = 50ms,
                            .query_tries = 20}});
  std::string slow, other;
  runtime::TaskGroup group;
  group.spawn(lookup_one("slow.example", 60s, slow));
  std::ofstream(path) << "nameserver 127.0.0.2\n# longer\n";
  group.spawn(lookup_one("b.example", 60s, other));
  before.set("slow.example", {.addresses = {"10.0.0.3"}});
  run_until_done(group);
  EXPECT_EQ(other, "10.0.0.2 ");
  EXPECT_EQ(slow, "10.0.0.3 ");
  std::remove(path.c_str());
}

TEST_F(ClientNames, BothFamiliesAreFoundAndIpv4ComesFirst) {
  DnsServer dns({{{"a.example", {.addresses = {"2001:db8::1", "192.0.2.1", "192.0.2.2"}}}}});
  use_names(dns);
  EXPECT_EQ(lookup("a.example"), "192.0.2.1 192.0.2.2 2001:db8::1 ");
}

TEST_F(ClientNames, AnswersAreCached) {
  DnsServer dns({{{"a.example", {.addresses = {"192.0.2.1"}}}}});
  use_names(dns);
  lookup("a.example");
  const int questions = dns.questions();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(lookup("a.example"), "192.0.2.1 ");
  EXPECT_EQ(dns.questions(), questions);
  EXPECT_EQ(client_->resolver().stats().cache_hits, 5u);
}

TEST_F(ClientNames, AShortTtlIsHonouredDownToTheMinimum) {
  DnsServer dns({{{"a.example", {.addresses = {"192.0.2.1"}, .ttl = 0}}}});
  make_client({.resolver = {.servers = dns.address(), .ttl_min = 0ms}});
  EXPECT_EQ(lookup("a.example"), "192.0.2.1 ");
  dns.set("a.example", {.addresses = {"192.0.2.9"}, .ttl = 0});
  EXPECT_EQ(lookup("a.example"), "192.0.2.9 ");
}

TEST_F(ClientNames, SimultaneousLookupsOfANameShareOneQuery) {
  DnsServer dns({{{"a.example", {.addresses = {"192.0.2.1"}}}}});
  use_names(dns);
  std::vector<std::string> results(50);
  runtime::TaskGroup group;
  for (std::string& result : results) group.spawn(lookup_one("a.example", 20s, result));
  run_until_done(group);
  for (const std::string& result : results) EXPECT_EQ(result, "192.0.2.1 ");
  EXPECT_EQ(client_->resolver().stats().queries, 1u);
}

TEST_F(ClientNames, ASlowNameDoesNotDelayAnother) {
  DnsServer dns({{{"slow.example", {.is_silent = true}}, {"fast.example", {.addresses = {"192.0.2.1"}}}}});
  use_names(dns);
  std::string slow, fast;
  runtime::TaskGroup slow_group, fast_group;
  slow_group.spawn(lookup_one("slow.example", 1h, slow));
  fast_group.spawn(lookup_one("fast.example", 20s, fast));
  run_until_done(fast_group);
  EXPECT_EQ(fast, "192.0.2.1 ");
  EXPECT_EQ(slow, "");
  client_->close();
  EXPECT_EQ(slow, error(LookupError::canceled));
}

TEST_F(ClientNames, FailuresAreToldApart) {
  DnsServer dns(
      {{{"broken.example", {.rcode = 2}}, {"empty.example", {}}, {"silent.example", {.is_silent = true}}}});
  use_names(dns);
  EXPECT_EQ(lookup("absent.example"), error(LookupError::not_found));
  EXPECT_EQ(lookup("empty.example"), error(LookupError::not_found));
  EXPECT_EQ(lookup("broken.example"), error(LookupError::failed));
  const int questions = dns.questions();
  EXPECT_EQ(lookup("absent.example"), error(LookupError::not_found));
  EXPECT_EQ(dns.questions(), questions);
  make_client({.resolver = {.servers = dns.address(), .query_timeout = 50ms, .query_tries = 1}});
  EXPECT_EQ(lookup("silent.example"), error(LookupError::failed));  // c-ares stopped retrying
}

TEST_F(ClientNames, TheHostsFileIsHonoured) {
  DnsServer dns({});
  use_names(dns);
  EXPECT_NE(lookup("localhost").find("127.0.0.1 "), std::string::npos);
  EXPECT_EQ(dns.questions(), 0);
}

TEST_F(ClientNames, TheCacheIsBounded) {
  Zone zone;
  for (int i = 0; i < 50; ++i)
    zone.names["n" + std::to_string(i) + ".example"] = {.addresses = {"192.0.2.1"}};
  DnsServer dns(zone);
  make_client({.resolver = {.servers = dns.address(), .entries_max = 10}});
  for (int i = 0; i < 50; ++i) EXPECT_EQ(lookup("n" + std::to_string(i) + ".example"), "192.0.2.1 ");
}

TEST_F(ClientNames, AZoneWithManyAddressesFillsNoMemory) {
  Zone::Name crowded;
  for (int i = 1; i <= 25; ++i) crowded.addresses.push_back("192.0.2." + std::to_string(i));
  DnsServer dns({{{"crowded.example", crowded}}});
  use_names(dns);
  const std::string found = lookup("crowded.example");
  EXPECT_EQ(std::count(found.begin(), found.end(), ' '), 16) << found;
}

TEST_F(ClientNames, AnExchangeGoesToTheAddressOfItsName) {
  ScriptedServer server(always(std::string(kOkResponse)));
  DnsServer dns({{{"hooks.example", {.addresses = {"127.0.0.1"}}}}});
  use_names(dns);
  const Exchange exchange = fetch(server.url("/", "hooks.example"));
  EXPECT_EQ(status_of(exchange), 200);
  EXPECT_EQ(exchange.remote->to_string(), "127.0.0.1");
  EXPECT_GT(exchange.times.lookup.count(), 0);
}

TEST_F(ClientNames, TheNextAddressIsTriedWhenOneRefuses) {
  ScriptedServer server(always(std::string(kOkResponse)));
  DnsServer dns({{{"hooks.example", {.addresses = {"127.0.0.2", "127.0.0.3", "127.0.0.1"}}}}});
  use_names(dns);  // the server listens on 127.0.0.1 only
  const Exchange exchange = fetch(server.url("/", "hooks.example"));
  EXPECT_EQ(status_of(exchange), 200);
  EXPECT_EQ(exchange.remote->to_string(), "127.0.0.1");
}

TEST_F(ClientNames, AnAddressThatCannotBeDialledHidesNoRefusal) {
  use_policy({.allow_http = true,
              .allow_networks = {*Network::parse("127.0.0.0/8"), *Network::parse("255.255.255.255/32")}});
  DnsServer dns({{{"both.example", {.addresses = {"127.0.0.2", "255.255.255.255"}}},
                  {"none.example", {.addresses = {"255.255.255.255"}}}}});
  use_names(dns);
  const Exchange both = fetch("http://both.example:8081/");
  EXPECT_EQ(error_of(both), "connection_refused");
  EXPECT_EQ(both.remote->to_string(), "127.0.0.2");
  EXPECT_EQ(error_of(fetch("http://none.example:8081/")), "unreachable");
}

TEST_F(ClientNames, OnlyThisMachinesOwnTroubleIsALocalFailure) {
  for (const int error : {EMFILE, ENFILE, ENOBUFS, ENOMEM, EADDRNOTAVAIL})
    EXPECT_EQ(net_error_of(error), NetError::local_failure) << std::strerror(error);
  for (const int error : {EAFNOSUPPORT, ENOPROTOOPT, EPROTO, EOPNOTSUPP, ENETUNREACH, EACCES})
    EXPECT_EQ(net_error_of(error), NetError::unreachable) << std::strerror(error);
}

// No descriptor can be opened while it lives.
class NoDescriptors {
 public:
  NoDescriptors() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit none{0, before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit before_{};
};

TEST_F(ClientNames, ALookupWithoutADescriptorIsThisMachinesOwnTrouble) {
  DnsServer dns({{{"a.example", {.addresses = {"192.0.2.1"}}}}});
  use_names(dns);
  {
    const NoDescriptors none;
    EXPECT_EQ(error_of(fetch("http://a.example:8080/")), "local_failure");
  }
  EXPECT_EQ(lookup("a.example"), "192.0.2.1 ") << "it is not remembered";
}

TEST_F(ClientNames, LookupFailuresEndTheExchange) {
  DnsServer dns({{{"broken.example", {.rcode = 2}}, {"silent.example", {.is_silent = true}}}});
  use_names(dns);
  EXPECT_EQ(error_of(fetch("http://absent.example:8080/")), "name_not_found");
  EXPECT_EQ(error_of(fetch("http://silent.example:8080/", 100ms)), "timeout_lookup");
}

TEST_F(ClientNames, ANameWithOneForbiddenAddressIsBlockedBeforeAnyConnection) {
  ScriptedServer server(always(std::string(kOkResponse)));
  DnsServer dns({{{"rebind.example", {.addresses = {"127.0.0.1", "10.0.0.1"}}},
                  {"private.example", {.addresses = {"169.254.169.254"}}},
                  {"mapped.example", {.addresses = {"::ffff:10.0.0.1"}}}}});
  use_names(dns);  // loopback is allowed, 10/8 is not
  for (const std::string host : {"rebind.example", "private.example", "mapped.example"})
    EXPECT_EQ(error_of(fetch(server.url("/", host))), "blocked") << host;
  EXPECT_EQ(server.accepted(), 0);
}

TEST_F(ClientNames, ANameThatMovesToAForbiddenAddressIsBlockedOnTheNextConnection) {
  ScriptedServer server(once(std::string(kOkResponse)));
  DnsServer dns({{{"hooks.example", {.addresses = {"127.0.0.1"}, .ttl = 0}}}});
  make_client({.resolver = {.servers = dns.address(), .ttl_min = 0ms}, .idle_total_max = 0});
  EXPECT_EQ(status_of(fetch(server.url("/", "hooks.example"))), 200);
  dns.set("hooks.example", {.addresses = {"10.0.0.1"}, .ttl = 0});
  EXPECT_EQ(error_of(fetch(server.url("/", "hooks.example"))), "blocked");
  EXPECT_EQ(server.accepted(), 1);
}

}  // namespace
}  // namespace postrider::http
