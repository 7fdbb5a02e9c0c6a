// A statement that is prepared once per connection, on its first use. tools/embed_sql.py generates it from
// the .sql file next to the code: `-- name: ack` in inbox/messages.sql becomes the struct `inbox::sql::ack`
// (see query.hpp), whose statement has the name "inbox.messages.ack".
#pragma once

namespace postrider::pg {

struct Statement {
  const char* name;  // unique in the process
  const char* text;
};

}  // namespace postrider::pg
