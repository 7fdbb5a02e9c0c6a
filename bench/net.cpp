#include "net.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <charconv>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <system_error>

namespace bench {
namespace {

volatile sig_atomic_t stop_signal = 0;

int checked(int result, const char* call) {
  if (result < 0) throw std::system_error(errno, std::generic_category(), call);
  return result;
}

sockaddr_in to_sockaddr(Address address) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_addr.s_addr = htonl(address.host);
  out.sin_port = htons(address.port);
  return out;
}

}  // namespace

Address parse_address(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) throw std::invalid_argument("address without a port");
  const std::string host{text.substr(0, colon)};
  const std::string_view port = text.substr(colon + 1);
  in_addr parsed{};
  Address address;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (inet_pton(AF_INET, host.c_str(), &parsed) != 1 || error != std::errc{} ||
      end != port.data() + port.size())
    throw std::invalid_argument("not an IPv4 address and port: " + std::string{text});
  address.host = ntohl(parsed.s_addr);
  return address;
}

Address nth_host(Address first, std::size_t index) {
  if (index > 0) first.host = 0x7f010000 + static_cast<std::uint32_t>(index);
  return first;
}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (fd_ >= 0) ::close(fd_);
  fd_ = std::exchange(other.fd_, -1);
  return *this;
}

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

Descriptor listen_on(Address address) {
  Descriptor socket{checked(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), "socket")};
  const int on = 1;
  checked(setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), "setsockopt");
  const sockaddr_in name = to_sockaddr(address);
  checked(bind(socket.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name), "bind");
  checked(listen(socket.get(), 4096), "listen");
  return socket;
}

std::uint16_t port_of(int fd) {
  sockaddr_in name{};
  socklen_t size = sizeof name;
  checked(getsockname(fd, reinterpret_cast<sockaddr*>(&name), &size), "getsockname");
  return ntohs(name.sin_port);
}

Descriptor connect_to(Address address) {
  Descriptor socket{checked(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket")};
  const sockaddr_in name = to_sockaddr(address);
  checked(connect(socket.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name), "connect");
  const int on = 1;
  checked(setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), "setsockopt");
  checked(fcntl(socket.get(), F_SETFL, O_NONBLOCK), "fcntl");
  return socket;
}

Descriptor make_epoll() {
  return Descriptor{checked(epoll_create1(EPOLL_CLOEXEC), "epoll_create1")};
}

void watch(int epoll, int fd, std::uint32_t events, std::uint64_t tag) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = tag;
  if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) < 0)
    checked(epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &event), "epoll_ctl");
}

std::uint64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

std::uint64_t own_cpu_us() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto us = [](timeval t) { return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000 + t.tv_usec; };
  return us(usage.ru_utime) + us(usage.ru_stime);
}

std::uint64_t process_cpu_us(int pid) {
  std::ifstream file{"/proc/" + std::to_string(pid) + "/stat"};
  std::string text{std::istreambuf_iterator<char>{file}, {}};
  const auto after_name = text.rfind(')');  // the name may itself contain blanks and brackets
  if (after_name == std::string::npos) return 0;
  std::istringstream fields{text.substr(after_name + 2)};
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  std::uint64_t user = 0;
  std::uint64_t system = 0;
  fields >> user >> system;
  return (user + system) * 1'000'000 / static_cast<std::uint64_t>(sysconf(_SC_CLK_TCK));
}

void raise_descriptor_limit() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

void stop_on_signals() {
  struct sigaction action{};
  action.sa_handler = [](int) { stop_signal = 1; };
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  signal(SIGPIPE, SIG_IGN);
}

bool stop_requested() {
  return stop_signal != 0;
}

}  // namespace bench
