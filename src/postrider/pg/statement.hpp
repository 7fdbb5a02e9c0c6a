// A statement that is prepared once per connection, on its first use. Made by tools/embed_sql.py from the
// .sql file beside the code: `-- name: claim` in delivery/settle.sql is `delivery::sql::claim`, named
// "delivery.settle.claim".
#pragma once

namespace postrider::pg {

struct Statement {
  const char* name;  // unique in the process
  const char* text;
};

}  // namespace postrider::pg
