// An endpoint for tests: sends the response that is set for a path, and keeps its requests. It has its own
// thread; any thread may call it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "postrider/http/server/server.hpp"
#include "postrider/runtime/loop.hpp"

namespace postrider::support {

class Receiver {
 public:
  struct Answer {
    int status = 200;
    std::string retry_after = {};  // empty: no such header
    bool hangs = false;            // until another response is set for the path
    std::chrono::milliseconds delay{0};
  };
  struct Received {
    std::string path;
    std::string id;  // webhook-id
    std::string body;
    std::map<std::string, std::string> headers;
    std::chrono::steady_clock::time_point at;
  };

  Receiver();
  ~Receiver();
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  std::string url(const std::string& path) const;
  void answer(const std::string& path, Answer answer);  // 200 for paths never named

  std::vector<Received> received() const;
  std::vector<Received> received(const std::string& path) const;
  std::vector<std::string> bodies(const std::string& path) const;
  size_t count(const std::string& path) const { return received(path).size(); }
  int concurrent(const std::string& path) const;      // requests in progress
  int concurrent_max(const std::string& path) const;  // ever at once; "" for all paths together

  // Until the condition, which may use all of the above, holds; false after a minute.
  bool wait_for(const std::function<bool()>& condition) const;
  bool wait_for_count(const std::string& path, size_t wanted) const {
    return wait_for([&] { return count(path) >= wanted; });
  }

 private:
  struct Load {
    int now = 0, max = 0;
  };
  class Endpoint;
  Answer begin(const http::Request& request);
  void end(const std::string& path);
  bool still_hangs(const std::string& path) const;

  mutable std::recursive_mutex mutex_;
  mutable std::condition_variable_any changed_;
  std::map<std::string, Answer> answers_;
  std::vector<Received> received_;
  std::map<std::string, Load> loads_;
  bool is_stopping_ = false;

  runtime::Loop loop_;
  http::Listener listener_;
  std::unique_ptr<Endpoint> endpoint_;
  std::unique_ptr<http::Server> server_;
  runtime::TaskGroup tasks_;
  std::thread thread_;
};

}  // namespace postrider::support
