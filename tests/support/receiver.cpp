#include "support/receiver.hpp"

#include <algorithm>
#include <future>

namespace postrider::support {

using namespace std::chrono_literals;

namespace {

constexpr auto wait_timeout = 60s;

runtime::Task<void> drain_and_tell(http::Server& server, std::promise<void>& done) {
  const auto deadline = base::BootClock::now() + 5s;
  co_await server.drain(deadline);
  done.set_value();
}

}  // namespace

class Receiver::Endpoint : public http::Handler {
 public:
  explicit Endpoint(Receiver& receiver) : receiver_(receiver) {}

  runtime::Task<http::Response> handle(http::Request& request) override {
    const std::string path(request.path);
    const Answer answer = receiver_.begin(request);
    runtime::Wakeup wakeup(*request.loop);
    if (answer.delay > 0ms) co_await wakeup.wait_for(answer.delay);
    while (answer.hangs && receiver_.still_hangs(path)) co_await wakeup.wait_for(2ms);
    http::Response response = http::Response::text(answer.status, "noted");
    if (!answer.retry_after.empty()) response.header("retry-after", answer.retry_after);
    receiver_.end(path);
    co_return response;
  }

 private:
  Receiver& receiver_;
};

Receiver::Receiver()
    : listener_({.address = "127.0.0.1:0"}),
      endpoint_(std::make_unique<Endpoint>(*this)),
      server_(std::make_unique<http::Server>(loop_, listener_, *endpoint_)) {
  loop_.post([this] { server_->start(); });
  thread_ = std::thread([this] { loop_.run(); });
}

Receiver::~Receiver() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  std::promise<void> done;
  loop_.post([this, &done] {
    server_->stop_accepting();
    tasks_.spawn(drain_and_tell(*server_, done));
  });
  done.get_future().wait();
  loop_.stop();
  thread_.join();
}

std::string Receiver::url(const std::string& path) const {
  return "http://" + listener_.address() + path;
}

void Receiver::answer(const std::string& path, Answer answer) {
  const std::lock_guard lock(mutex_);
  answers_[path] = std::move(answer);
}

Receiver::Answer Receiver::begin(const http::Request& request) {
  const std::lock_guard lock(mutex_);
  Received one;
  one.path = request.path;
  one.body = request.body;
  one.at = std::chrono::steady_clock::now();
  for (const http::Field& field : request.fields) {
    std::string name(field.name);
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    one.headers[name] = field.value;
  }
  one.id = one.headers["webhook-id"];
  for (const std::string& of : {one.path, std::string()}) {
    Load& load = loads_[of];
    load.max = std::max(load.max, ++load.now);
  }
  const Answer answer = answers_[one.path];
  received_.push_back(std::move(one));
  changed_.notify_all();
  return answer;
}

void Receiver::end(const std::string& path) {
  const std::lock_guard lock(mutex_);
  --loads_[path].now;
  --loads_[""].now;
  changed_.notify_all();
}

bool Receiver::still_hangs(const std::string& path) const {
  const std::lock_guard lock(mutex_);
  const auto found = answers_.find(path);
  return !is_stopping_ && found != answers_.end() && found->second.hangs;
}

std::vector<Receiver::Received> Receiver::received() const {
  const std::lock_guard lock(mutex_);
  return received_;
}

std::vector<Receiver::Received> Receiver::received(const std::string& path) const {
  std::vector<Received> of_path;
  for (Received& one : received())
    if (one.path == path) of_path.push_back(std::move(one));
  return of_path;
}

std::vector<std::string> Receiver::bodies(const std::string& path) const {
  std::vector<std::string> bodies;
  for (Received& one : received(path)) bodies.push_back(std::move(one.body));
  return bodies;
}

int Receiver::concurrent(const std::string& path) const {
  const std::lock_guard lock(mutex_);
  const auto found = loads_.find(path);
  return found == loads_.end() ? 0 : found->second.now;
}

int Receiver::concurrent_max(const std::string& path) const {
  const std::lock_guard lock(mutex_);
  const auto found = loads_.find(path);
  return found == loads_.end() ? 0 : found->second.max;
}

bool Receiver::wait_for(const std::function<bool()>& condition) const {
  const auto give_up = std::chrono::steady_clock::now() + wait_timeout;
  std::unique_lock lock(mutex_);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > give_up) return false;
    changed_.wait_for(lock, 20ms);
  }
  return true;
}

}  // namespace postrider::support
