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

// A value that may have values inside, for tables that are documents of the API.
struct FileNode {
  std::string json;
  std::vector<std::string> texts;  // of a string, or of a list of strings only
  std::string from;
};
struct FileDocument {
  std::map<std::string, FileNode> nodes;
  std::map<std::string, std::string> places;  // JSON pointer → from, at any depth
  std::string from;
};

struct FileContents {
  FileTable values;
  std::vector<FileTable> outboxes;    // [[outbox]]
  std::vector<FileDocument> sources;  // [[source]]
};

// Throws ConfigError: not readable, not TOML, a table, a date or a fraction where none belongs.
FileContents read_toml_file(const std::string& path);

}  // namespace postrider::config
