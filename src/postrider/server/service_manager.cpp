#include "postrider/server/service_manager.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "postrider/telemetry/log.hpp"

namespace postrider::server {
namespace {

constexpr int kTicksPerPeriod = 4;  // sd_watchdog_enabled(3) recommends at least two

std::string take_variable(const char* name) {
  const char* value = std::getenv(name);
  std::string taken = value == nullptr ? "" : value;
  ::unsetenv(name);
  return taken;
}

std::optional<int64_t> positive_number(const std::string& text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number <= 0) return std::nullopt;
  return number;
}

}  // namespace

NotifySettings NotifySettings::take_from_environment() {
  NotifySettings settings{.socket = take_variable("NOTIFY_SOCKET"), .watchdog = std::nullopt};
  const std::optional<int64_t> period = positive_number(take_variable("WATCHDOG_USEC"));
  const std::string pid = take_variable("WATCHDOG_PID");
  const bool is_for_this_process = pid.empty() || positive_number(pid) == ::getpid();
  if (period && is_for_this_process) settings.watchdog = std::chrono::microseconds(*period);
  return settings;
}

NotifySocket::NotifySocket(std::string address) : address_(std::move(address)) {
  if (address_.empty()) return;
  fd_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd_ < 0) fail(errno);
}

NotifySocket::~NotifySocket() {
  if (fd_ >= 0) ::close(fd_);
}

void NotifySocket::send(std::string_view message) {
  if (fd_ < 0) return;
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  const bool has_form = address_.starts_with('/') || address_.starts_with('@');
  if (!has_form || address_.size() >= sizeof to.sun_path) return fail(EINVAL);
  std::memcpy(to.sun_path, address_.data(), address_.size());
  if (address_.starts_with('@')) to.sun_path[0] = '\0';  // a name instead of a file
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address_.size());
  const ssize_t sent = ::sendto(fd_, message.data(), message.size(), MSG_NOSIGNAL,
                                reinterpret_cast<const sockaddr*>(&to), length);
  if (sent < 0) fail(errno);
}

void NotifySocket::fail(int error) {
  const std::lock_guard lock(lock_);
  if (std::exchange(has_failed_, true)) return;
  telemetry::log_warn("service_manager_unreachable")
      .field("socket", address_)
      .field("error", ::strerrordesc_np(error));
}

void Watchdog::tick() {
  if (!round_.expired()) return;  // a thread has not responded yet
  socket_.send("WATCHDOG=1");
  const auto round = std::make_shared<int>();
  round_ = round;
  probe_([round] {});
}

ServiceManager::ServiceManager(NotifySettings settings)
    : settings_(std::move(settings)), socket_(settings_.socket) {}

ServiceManager::~ServiceManager() {
  {
    const std::lock_guard lock(lock_);
    has_ended_ = true;
  }
  changed_.notify_all();
  if (watching_.joinable()) watching_.join();
}

void ServiceManager::ready(std::string_view status, Probe probe) {
  socket_.send("READY=1\nSTATUS=" + std::string(status));
  if (!settings_.watchdog || settings_.socket.empty()) return;
  watching_ = std::thread([this, watchdog = Watchdog(socket_, std::move(probe))] { watch(watchdog); });
}

void ServiceManager::stopping() {
  socket_.send("STOPPING=1\nSTATUS=Draining");
  const std::lock_guard lock(lock_);
  is_stopping_ = true;
}

void ServiceManager::watch(Watchdog watchdog) {
  std::unique_lock lock(lock_);
  while (!has_ended_) {
    if (is_stopping_)
      socket_.send("WATCHDOG=1");
    else
      watchdog.tick();
    changed_.wait_for(lock, *settings_.watchdog / kTicksPerPeriod, [this] { return has_ended_; });
  }
}

}  // namespace postrider::server
