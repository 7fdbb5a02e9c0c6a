#include "postrider/server/service_manager.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace postrider::server {
namespace {

using namespace std::chrono_literals;

// The side of the service manager: a datagram socket with an abstract name.
class Manager {
 public:
  Manager() : fd_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name_.data() + 1, name_.size() - 1);
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name_.size());
    EXPECT_EQ(::bind(fd_, reinterpret_cast<const sockaddr*>(&address), length), 0);
  }
  ~Manager() { ::close(fd_); }

  const std::string& name() const { return name_; }
  std::string next() { return receive(0); }
  std::string waiting() { return receive(MSG_DONTWAIT); }  // empty: there is none

 private:
  std::string receive(int flags) const {
    std::array<char, 512> text{};
    const ssize_t size = ::recv(fd_, text.data(), text.size(), flags);
    return size < 0 ? "" : std::string(text.data(), static_cast<size_t>(size));
  }

  std::string name_ = "@postrider-test-" + std::to_string(::getpid());
  int fd_;
};

const Probe no_threads = [](const std::function<void()>&) {};

TEST(ServiceManager, SettingsAreTakenOutOfTheEnvironment) {
  ::setenv("NOTIFY_SOCKET", "/run/notify", 1);
  ::setenv("WATCHDOG_USEC", "3000000", 1);
  ::setenv("WATCHDOG_PID", std::to_string(::getpid()).c_str(), 1);
  const auto settings = NotifySettings::take_from_environment();
  EXPECT_EQ(settings.socket, "/run/notify");
  EXPECT_EQ(settings.watchdog, 3s);
  for (const char* name : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"})
    EXPECT_EQ(std::getenv(name), nullptr) << name;
}

TEST(ServiceManager, AWatchdogForAnotherProcessOrWithoutAPeriodIsIgnored) {
  ::setenv("WATCHDOG_USEC", "3000000", 1);
  ::setenv("WATCHDOG_PID", "1", 1);
  EXPECT_EQ(NotifySettings::take_from_environment().watchdog, std::nullopt);
  for (const char* period : {"0", "-5", "3s", "99999999999999999999"}) {
    ::setenv("WATCHDOG_USEC", period, 1);
    EXPECT_EQ(NotifySettings::take_from_environment().watchdog, std::nullopt) << period;
  }
}

TEST(ServiceManager, ReportsReadyAndStopping) {
  Manager manager;
  ServiceManager service({.socket = manager.name(), .watchdog = std::nullopt});
  service.ready("Listening on 127.0.0.1:8090", no_threads);
  EXPECT_EQ(manager.next(), "READY=1\nSTATUS=Listening on 127.0.0.1:8090");
  service.stopping();
  EXPECT_EQ(manager.next(), "STOPPING=1\nSTATUS=Draining");
}

TEST(ServiceManager, SendsNothingWithoutASocketAndSurvivesABadOne) {
  const std::string too_long = "/" + std::string(200, 'x');
  for (const std::string& address :
       {std::string(), std::string("relative"), too_long, std::string("/absent")}) {
    ServiceManager service({.socket = address, .watchdog = 1s});
    service.ready("Listening", no_threads);
    service.stopping();
  }
}

TEST(ServiceManager, TheWatchdogWaitsForEveryThread) {
  Manager manager;
  NotifySocket socket(manager.name());
  std::vector<std::function<void()>> first, second;  // the queues of two threads
  Watchdog watchdog(socket, [&](const std::function<void()>& job) {
    first.push_back(job);
    second.push_back(job);
  });
  watchdog.tick();
  EXPECT_EQ(manager.waiting(), "WATCHDOG=1");
  first.clear();
  watchdog.tick();
  EXPECT_EQ(manager.waiting(), "");  // the second has not responded
  second.clear();
  watchdog.tick();
  EXPECT_EQ(manager.waiting(), "WATCHDOG=1");
}

TEST(ServiceManager, TheWatchdogKeepsReportingWhileTheNodeStops) {
  Manager manager;
  std::vector<std::function<void()>> stuck;
  ServiceManager service({.socket = manager.name(), .watchdog = 4ms});
  service.ready("Listening", [&](const std::function<void()>& job) { stuck.push_back(job); });
  service.stopping();
  std::string message = manager.next();
  while (!message.starts_with("STOPPING")) message = manager.next();
  EXPECT_EQ(manager.next(), "WATCHDOG=1");
  EXPECT_EQ(manager.next(), "WATCHDOG=1");
}

}  // namespace
}  // namespace postrider::server
