#include "postrider/config/toml_file.hpp"

// The only place that pays for toml++.
#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#include <fmt/format.h>
#include <toml++/toml.h>

#include <fstream>
#include <optional>
#include <sstream>

#include "postrider/base/encoding.hpp"
#include "postrider/base/json_writer.hpp"
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

std::string place(const toml::node& node, const std::string& path) {
  return fmt::format("file {}:{}", path, node.source().begin.line);
}

FileTable read_table(const toml::table& table, const std::string& path) {
  FileTable values;
  for (const auto& [key, node] : table) {
    if (node.is_array_of_tables()) continue;  // read apart
    const std::string from = place(node, path);
    const std::optional<std::string> text = text_of(node);
    if (!text)
      throw ConfigError(
          fmt::format("The setting {} ({}) must be a string, a whole number, true, false or a list of these.",
                      key.str(), from));
    values[std::string(key.str())] = {.text = *text, .from = from};
  }
  return values;
}

// Converts a [[source]] table to JSON and records the positions of its keys.
class DocumentReader {
 public:
  explicit DocumentReader(const std::string& path) : path_(path) {}

  FileDocument read(const toml::table& table) {
    document_.from = place(table, path_);
    for (const auto& [key, node] : table) {
      document_.nodes.emplace(key.str(), FileNode{.json = json(node, "/" + std::string(key.str())),
                                                  .texts = texts(node),
                                                  .from = place(node, path_)});
    }
    return std::move(document_);
  }

 private:
  // Tables are written inside each other by hand: a few levels at most.
  std::string json(const toml::node& node, const std::string& pointer) {
    const std::string from = place(node, path_);
    document_.places.emplace(pointer, from);
    if (const auto* text = node.as_string()) return base::json_quoted(text->get());
    if (const toml::array* const list = node.as_array()) {
      std::vector<std::string> items;
      for (const toml::node& entry : *list)
        items.push_back(json(entry, fmt::format("{}/{}", pointer, items.size())));
      return base::json_array(items);
    }
    if (const toml::table* const table = node.as_table()) {
      base::JsonObject object;
      for (const auto& [key, inner] : *table)
        object.raw(key.str(), json(inner, pointer + "/" + std::string(key.str())));
      return object.text();
    }
    if (auto text = scalar_text(node)) return *text;
    throw ConfigError(fmt::format("The value at {} ({}) must not be a date, a time or a fraction.",
                                  pointer.substr(1), from));
  }

  static std::vector<std::string> texts(const toml::node& node) {
    if (const auto* text = node.as_string()) return {text->get()};
    std::vector<std::string> all;
    const toml::array* const list = node.as_array();
    if (list == nullptr || !list->is_homogeneous(toml::node_type::string)) return all;
    for (const toml::node& entry : *list) all.push_back(entry.as_string()->get());
    return all;
  }

  const std::string& path_;
  FileDocument document_;
};

// The tables of [[name]]; none if it is not there.
std::vector<const toml::table*> tables_of(const toml::table& file, std::string_view name,
                                          const std::string& path) {
  std::vector<const toml::table*> all;
  const toml::node* const given = file.get(name);
  if (given == nullptr) return all;
  if (!given->is_array_of_tables())
    throw ConfigError(fmt::format("The key {} ({}:{}) is written as [[{}]] tables.", name, path,
                                  given->source().begin.line, name));
  for (const toml::node& entry : *given->as_array()) all.push_back(entry.as_table());
  return all;
}

void reject_other_tables(const toml::table& file, const std::string& path) {
  for (const auto& [key, node] : file)
    if (node.is_array_of_tables() && key.str() != "outbox" && key.str() != "source")
      throw ConfigError(fmt::format("[[{}]] ({}:{}) is not a setting; there are [[outbox]] and [[source]].",
                                    key.str(), path, node.source().begin.line));
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
  reject_other_tables(table, path);
  for (const toml::table* outbox : tables_of(table, "outbox", path))
    contents.outboxes.push_back(read_table(*outbox, path));
  for (const toml::table* source : tables_of(table, "source", path))
    contents.sources.push_back(DocumentReader(path).read(*source));
  contents.values = read_table(table, path);
  return contents;
}

}  // namespace postrider::config
