#include "postrider/config/sources.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "postrider/base/json_writer.hpp"
#include "postrider/config/outboxes.hpp"
#include "postrider/config/values.hpp"

namespace postrider::config {

namespace {

constexpr std::string_view kSecretKeys[] = {"secret", "secret_file", "secrets"};

bool is_secret_key(std::string_view key) {
  return std::ranges::count(kSecretKeys, key) > 0;
}

[[noreturn]] void reject(const std::string& what, const std::string& from, std::string_view sentence) {
  throw ConfigError(fmt::format("{} ({}) {}.", what, from, sentence));
}

std::string read_id(const FileDocument& document) {
  const auto found = document.nodes.find("id");
  if (found == document.nodes.end()) reject("A source", document.from, "needs an id");
  const FileNode& node = found->second;
  if (node.texts.size() != 1 || node.texts[0].empty())
    reject("A source's id", node.from, "must be a non-empty string");
  return node.texts[0];
}

std::vector<std::string> read_secrets(const FileDocument& document, const std::string& id) {
  const std::string name = "The source " + id;
  const FileNode* given = nullptr;
  std::string_view key;
  for (const std::string_view each : kSecretKeys) {
    const auto found = document.nodes.find(std::string(each));
    if (found == document.nodes.end()) continue;
    if (given != nullptr) reject(name, found->second.from, "takes one of secret, secret_file and secrets");
    given = &found->second;
    key = each;
  }
  if (given == nullptr) reject(name, document.from, "needs a secret, a secret_file or secrets");
  const bool is_list = given->json.starts_with('[');
  const bool is_empty = given->texts.empty() || std::ranges::count(given->texts, "") > 0;
  if (is_list != (key == "secrets") || is_empty)
    reject(fmt::format("The {} of the source {}", key, id), given->from,
           key == "secrets" ? "must be a list of non-empty strings" : "must be a non-empty string");
  if (key == "secret_file") return {read_secret_file(given->texts[0], given->from)};
  return given->texts;
}

std::string document_of(const FileDocument& document) {
  base::JsonObject json;
  for (const auto& [key, node] : document.nodes)
    if (!is_secret_key(key)) json.raw(key, node.json);
  return json.text();
}

std::string shown(const SourceConfig& source) {
  std::string text = source.document;
  text.pop_back();
  return text + ",\"secrets\":" +
         base::json_array_of_strings(std::vector<std::string>(source.secrets.size(), "***")) + "}";
}

}  // namespace

void add_sources(const std::vector<FileDocument>& documents, Loaded& loaded) {
  auto& sources = loaded.config.sources;
  for (const FileDocument& document : documents) {
    SourceConfig source{.id = read_id(document),
                        .document = document_of(document),
                        .secrets = {},
                        .places = document.places,
                        .from = document.from};
    source.secrets = read_secrets(document, source.id);
    const auto is_same = [&](const SourceConfig& other) { return other.id == source.id; };
    if (std::ranges::any_of(sources, is_same))
      reject("The source " + source.id, source.from, "is defined twice");
    loaded.settings.push_back({.key = "source." + source.id, .shown = shown(source), .from = source.from});
    sources.push_back(std::move(source));
  }
}

}  // namespace postrider::config
