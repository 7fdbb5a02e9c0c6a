// Statements that know the types of their parameters and columns. tools/embed_sql.py generates one struct per
// statement of a .sql file (tools/typed_sql.py describes the notation). Its members are the parameters:
//
//   const auto rows = co_await link.run(sql::list_endpoints{.tenant = tenant, .limit = 100});
//   for (const auto& row : rows) use(row.url);
//
// Several statements in one round trip:
//
//   const auto [tenants, endpoints] = co_await transaction.run(lock_tenant, lock_endpoint);
//
// or, if it depends which ones:
//
//   pg::Batch batch;
//   const auto locked = batch.add(sql::lock_tenant{.id = id});
//   if (…) batch.add(sql::record_change{.kind = "tenant"});
//   pg::Results results = co_await transaction.run(std::move(batch));
//   const auto tenants = results.take(locked);
//
// Parameters are encoded when run() or add() is called, so the values they refer to need not outlive that
// call. A Row is decoded as a whole when it is read; its views point into the RowsOf it came from.
#pragma once

#include <concepts>
#include <coroutine>
#include <cstddef>
#include <optional>
#include <ranges>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "postrider/base/check.hpp"
#include "postrider/pg/params.hpp"
#include "postrider/pg/rows.hpp"
#include "postrider/pg/statement.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::pg {

// A generated statement. It is trivial to destroy, which is why tools/check_coro.py allows one in an
// expression with co_await.
template <class S>
concept Query = std::is_trivially_destructible_v<S> && requires(const S& query) {
  typename S::Row;
  { S::statement } -> std::convertible_to<Statement>;
  { query.params() } -> std::same_as<Params>;
};

// The rows that a statement returned. Statements that share a row type (`-- row:`) return the same RowList,
// so that one of them can be chosen at run time.
template <class RowType>
class RowList {
 public:
  using Row = RowType;

  RowList() = default;
  explicit RowList(Rows rows) : rows_(std::move(rows)) {}

  size_t size() const { return rows_.size(); }
  bool empty() const { return rows_.empty(); }
  // Rows inserted, updated, deleted or selected.
  int64_t affected_rows() const { return rows_.affected_rows(); }
  // Throws Error(other) if there is no such row, or if a column that the statement marks as not null is null.
  Row operator[](size_t row) const [[clang::lifetimebound]] { return Row::read(rows_, row); }
  Row front() const [[clang::lifetimebound]] { return (*this)[0]; }

  class Iterator {
   public:
    using value_type = Row;
    using difference_type = ptrdiff_t;
    Iterator() = default;
    Iterator(const RowList& rows, size_t at) : rows_(&rows), at_(at) {}
    Row operator*() const { return (*rows_)[at_]; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    Iterator operator++(int) { return std::exchange(*this, Iterator(*rows_, at_ + 1)); }
    bool operator==(const Iterator& other) const { return at_ == other.at_; }

   private:
    const RowList* rows_ = nullptr;
    size_t at_ = 0;
  };
  Iterator begin() const [[clang::lifetimebound]] { return Iterator(*this, 0); }
  Iterator end() const [[clang::lifetimebound]] { return Iterator(*this, size()); }

 private:
  Rows rows_;
};

template <Query S>
using RowsOf = RowList<typename S::Row>;

// co_await gives the RowsOf<S> of one statement, or throws as the task would. Adds types to the task and no
// coroutine of its own, so that a typed statement allocates no more than another.
template <Query S>
class [[nodiscard]] Reply {
 public:
  explicit Reply(runtime::Task<Rows> task) : task_(std::move(task)) {}

  bool await_ready() const noexcept { return task_.await_ready(); }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> awaiter) noexcept {
    return task_.await_suspend(awaiter);
  }
  RowsOf<S> await_resume() { return RowsOf<S>(task_.await_resume()); }

 private:
  runtime::Task<Rows> task_;
};

// The same for the statements of one batch, in their order: a tuple of RowsOf.
template <Query... S>
class [[nodiscard]] Replies {
 public:
  explicit Replies(runtime::Task<std::vector<Rows>> task) : task_(std::move(task)) {}

  bool await_ready() const noexcept { return task_.await_ready(); }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> awaiter) noexcept {
    return task_.await_suspend(awaiter);
  }
  std::tuple<RowsOf<S>...> await_resume() {
    std::vector<Rows> rows = task_.await_resume();
    CHECK(rows.size() == sizeof...(S));
    size_t next = 0;
    return std::tuple<RowsOf<S>...>{RowsOf<S>(std::move(rows[next++]))...};
  }

 private:
  runtime::Task<std::vector<Rows>> task_;
};

// The place of a statement's result among the results of its batch.
template <Query S>
struct Pending {
  size_t position;
};

// The results of the statements of a batch. Each can be taken once.
class Results {
 public:
  Results(std::vector<Rows> rows) : rows_(std::move(rows)) {}  // implicit: what run(Batch) returns

  template <Query S>
  RowsOf<S> take(Pending<S> pending) {
    CHECK(pending.position < rows_.size());
    return RowsOf<S>(std::move(rows_[pending.position]));
  }

 private:
  std::vector<Rows> rows_;
};

// An array parameter. Refers to any range of T, or of optional<T> where elements may be null.
template <class T>
class ArrayOf {
 public:
  template <class Range>
    requires(Array<Range> &&
             Codec<plain_t<std::ranges::range_value_t<Range>>>::array_oid == Codec<T>::array_oid)
  ArrayOf(const Range& values [[clang::lifetimebound]])
      : values_(&values),
        add_([](Params& params, const void* range) { params.add(*static_cast<const Range*>(range)); }) {}

  void add_to(Params& params) const { add_(params, values_); }

 private:
  const void* values_;
  void (*add_)(Params&, const void*);
};

}  // namespace postrider::pg
