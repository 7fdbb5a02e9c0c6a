#include "postrider/http/client/poller.hpp"

#include <sys/epoll.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <cerrno>
#include <system_error>
#include <vector>

#include "postrider/base/check.hpp"

namespace postrider::http {

namespace asio = boost::asio;
using Descriptor = asio::posix::basic_stream_descriptor<asio::io_context::executor_type>;

namespace {

constexpr int kEventsPerWait = 256;
constexpr int kWaitsPerTurn = 4;  // then other work of the loop gets its turn

int make_epoll() {
  const int descriptor = epoll_create1(EPOLL_CLOEXEC);
  if (descriptor < 0) throw std::system_error(errno, std::generic_category(), "epoll_create1");
  return descriptor;
}

}  // namespace

struct Poller::State : std::enable_shared_from_this<State> {
  explicit State(asio::io_context& io) : epoll(io, make_epoll()) {}

  struct Slot {
    Watch* watch = nullptr;
    uint32_t generation = 0;  // an event of a removed watch in the batch at hand must not reach its successor
  };

  void wait() {
    epoll.async_wait(Descriptor::wait_read,
                     [self = shared_from_this()](const boost::system::error_code& error) {
                       if (error || self->is_closed) return;
                       self->turn();
                       if (!self->is_closed) self->wait();
                     });
  }

  void turn() {
    std::array<epoll_event, kEventsPerWait> events;
    for (int round = 0; round < kWaitsPerTurn; ++round) {
      const int count = epoll_wait(epoll.native_handle(), events.data(), kEventsPerWait, 0);
      for (int i = 0; i < count && !is_closed; ++i) dispatch(events[static_cast<size_t>(i)]);
      if (count < kEventsPerWait || is_closed) return;
    }
  }

  void dispatch(const epoll_event& event) {
    const auto token = static_cast<uint32_t>(event.data.u64);
    const auto generation = static_cast<uint32_t>(event.data.u64 >> 32);
    const Slot& slot = slots[token];
    if (slot.watch != nullptr && slot.generation == generation) slot.watch->on_events(event.events);
  }

  void control(int operation, Token token, int descriptor, uint32_t epoll_events) {
    epoll_event event{};
    event.events = epoll_events;
    event.data.u64 = uint64_t{slots[token].generation} << 32 | token;
    CHECK(epoll_ctl(epoll.native_handle(), operation, descriptor, &event) == 0);
  }

  Descriptor epoll;
  std::vector<Slot> slots;
  std::vector<Token> free;
  bool is_closed = false;
};

Poller::Poller(runtime::Loop& loop) : state_(std::make_shared<State>(loop.io())) {
  state_->wait();
}

Poller::~Poller() {
  state_->is_closed = true;
  state_->epoll.close();
}

Poller::Token Poller::add(int descriptor, uint32_t epoll_events, Watch& watch) {
  if (state_->free.empty()) {
    state_->free.push_back(static_cast<Token>(state_->slots.size()));
    state_->slots.emplace_back();
  }
  const Token token = state_->free.back();
  state_->free.pop_back();
  State::Slot& slot = state_->slots[token];
  slot.watch = &watch;
  ++slot.generation;
  state_->control(EPOLL_CTL_ADD, token, descriptor, epoll_events);
  return token;
}

void Poller::modify(Token token, int descriptor, uint32_t epoll_events) {
  state_->control(EPOLL_CTL_MOD, token, descriptor, epoll_events);
}

void Poller::remove(Token token, int descriptor) {
  state_->control(EPOLL_CTL_DEL, token, descriptor, 0);
  state_->slots[token].watch = nullptr;
  state_->free.push_back(token);
}

}  // namespace postrider::http
