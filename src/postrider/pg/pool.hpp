// A few links for queries that may take long (lists, searches): each is used by one caller at a time.
#pragma once

#include <cstddef>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "postrider/pg/link.hpp"

namespace postrider::pg {

class Pool {
  struct State;

 public:
  Pool(runtime::Loop& loop, LinkOptions options, size_t links_max);
  ~Pool();  // stop() was awaited, or start() never called
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  void start();
  runtime::Task<void> stop();

  // A link for the caller alone until the lease is gone. The pool outlives its leases.
  class Lease {
   public:
    Lease(Lease&& other) noexcept
        : state_(std::move(other.state_)), link_(other.link_), owner_(std::move(other.owner_)) {}
    Lease& operator=(Lease&& other) noexcept {
      std::swap(state_, other.state_);
      std::swap(link_, other.link_);
      std::swap(owner_, other.owner_);
      return *this;
    }
    ~Lease();
    Link& operator*() const { return *link_; }
    Link* operator->() const { return link_; }

   private:
    friend class Pool;
    Lease(std::shared_ptr<State> state, Link* link, std::string owner)
        : state_(std::move(state)), link_(link), owner_(std::move(owner)) {}
    std::shared_ptr<State> state_;
    Link* link_;
    std::string owner_;
  };

  // On whose behalf a link is wanted. An owner that holds links_max of them waits for one of its own.
  struct Claim {
    std::string owner;
    size_t links_max = std::numeric_limits<size_t>::max();
  };
  // Owners take turns, whoever has more waiting; the claims of one owner are served in order. Throws
  // Error(unavailable) at the deadline.
  runtime::Task<Lease> acquire(runtime::SteadyTime deadline);
  runtime::Task<Lease> acquire(runtime::SteadyTime deadline, Claim claim);
  size_t held_by(const std::string& owner) const;
  // Acquires, runs, releases.
  runtime::Task<std::vector<Rows>> run(Batch batch, runtime::SteadyTime deadline);

  bool is_up() const;  // any link

 private:
  std::shared_ptr<State> state_;  // shared with leases and with jobs posted to the loop
};

}  // namespace postrider::pg
