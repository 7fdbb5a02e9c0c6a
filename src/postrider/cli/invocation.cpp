#include "postrider/cli/invocation.hpp"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <charconv>
#include <chrono>
#include <fstream>
#include <iostream>
#include <iterator>
#include <utility>

#include "postrider/base/json_scanner.hpp"
#include "postrider/cli/human.hpp"
#include "postrider/cli/terminal.hpp"
#include "postrider/config/settings.hpp"

namespace postrider::cli {

namespace {

Format format_of(const Given& given) {
  if (given.contains("--json")) return Format::json;
  const auto found = given.find("--output");
  if (found == given.end() || found->second.empty()) return Format::table;
  const std::string& word = found->second.back();
  return word == "json"   ? Format::json
         : word == "yaml" ? Format::yaml
         : word == "name" ? Format::name
                          : Format::wide;
}

}  // namespace

Invocation::Invocation(const Command& command, Given given, config::Environment environment)
    : command_(command),
      given_(std::move(given)),
      environment_(std::move(environment)),
      out_(format_of(given_)) {
  if (given_.contains("--json") && given_.contains("--output") &&
      given_["--output"] != std::vector<std::string>{"json"})
    throw Misuse("--json and --output " + value("--output").value_or("") +
                 " contradict each other; use one of them.");
}

Invocation::~Invocation() = default;

std::string Invocation::argument(std::string_view name) const {
  const auto found = value(name);
  if (!found) throw Misuse("Missing argument <" + std::string(name) + ">.");
  return *found;
}

std::optional<std::string> Invocation::value(std::string_view name) const {
  const auto found = given_.find(name);
  if (found == given_.end() || found->second.empty()) return std::nullopt;
  return found->second.back();
}

std::vector<std::string> Invocation::values(std::string_view name) const {
  const auto found = given_.find(name);
  return found == given_.end() ? std::vector<std::string>() : found->second;
}

std::optional<int64_t> Invocation::integer(std::string_view name) const {
  const auto text = value(name);
  if (!text) return std::nullopt;
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc() || end != text->data() + text->size())
    throw Misuse("Invalid value \"" + *text + "\" for " + std::string(name) + ": expected a whole number.");
  return number;
}

std::optional<std::string> Invocation::time(std::string_view name) const {
  const auto text = value(name);
  if (!text) return std::nullopt;
  const auto parsed = parse_time(*text, base::wall_now());
  if (!parsed)
    throw Misuse("Invalid value \"" + *text + "\" for " + std::string(name) +
                 ": must be a time such as 30m, 1h, 2d, 2026-04-08 or 2026-04-08T10:15:30Z.");
  return base::to_rfc3339(*parsed);
}

std::optional<std::chrono::milliseconds> Invocation::duration(std::string_view name) const {
  const auto text = value(name);
  if (!text) return std::nullopt;
  const auto parsed = parse_duration(*text);
  if (!parsed)
    throw Misuse("Invalid value \"" + *text + "\" for " + std::string(name) +
                 ": must be a duration such as 30s, 5m, 24h or 7d.");
  return parsed;
}

const ServerChoice& Invocation::server_choice() {
  if (!choice_) choice_ = choose_server(*this);
  return *choice_;
}

Remote& Invocation::server() {
  if (!server_) server_ = std::make_unique<Remote>(server_choice().options);
  return *server_;
}

config::Loaded Invocation::settings() const {
  config::Sources sources;
  sources.environment = environment_;
  for (const auto& [name, values] : given_) {
    if (!name.starts_with("--") || values.empty()) continue;
    if (name == "--config") {
      sources.file = values.back();
      continue;
    }
    std::string key = name.substr(2);
    std::replace(key.begin(), key.end(), '-', '_');
    if (config::find_setting(key) != nullptr) sources.flags[key] = values.back();
  }
  return config::load(sources);
}

void Invocation::confirm(const std::string& question) const {
  if (has("--yes") || !can_ask()) return;
  if (!ask(visible(question))) throw Declined("Canceled; nothing was changed.");
}

std::string read_text(const std::string& path) {
  if (path == "-") return {std::istreambuf_iterator<char>(std::cin), {}};
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file.is_open() || file.bad()) throw Misuse("The file " + path + " cannot be read.");
  return text;
}

std::string read_secret(const std::string& path) {
  std::string secret = read_text(path);
  while (!secret.empty() && (secret.back() == '\n' || secret.back() == '\r' || secret.back() == ' '))
    secret.pop_back();
  return secret;
}

json::value read_json(std::string_view name, const std::string& text) {
  json::error_code error;
  const std::string content = text.starts_with('@') ? read_text(text.substr(1)) : text;
  json::value value = json::parse(content, error);
  if (!error) return value;
  base::JsonScanner scanner(content);  // says where
  std::string_view whole;
  const bool is_well = scanner.value(whole) && scanner.finish();
  throw Misuse("Invalid JSON for " + std::string(name) + ": " +
               (is_well ? error.message() : scanner.error()) +
               ".\n  Quote it for the shell, as in '{\"amount\": 4200}', or read it from a file with @FILE.");
}

json::object with_reason(const Invocation& invocation, json::object body) {
  if (const auto reason = invocation.value("--reason")) body["reason"] = *reason;
  return body;
}

void add_filters(const Invocation& invocation, Target& target, std::initializer_list<const char*> filters) {
  for (const std::string filter : filters) {
    std::string option = "--" + filter;
    std::replace(option.begin(), option.end(), '_', '-');
    const bool is_time = filter == "since" || filter == "until";
    target.with(filter, is_time ? invocation.time(option) : invocation.value(option));
  }
}

}  // namespace postrider::cli
