// Reports the state of this process to the service manager (systemd, Type=notify): ready, stopping, and a
// watchdog message as long as the threads of the node respond. Without NOTIFY_SOCKET nothing is sent.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

namespace postrider::server {

// The environment of systemd's notify protocol, sd_notify(3).
struct NotifySettings {
  std::string socket;  // a path, or @ and a name; empty: not run by a service manager
  std::optional<std::chrono::microseconds> watchdog;

  // Also removes the variables, so that no child process reports in the name of this one. Called before other
  // threads start.
  static NotifySettings take_from_environment();
};

// Sends datagrams. A message that cannot be sent is logged once: the service manager decides what to do.
class NotifySocket {
 public:
  explicit NotifySocket(std::string address);
  ~NotifySocket();
  NotifySocket(const NotifySocket&) = delete;
  NotifySocket& operator=(const NotifySocket&) = delete;

  void send(std::string_view message);  // any thread

 private:
  void fail(int error);

  std::string address_;
  int fd_ = -1;
  bool has_failed_ = false;
  std::mutex lock_;
};

// Passes the job to every thread that must respond; each thread destroys its copy after it has run.
using Probe = std::function<void(std::function<void()> job)>;

// One round of probes at a time: the watchdog message is sent when all threads have responded to the last
// one.
class Watchdog {
 public:
  Watchdog(NotifySocket& socket, Probe probe) : socket_(socket), probe_(std::move(probe)) {}
  void tick();

 private:
  NotifySocket& socket_;
  Probe probe_;
  std::weak_ptr<int> round_;  // gone when no thread holds it any more
};

class ServiceManager {
 public:
  explicit ServiceManager(NotifySettings settings);
  ~ServiceManager();

  // Starts the watchdog's thread if the service manager asked for one.
  void ready(std::string_view status, Probe probe);
  // From now on the watchdog message is sent unconditionally: threads end, and the stop has its own limit.
  void stopping();

 private:
  void watch(Watchdog watchdog);

  NotifySettings settings_;
  NotifySocket socket_;
  std::mutex lock_;
  std::condition_variable changed_;
  bool is_stopping_ = false;
  bool has_ended_ = false;
  std::thread watching_;
};

}  // namespace postrider::server
