#include "postrider/http/client/resolver.hpp"

#include <ares.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <coroutine>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <unordered_map>
#include <vector>

#include "postrider/base/check.hpp"
#include "postrider/http/client/deadline_wheel.hpp"
#include "postrider/http/client/intrusive_list.hpp"
#include "postrider/http/client/poller.hpp"

namespace postrider::http {

using base::Failure;
using runtime::SteadyTime;
using runtime::Task;

namespace {

void initialize_once() {
  static std::once_flag once;
  std::call_once(once, [] { CHECK(ares_library_init(ARES_LIB_INIT_ALL) == ARES_SUCCESS); });
}

// A call of resolve() that waits for a name, in its frame. First in its entry's list, then in the list of
// those to be resumed.
struct Waiter final : public ListHook<struct WaiterTag>, public Deadline {
  bool is_timed_out = false;
  std::coroutine_handle<> waiting;

  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> handle) noexcept { waiting = handle; }
  void await_resume() const noexcept {}
  void resume() {
    ListHook<WaiterTag>::unlink();
    clear_deadline();
    waiting.resume();
  }

 private:
  void on_deadline() override {
    is_timed_out = true;
    resume();
  }
};

struct Entry {
  Addresses addresses;
  LookupError error = LookupError::failed;
  SteadyTime fresh_until{};
  bool is_asked = false;  // a query is in progress
  IntrusiveList<Waiter, WaiterTag> waiting;
};

// A zone can return thousands of addresses in one response, and each name stores its own.
constexpr size_t kAddressesPerFamilyMax = 16;
// Datagrams read at once. The rest stays in the socket and is reported again.
constexpr int kReceivesPerTurn = 64;

// Identifies the contents of a file. Changes when the file is written in place and when it is replaced.
struct FileVersion {
  uint64_t device = 0, inode = 0;
  int64_t size = -1, changed_ns = 0;  // -1: there is no file
  bool operator==(const FileVersion&) const = default;
};

FileVersion version_of(const std::string& path) {
  struct stat found{};
  if (stat(path.c_str(), &found) != 0) return {};
  const int64_t seconds = found.st_mtim.tv_sec;
  return {found.st_dev, found.st_ino, found.st_size, seconds * 1'000'000'000 + found.st_mtim.tv_nsec};
}

// IPv4 first; `ttl` is the smallest.
Addresses addresses_of(const ares_addrinfo* info, int& ttl) {
  Addresses addresses;
  ttl = INT32_MAX;
  for (const int family : {AF_INET, AF_INET6}) {
    const size_t limit = addresses.size() + kAddressesPerFamilyMax;
    for (const ares_addrinfo_node* node = info->nodes; node != nullptr; node = node->ai_next) {
      if (node->ai_family != family) continue;
      if (addresses.size() == limit) break;
      ttl = std::min(ttl, node->ai_ttl);
      if (family == AF_INET) {
        const auto* in = reinterpret_cast<const sockaddr_in*>(node->ai_addr);
        addresses.push_back(IpAddress::v4(ntohl(in->sin_addr.s_addr)));
      } else {
        const auto* in = reinterpret_cast<const sockaddr_in6*>(node->ai_addr);
        std::array<uint8_t, 16> bytes{};
        std::memcpy(bytes.data(), &in->sin6_addr, bytes.size());
        addresses.push_back(IpAddress::v6(bytes));
      }
    }
  }
  return addresses;
}

}  // namespace

struct Resolver::State {
  State(runtime::Loop& event_loop, ResolverOptions resolver_options)
      : loop(event_loop), options(std::move(resolver_options)), poller(event_loop), wheel(event_loop) {
    initialize_once();
    read_at = base::BootClock::now();
    read_version = version_of(options.resolv_conf);
    channels.push_back(std::make_unique<Channel>(*this));
  }
  ~State() {
    for (const auto& [name, entry] : entries) CHECK(entry.waiting.empty());
    is_closed = true;
  }

  // The servers of one reading of the configuration.
  struct Channel {
    explicit Channel(State& resolver_state);
    ~Channel() { ares_destroy(handle); }
    Channel(const Channel&) = delete;
    Channel& operator=(const Channel&) = delete;

    struct Socket final : Watch {
      Socket(Channel& of, int socket_descriptor) : channel(of), descriptor(socket_descriptor) {}
      Channel& channel;
      int descriptor;
      Poller::Token token = 0;

     private:
      void on_events(uint32_t events) override {
        const bool is_readable = events & (EPOLLIN | EPOLLERR | EPOLLHUP);
        const bool is_writable = events & EPOLLOUT;
        channel.process(is_readable ? descriptor : ARES_SOCKET_BAD,
                        is_writable ? descriptor : ARES_SOCKET_BAD);
      }
    };

