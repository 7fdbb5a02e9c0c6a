#include "postrider/config/toml_file.hpp"

// The only place that pays for toml++.
#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#include <fmt/format.h>
#include <toml++/toml.h>

#include <fstream>
#include <optional>
#include <sstream>

#include "postrider/config/load.hpp"

namespace postrider::config {
namespace {

std::optional<std::string> scalar_text(const toml::node& node) {
  if (const auto* value = node.as_string()) return value->get();
  if (const auto* value = node.as_integer()) return std::to_string(value->get());
  if (const auto* value = node.as_boolean()) return value->get() ? "true" : "false";
  return std::nullopt;
}

std::optional<std::string> text_of(const toml::node& node) {
  const toml::array* const list = node.as_array();
  if (list == nullptr) return scalar_text(node);
  std::string joined;
  for (const toml::node& entry : *list) {
    const std::optional<std::string> text = scalar_text(entry);
    if (!text) return std::nullopt;
    if (!joined.empty()) joined += ',';
    joined += *text;
  }
  return joined;
}

FileTable read_table(const toml::table& table, const std::string& path) {
  FileTable values;
  for (const auto& [key, node] : table) {
    if (node.is_array_of_tables()) continue;  // [[outbox]], read apart
    const std::string from = fmt::format("file {}:{}", path, node.source().begin.line);
    const std::optional<std::string> text = text_of(node);
    if (!text)
      throw ConfigError(
          fmt::format("The setting {} ({}) must be a string, a whole number, true, false or a list of these.",
                      key.str(), from));
    values[std::string(key.str())] = {.text = *text, .from = from};
  }
  return values;
}

}  // namespace

FileContents read_toml_file(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream content;
  content << file.rdbuf();
  if (!file.is_open() || file.bad())
    throw ConfigError(fmt::format("The configuration file {} cannot be read.", path));

  const toml::parse_result parsed = toml::parse(content.str(), path);
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    throw ConfigError(fmt::format("The configuration file {} is not valid TOML: line {}, column {}: {}.",
                                  path, error.source().begin.line, error.source().begin.column,
                                  error.description()));
  }
  FileContents contents;
  const toml::table& table = parsed.table();
  const toml::node* const given = table.get("outbox");
  if (given != nullptr && !given->is_array_of_tables())
    throw ConfigError(
        fmt::format("Outboxes ({}:{}) are written as [[outbox]] tables.", path, given->source().begin.line));
  if (given != nullptr)
    for (const toml::node& outbox : *given->as_array())
      contents.outboxes.push_back(read_table(*outbox.as_table(), path));
  for (const auto& [key, node] : table)
    if (node.is_array_of_tables() && key.str() != "outbox")
      throw ConfigError(fmt::format("[[{}]] ({}:{}) is not a setting; there is [[outbox]].", key.str(), path,
                                    node.source().begin.line));
  contents.values = read_table(table, path);
  return contents;
}

}  // namespace postrider::config
