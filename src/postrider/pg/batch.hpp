#pragma once

#include <utility>
#include <vector>

#include "postrider/pg/params.hpp"
#include "postrider/pg/query.hpp"
#include "postrider/pg/statement.hpp"

namespace postrider::pg {

// Statements that go out together under one sync: one round trip and one implicit transaction, all or
// nothing.
class Batch {
 public:
  struct Item {
    Statement statement;
    Params params;
  };

  Batch() = default;
  Batch(Statement statement, Params params) { add(statement, std::move(params)); }

  Batch& add(Statement statement, Params params = Params()) {
    items_.push_back({statement, std::move(params)});
    return *this;
  }
  template <Query S>
  Pending<S> add(const S& query) {
    add(S::statement, query.params());
    return {items_.size() - 1};
  }
  template <Query... S>
  static Batch of(const S&... queries) {
    Batch batch;
    batch.items_.reserve(sizeof...(S));
    (batch.add(queries), ...);
    return batch;
  }
  // Statements with values given directly: batch.with(sql::find, tenant_id, limit).
  template <class... T>
  Batch& with(Statement statement, const T&... values) {
    return add(statement, Params(values...));
  }

  size_t size() const { return items_.size(); }
  bool empty() const { return items_.empty(); }
  const std::vector<Item>& items() const { return items_; }

 private:
  std::vector<Item> items_;
};

}  // namespace postrider::pg