    void process(ares_socket_t readable, ares_socket_t writable) {
      State& resolver = state;  // a caller that resumes may start the next channel, and end this one
      resolver.receives_left = kReceivesPerTurn;
      ares_process_fd(handle, readable, writable);
      arm();
      resolver.resume_resolved();
    }
    void arm() {
      timeval wait{};
      if (ares_timeout(handle, nullptr, &wait) == nullptr) return timer.cancel();
      const auto delay = std::chrono::seconds(wait.tv_sec) + std::chrono::microseconds(wait.tv_usec);
      timer.call_after(delay, [this] { process(ARES_SOCKET_BAD, ARES_SOCKET_BAD); });
    }
    static void on_socket_state(void* data, ares_socket_t descriptor, int is_readable, int is_writable);

    State& state;
    runtime::Timer timer;
    std::unordered_map<ares_socket_t, std::unique_ptr<Socket>> sockets;
    size_t queries = 0;  // in progress
    ares_channel handle = nullptr;
  };

  struct Query {
    Channel& channel;
    std::string name;
  };

  // Sockets as c-ares would open them itself, but it does not report why one could not be opened.
  static ares_socket_t open_socket(int family, int type, int protocol, void* data) {
    const int descriptor = socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, protocol);
    static_cast<State*>(data)->has_no_socket =
        descriptor < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM);
    return descriptor;
  }
  static ssize_t receive(ares_socket_t descriptor, void* into, size_t size, int flags, sockaddr* from,
                         ares_socklen_t* from_size, void* data) {
    auto& self = *static_cast<State*>(data);
    if (self.receives_left == 0) {
      errno = EAGAIN;
      return -1;
    }
    --self.receives_left;
    const ssize_t received = recvfrom(descriptor, into, size, flags, from, from_size);
    if (received > 0) self.has_no_socket = false;  // there was a socket after all
    return received;
  }
  static constexpr ares_socket_functions kSocketFunctions{
      &State::open_socket, [](ares_socket_t descriptor, void*) { return ::close(descriptor); },
      [](ares_socket_t descriptor, const sockaddr* to, ares_socklen_t size, void*) {
        return ::connect(descriptor, to, size);
      },
      &State::receive,
      [](ares_socket_t descriptor, const iovec* parts, int count, void*) {
        return writev(descriptor, parts, count);
      }};

  // Callers continue only after c-ares has returned: they may ask for the next name at once.
  void resume_resolved() {
    while (!answered.empty()) answered.front().resume();
  }

  // Called outside c-ares, so a channel without queries may be closed here.
  void follow_configuration() {
    std::erase_if(channels,
                  [&](const auto& channel) { return channel != channels.back() && channel->queries == 0; });
    const SteadyTime now = base::BootClock::now();
    if (!options.servers.empty() || now - read_at < options.resolv_conf_interval) return;
    read_at = now;
    const FileVersion version = version_of(options.resolv_conf);
    if (version == read_version) return;
    try {
      channels.push_back(std::make_unique<Channel>(*this));
      read_version = version;
    } catch (const std::runtime_error&) {  // no descriptor or memory now: try at the next check
    }
  }

  void ask(const std::string& name, Entry& entry) {
    follow_configuration();
    ++stats.queries;
    entry.is_asked = true;
    ares_addrinfo_hints hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = ARES_AI_NOSORT;
    Channel& channel = *channels.back();
    ++channel.queries;
    ares_getaddrinfo(channel.handle, name.c_str(), nullptr, &hints, &State::on_lookup_done,
                     new Query{channel, name});
    channel.arm();
  }

  static void on_lookup_done(void* argument, int status, int, ares_addrinfo* info) {
    const std::unique_ptr<Query> query(static_cast<Query*>(argument));
    State& self = query->channel.state;
    --query->channel.queries;
    if (self.is_closed && status != ARES_SUCCESS) return;
    self.store(query->name, status, info);
    if (info != nullptr) ares_freeaddrinfo(info);
  }

  void store(const std::string& name, int status, const ares_addrinfo* info) {
    Entry& entry = entries.at(name);
    entry.is_asked = false;
    int ttl_seconds = 0;
    entry.addresses.clear();
    if (status == ARES_SUCCESS && info != nullptr) entry.addresses = addresses_of(info, ttl_seconds);
    std::chrono::milliseconds fresh_for = options.ttl_failed;
    if (!entry.addresses.empty()) {
      const std::chrono::milliseconds ttl = std::chrono::seconds(ttl_seconds);
      fresh_for = std::clamp(ttl, options.ttl_min, options.ttl_max);
    } else {
      ++stats.failures;
      const bool is_absent = status == ARES_SUCCESS || status == ARES_ENOTFOUND || status == ARES_ENODATA;
      entry.error = is_absent ? LookupError::not_found : LookupError::failed;
      if (is_absent) fresh_for = options.ttl_not_found;
      if (!is_absent && has_no_socket) {
        entry.error = LookupError::local;
        fresh_for = {};
      }
    }
    entry.fresh_until = base::BootClock::now() + fresh_for;
    answered.splice(answered.end(), entry.waiting);
  }

  Entry& entry_of(const std::string& name) {
    const auto found = entries.find(name);
    if (found != entries.end()) return found->second;
    if (entries.size() >= options.entries_max) make_room();
    return entries[name];
  }

  // Drops stale entries, then arbitrary ones if that is not enough. Rare: once per tenth of the table.
  void make_room() {
    const SteadyTime now = base::BootClock::now();
    const auto is_idle = [](const Entry& entry) { return !entry.is_asked && entry.waiting.empty(); };
    std::erase_if(entries,
                  [&](const auto& item) { return is_idle(item.second) && item.second.fresh_until <= now; });
    const size_t wanted = options.entries_max - options.entries_max / 10;
    for (auto it = entries.begin(); it != entries.end() && entries.size() > wanted;)
      it = is_idle(it->second) ? entries.erase(it) : std::next(it);
  }

  runtime::Loop& loop;
  const ResolverOptions options;
  Poller poller;
  DeadlineWheel wheel;
  std::unordered_map<std::string, Entry> entries;
  SteadyTime read_at{};  // resolv.conf
  FileVersion read_version{};
  std::vector<std::unique_ptr<Channel>> channels;  // the last is used for new queries
  IntrusiveList<Waiter, WaiterTag> answered;
  Stats stats;
  bool is_closed = false;
  int receives_left = kReceivesPerTurn;
  bool has_no_socket = false;  // the last time one was wanted
};

