// Private to config/: postrider.toml as flat key → text, so that one set of parsers serves all sources.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace postrider::config {

struct FileValue {
  std::string text;  // arrays joined with commas
  std::string from;  // "file postrider.toml:3"
};

using FileTable = std::map<std::string, FileValue>;
struct FileContents {
  FileTable values;
  std::vector<FileTable> outboxes;  // [[outbox]]
};

// Throws ConfigError: not readable, not TOML, a table or a date where a value belongs.
FileContents read_toml_file(const std::string& path);

}  // namespace postrider::config
