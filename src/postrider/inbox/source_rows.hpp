// Private to inbox/: converts sources between rows and structs.
#pragma once

#include <string>
#include <vector>

#include "postrider/inbox/sources.hpp"
#include "postrider/inbox/sources.sql.hpp"

namespace postrider::inbox {

// The statements that write a source. They refer to this object and to the source.
class SourceWriter {
 public:
  explicit SourceWriter(const Source& source);
  SourceWriter(const SourceWriter&) = delete;  // signature_ refers to scheme_
  SourceWriter& operator=(const SourceWriter&) = delete;
  sql::insert_source insert() const;
  sql::update_source update() const;

 private:
  const Source& source_;
  std::string scheme_;  // JSON
  std::optional<pg::Json> signature_;
  std::optional<std::string_view> deduplicate_, forward_tenant_, forward_type_;
};

std::vector<Source> read_sources(const pg::RowsOf<sql::load_sources>& rows);

}  // namespace postrider::inbox
