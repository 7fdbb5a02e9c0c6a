// The few system calls that the benchmark tools share. Failures of set-up calls throw std::system_error.
#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace bench {

struct Address {
  std::uint32_t host = 0;  // IPv4, host byte order
  std::uint16_t port = 0;
};

// "127.0.0.1:9000" → Address. Throws std::invalid_argument on anything else.
Address parse_address(std::string_view text);

// The index-th loopback host of a benchmark: the given one, then 127.1.0.1, 127.1.0.2, … on the same port.
Address nth_host(Address first, std::size_t index);

// Owns a file descriptor.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();

  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  void close() { *this = Descriptor{}; }

 private:
  int fd_ = -1;
};

Descriptor listen_on(Address);   // non-blocking; port 0 takes a free one
std::uint16_t port_of(int fd);   // of a bound socket
Descriptor connect_to(Address);  // connected (the peer is on this machine), then non-blocking
Descriptor make_epoll();
void watch(int epoll, int fd, std::uint32_t events, std::uint64_t tag);

std::uint64_t now_ns();                 // CLOCK_MONOTONIC, the same for all processes of a machine
std::uint64_t own_cpu_us();             // user + system time of this process
std::uint64_t process_cpu_us(int pid);  // of another one, in steps of a clock tick; 0 when it is gone

void raise_descriptor_limit();  // to the hard limit: one connection is one descriptor
void stop_on_signals();         // SIGINT and SIGTERM make stop_requested() true instead of killing
bool stop_requested();

}  // namespace bench
