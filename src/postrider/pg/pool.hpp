// A few links for queries that may take long (lists, searches): each is used by one caller at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "postrider/pg/link.hpp"

namespace postrider::pg {

class Pool {
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
    Lease(Lease&& other) noexcept : pool_(std::exchange(other.pool_, nullptr)), link_(other.link_) {}
    Lease& operator=(Lease&& other) noexcept {
      std::swap(pool_, other.pool_);
      std::swap(link_, other.link_);
      return *this;
    }
    ~Lease();
    Link& operator*() const { return *link_; }
    Link* operator->() const { return link_; }

   private:
    friend class Pool;
    Lease(Pool* pool, Link* link) : pool_(pool), link_(link) {}
    Pool* pool_;
    Link* link_;
  };

  // First come, first served; throws Error(unavailable) at the deadline.
  runtime::Task<Lease> acquire(runtime::SteadyTime deadline);
  // Acquires, runs, releases.
  runtime::Task<std::vector<Rows>> run(Batch batch, runtime::SteadyTime deadline);

  bool is_up() const;  // any link

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace postrider::pg
