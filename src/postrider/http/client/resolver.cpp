#include "postrider/http/client/resolver.hpp"

#include <ares.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <coroutine>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <unordered_map>

#include "postrider/base/check.hpp"
#include "postrider/http/client/deadline_wheel.hpp"
#include "postrider/http/client/link.hpp"
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

struct Entry {
  Addresses addresses;
  LookupError error = LookupError::failed;
  SteadyTime fresh_until{};
  bool is_asked = false;  // a query is under way
  Link waiting;
};

// Somebody waiting for a name, in the frame of resolve(). First in its entry's list, then in the list to be
// resumed.
struct Waiter final : public Link, public Deadline {
  bool is_timed_out = false;
  std::coroutine_handle<> waiting;

  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> handle) noexcept { waiting = handle; }
  void await_resume() const noexcept {}
  void resume() {
    unlink();
    clear_deadline();
    waiting.resume();
  }

 private:
  void on_deadline() override {
    is_timed_out = true;
    resume();
  }
};

// A zone can put thousands into one response, and each name keeps its own.
constexpr size_t kAddressesPerFamilyMax = 16;
// Datagrams read at once. The rest stays in the socket and is reported again.
constexpr int kReceivesPerTurn = 64;

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
  State(runtime::Loop& loop, ResolverOptions resolver_options)
      : options(std::move(resolver_options)), poller(loop), wheel(loop), timer(loop) {
    initialize_once();
    open_channel();
  }
  ~State() {
    for (const auto& [name, entry] : entries) CHECK(!entry.waiting.is_linked());
    is_closed = true;
    ares_destroy(channel);
  }

  struct Socket final : Watch {
    Socket(State& resolver_state, int socket_descriptor)
        : state(resolver_state), descriptor(socket_descriptor) {}
    State& state;
    int descriptor;
    Poller::Token token = 0;

   private:
    void on_events(uint32_t events) override {
      const bool is_readable = events & (EPOLLIN | EPOLLERR | EPOLLHUP);
      const bool is_writable = events & EPOLLOUT;
      state.process(is_readable ? descriptor : ARES_SOCKET_BAD, is_writable ? descriptor : ARES_SOCKET_BAD);
    }
  };

  struct Query {
    State& state;
    std::string name;
  };

  void open_channel() {
    ares_options settings{};
    settings.flags = ARES_FLAG_NOSEARCH;
    settings.timeout = static_cast<int>(options.query_timeout.count());
    settings.tries = options.query_tries;
    settings.ndomains = 0;
    settings.lookups = const_cast<char*>("fb");  // /etc/hosts, then DNS
    settings.sock_state_cb = &State::on_socket_state;
    settings.sock_state_cb_data = this;
    const int mask = ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_DOMAINS |
                     ARES_OPT_LOOKUPS | ARES_OPT_SOCK_STATE_CB;
    int status = ares_init_options(&channel, &settings, mask);
    if (status != ARES_SUCCESS) throw std::runtime_error(std::string("c-ares: ") + ares_strerror(status));
    ares_set_socket_functions(channel, &socket_functions, this);  // before anything is asked
    if (options.servers.empty()) return;
    status = ares_set_servers_ports_csv(channel, options.servers.c_str());
    if (status == ARES_SUCCESS) return;
    ares_destroy(channel);
    throw std::runtime_error("DNS servers not understood: " + options.servers);
  }

  // Sockets as c-ares would open them itself, but it does not tell why one could not be opened.
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
  static constexpr ares_socket_functions socket_functions{
      &State::open_socket, [](ares_socket_t descriptor, void*) { return ::close(descriptor); },
      [](ares_socket_t descriptor, const sockaddr* to, ares_socklen_t size, void*) {
        return ::connect(descriptor, to, size);
      },
      &State::receive,
      [](ares_socket_t descriptor, const iovec* parts, int count, void*) {
        return writev(descriptor, parts, count);
      }};

  static void on_socket_state(void* data, ares_socket_t descriptor, int is_readable, int is_writable) {
    auto& self = *static_cast<State*>(data);
    const auto found = self.sockets.find(descriptor);
    const uint32_t events = (is_readable ? uint32_t{EPOLLIN} : 0) | (is_writable ? uint32_t{EPOLLOUT} : 0);
    if (found == self.sockets.end()) {
      if (events == 0) return;
      auto socket = std::make_unique<Socket>(self, descriptor);
      socket->token = self.poller.add(descriptor, events, *socket);
      self.sockets.emplace(descriptor, std::move(socket));
    } else if (events == 0) {
      self.poller.remove(found->second->token, descriptor);
      self.sockets.erase(found);
    } else {
      self.poller.modify(found->second->token, descriptor, events);
    }
  }

  void process(ares_socket_t readable, ares_socket_t writable) {
    receives_left = kReceivesPerTurn;
    ares_process_fd(channel, readable, writable);
    arm();
    resume_answered();
  }

  void arm() {
    timeval wait{};
    if (ares_timeout(channel, nullptr, &wait) == nullptr) return timer.cancel();
    const auto delay = std::chrono::seconds(wait.tv_sec) + std::chrono::microseconds(wait.tv_usec);
    timer.call_after(delay, [this] { process(ARES_SOCKET_BAD, ARES_SOCKET_BAD); });
  }

  // Callers go on only after c-ares has returned: they may ask for the next name at once.
  void resume_answered() {
    while (answered.is_linked()) static_cast<Waiter*>(answered.next)->resume();
  }

  void ask(const std::string& name, Entry& entry) {
    ++stats.queries;
    entry.is_asked = true;
    ares_addrinfo_hints hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = ARES_AI_NOSORT;
    ares_getaddrinfo(channel, name.c_str(), nullptr, &hints, &State::on_answer, new Query{*this, name});
    arm();
  }

  static void on_answer(void* argument, int status, int, ares_addrinfo* info) {
    const std::unique_ptr<Query> query(static_cast<Query*>(argument));
    State& self = query->state;
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
    entry.waiting.move_all_to(answered);
  }

  Entry& entry_of(const std::string& name) {
    const auto found = entries.find(name);
    if (found != entries.end()) return found->second;
    if (entries.size() >= options.entries_max) make_room();
    return entries[name];
  }

  // Drops what is stale; if that is not enough, whatever comes first. Rare: once per a tenth of the table.
  void make_room() {
    const SteadyTime now = base::BootClock::now();
    const auto is_idle = [](const Entry& entry) { return !entry.is_asked && !entry.waiting.is_linked(); };
    std::erase_if(entries,
                  [&](const auto& item) { return is_idle(item.second) && item.second.fresh_until <= now; });
    const size_t wanted = options.entries_max - options.entries_max / 10;
    for (auto it = entries.begin(); it != entries.end() && entries.size() > wanted;)
      it = is_idle(it->second) ? entries.erase(it) : std::next(it);
  }

  const ResolverOptions options;
  Poller poller;
  DeadlineWheel wheel;
  runtime::Timer timer;
  ares_channel channel = nullptr;
  std::unordered_map<ares_socket_t, std::unique_ptr<Socket>> sockets;
  std::unordered_map<std::string, Entry> entries;
  Link answered;
  Stats stats;
  bool is_closed = false;
  int receives_left = kReceivesPerTurn;
  bool has_no_socket = false;  // the last time one was wanted
};

Resolver::Resolver(runtime::Loop& loop, ResolverOptions options)
    : state_(std::make_unique<State>(loop, std::move(options))) {}
Resolver::~Resolver() = default;

const Resolver::Stats& Resolver::stats() const {
  return state_->stats;
}

void Resolver::close() {
  state_->is_closed = true;
  for (auto& [name, entry] : state_->entries) {
    Link moved;
    entry.waiting.move_all_to(moved);
    while (moved.is_linked()) moved.next->insert_before(state_->answered);
  }
  state_->resume_answered();
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
      waiter.insert_before(asked.waiting);
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