Resolver::State::Channel::Channel(State& resolver_state) : state(resolver_state), timer(state.loop) {
  const ResolverOptions& wanted = state.options;
  ares_options settings{};
  settings.flags = ARES_FLAG_NOSEARCH;
  settings.timeout = static_cast<int>(wanted.query_timeout.count());
  settings.tries = wanted.query_tries;
  settings.udp_port = settings.tcp_port = wanted.port;
  settings.ndomains = 0;
  settings.lookups = const_cast<char*>("fb");  // /etc/hosts, then DNS
  settings.resolvconf_path = const_cast<char*>(wanted.resolv_conf.c_str());
  settings.sock_state_cb = &Channel::on_socket_state;
  settings.sock_state_cb_data = this;
  const int mask = ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_DOMAINS |
                   ARES_OPT_LOOKUPS | ARES_OPT_SOCK_STATE_CB | ARES_OPT_RESOLVCONF | ARES_OPT_UDP_PORT |
                   ARES_OPT_TCP_PORT;
  int status = ares_init_options(&handle, &settings, mask);
  if (status != ARES_SUCCESS) throw std::runtime_error(std::string("c-ares: ") + ares_strerror(status));
  ares_set_socket_functions(handle, &kSocketFunctions, &state);  // before any query
  if (wanted.servers.empty()) return;
  status = ares_set_servers_ports_csv(handle, wanted.servers.c_str());
  if (status == ARES_SUCCESS) return;
  ares_destroy(handle);
  throw std::runtime_error("Invalid DNS servers: " + wanted.servers);
}

void Resolver::State::Channel::on_socket_state(void* data, ares_socket_t descriptor, int is_readable,
                                               int is_writable) {
  auto& self = *static_cast<Channel*>(data);
  Poller& poller = self.state.poller;
  const auto found = self.sockets.find(descriptor);
  const uint32_t events = (is_readable ? uint32_t{EPOLLIN} : 0) | (is_writable ? uint32_t{EPOLLOUT} : 0);
  if (found == self.sockets.end()) {
    if (events == 0) return;
    auto socket = std::make_unique<Socket>(self, descriptor);
    socket->token = poller.add(descriptor, events, *socket);
    self.sockets.emplace(descriptor, std::move(socket));
  } else if (events == 0) {
    poller.remove(found->second->token, descriptor);
    self.sockets.erase(found);
  } else {
    poller.modify(found->second->token, descriptor, events);
  }
}

Resolver::Resolver(runtime::Loop& loop, ResolverOptions options)
    : state_(std::make_unique<State>(loop, std::move(options))) {}
Resolver::~Resolver() = default;

const Resolver::Stats& Resolver::stats() const {
  return state_->stats;
}

void Resolver::close() {
  state_->is_closed = true;
  for (auto& [name, entry] : state_->entries) state_->answered.splice(state_->answered.end(), entry.waiting);
  state_->resume_resolved();
}

Task<base::Result<Addresses, LookupError>> Resolver::resolve(std::string host, SteadyTime deadline) {
  State& state = *state_;
  ++state.stats.lookups;
  if (state.is_closed) co_return Failure{LookupError::canceled};
  Entry& asked = state.entry_of(host);
  if (!asked.is_asked && asked.fresh_until > base::BootClock::now()) {
    ++state.stats.cache_hits;
  } else {
    if (!asked.is_asked) state.ask(host, asked);
    if (asked.is_asked) {  // else it was in /etc/hosts
      Waiter waiter;
      asked.waiting.push_back(waiter);
      state.wheel.set(waiter, deadline);
      co_await waiter;
      if (state.is_closed) co_return Failure{LookupError::canceled};
      if (waiter.is_timed_out) co_return Failure{LookupError::timed_out};
    }
  }
  // Looked up again: another caller that was resumed before this one may have made room in the cache.
  const auto found = state.entries.find(host);
  if (found == state.entries.end()) co_return Failure{LookupError::failed};
  if (found->second.addresses.empty()) co_return Failure{found->second.error};
  co_return found->second.addresses;
}

}  // namespace postrider::http
