// Private to config/: postrider.toml as flat key → text, so that one set of parsers serves all sources.
#pragma once

#include <map>
#include <string>

namespace postrider::config {

struct FileValue {
  std::string text;  // arrays joined with commas
  std::string from;  // "file postrider.toml:3"
};

// Throws ConfigError: not readable, not TOML, a table or a date where a value belongs.
std::map<std::string, FileValue> read_toml_file(const std::string& path);

}  // namespace postrider::config
