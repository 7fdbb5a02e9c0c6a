#include "postrider/cli/invocation.hpp"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <utility>

#include "postrider/cli/command.hpp"
#include "postrider/cli/profiles.hpp"
#include "postrider/config/settings.hpp"
#include "postrider/publish/json_scanner.hpp"

namespace postrider::cli {

namespace {

constexpr int64_t kRowsDefault = 50;
constexpr int64_t kPageMax = 250;

std::string trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) text.pop_back();
  return text;
}

std::optional<std::string> variable(const config::Environment& environment, const std::string& name) {
  const auto found = environment.find(name);
  if (found == environment.end() || found->second.empty()) return std::nullopt;
  return found->second;
}

// What was given here and now wins over the profile; flags win over the environment.
ServerOptions choose_server(const Invocation& in) {
  const config::Environment& environment = in.environment();
  const auto either = [&](const char* flag, const char* name) {
    const auto value = in.value(flag);
    return value ? value : variable(environment, name);
  };
  ServerOptions options;
  const Profiles profiles = load_profiles(profiles_path(environment));
  const auto named = either("--profile", "POSTRIDER_PROFILE");
  const std::string profile = named.value_or(profiles.current);
  if (const auto found = profiles.servers.find(profile); found != profiles.servers.end())
    options = found->second;
  else if (named)
    throw Misuse("There is no profile `" + *named + "`; `postrider profile list` shows those there are.");

  if (const auto url = either("--server", "POSTRIDER_SERVER")) {
    if (*url != options.url) options.key.clear();  // a profile's key is for the profile's server alone
    options.url = *url;
  }
  if (const auto file = either("--key-file", "POSTRIDER_KEY_FILE")) options.key = trimmed(read_text(*file));
  if (const auto key = variable(environment, "POSTRIDER_KEY"); key && !in.has("--key-file"))
    options.key = *key;
  if (const auto key = in.value("--key")) options.key = *key;
  if (options.key.empty())
    if (const auto key = variable(environment, "POSTRIDER_ADMIN_KEY")) options.key = *key;
  if (const auto file = in.value("--ca-file")) options.ca_file = *file;
  return options;
}

template <class Number>
Number parse_number(std::string_view name, const std::string& text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    throw Misuse(std::string(name) + " must be a number, not `" + text + "`.");
  return number;
}

// NAME=VALUE or, as headers are written, NAME: VALUE.
void add_pair(const Field& field, std::string_view pair, json::object& pairs) {
  const size_t at = pair.find_first_of("=:");
  if (at == std::string_view::npos || at == 0) throw Misuse(field.option + " wants NAME=VALUE.");
  std::string_view value = pair.substr(at + 1);
  if (pair[at] == ':')
    while (value.starts_with(' ')) value.remove_prefix(1);
  pairs[pair.substr(0, at)] = value;
}

json::value field_value(const Field& field, const std::vector<std::string>& given) {
  const std::string& last = given.back();
  if (field.kind != Field::Kind::text && last == "none") return nullptr;
  switch (field.kind) {
    case Field::Kind::text:
      return json::value(last);
    case Field::Kind::integer:
      return parse_number<int64_t>(field.option, last);
    case Field::Kind::number:
      return parse_number<double>(field.option, last);
    case Field::Kind::json:
      return read_json(field.option, last);
    case Field::Kind::words: {
      json::array words;
      for (const std::string& word : given) words.emplace_back(word);
      return words;
    }
    case Field::Kind::pairs: {
      json::object pairs;
      for (const std::string& pair : given) add_pair(field, pair, pairs);
      return pairs;
    }
  }
  return nullptr;
}

}  // namespace

Invocation::Invocation(Given given, config::Environment environment)
    : given_(std::move(given)), environment_(std::move(environment)), out_(given_.contains("--json")) {}

Invocation::~Invocation() = default;

std::string Invocation::argument(std::string_view name) const {
  const auto found = value(name);
  if (!found) throw Misuse("<" + std::string(name) + "> is missing.");
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
  return parse_number<int64_t>(name, *text);
}

Remote& Invocation::server() {
  if (!server_) server_ = std::make_unique<Remote>(choose_server(*this));
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

std::string read_text(const std::string& path) {
  if (path == "-") return {std::istreambuf_iterator<char>(std::cin), {}};
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file.is_open() || file.bad()) throw Misuse("The file " + path + " cannot be read.");
  return text;
}

json::value read_json(std::string_view name, const std::string& text) {
  json::error_code error;
  const std::string content = text.starts_with('@') ? read_text(text.substr(1)) : text;
  json::value value = json::parse(content, error);
  if (!error) return value;
  publish::JsonScanner scanner(content);  // says where
  std::string_view whole;
  const bool is_well = scanner.value(whole) && scanner.finish();
  throw Misuse(std::string(name) +
               " must be JSON, or @FILE with JSON: " + (is_well ? error.message() : scanner.error()) + ".");
}

std::string Field::name() const {
  if (!field.empty()) return field;
  std::string same = option.substr(2);
  std::replace(same.begin(), same.end(), '-', '_');
  return same;
}

std::vector<Parameter> field_parameters(const std::vector<Field>& fields) {
  std::vector<Parameter> parameters;
  for (const Field& field : fields) {
    static constexpr const char* kNames[] = {"TEXT", "NUMBER", "NUMBER", "WORD", "JSON", "NAME=VALUE"};
    const bool is_list = field.kind == Field::Kind::words || field.kind == Field::Kind::pairs;
    Parameter parameter{is_list ? Parameter::Kind::list : Parameter::Kind::option, field.option, field.help,
                        kNames[static_cast<size_t>(field.kind)], field.choices};
    parameters.push_back(std::move(parameter));
  }
  return parameters;
}

void set_fields(const Invocation& invocation, const std::vector<Field>& fields, json::object& document) {
  for (const Field& field : fields) {
    const std::vector<std::string> given = invocation.values(field.option);
    if (!given.empty()) document[field.name()] = field_value(field, given);
  }
}

json::object read_document(const Invocation& invocation, const std::vector<Field>& fields) {
  json::object document;
  if (const auto path = invocation.value("--file")) {
    json::value whole = read_json("--file", "@" + *path);
    if (!whole.is_object()) throw Misuse("--file must hold a JSON object.");
    document = std::move(whole.get_object());
  }
  set_fields(invocation, fields, document);
  return document;
}

std::vector<Parameter> list_parameters() {
  return {option("--limit", "N", "Rows at most. Default: 50."), flag("--all", "Every row, page by page"),
          option("--cursor", "CURSOR", "Go on where an earlier list ended")};
}

namespace {

// The server's bytes as they come. Whoever reads them must be able to tell a part from the whole.
int write_export(Invocation& invocation, Target target, const std::string& format) {
  RemoteCall call{"GET", target.with("format", format)};
  call.timeout = std::chrono::hours(24);
  call.silence_max = std::chrono::minutes(2);
  const bool is_whole = invocation.server().stream(
      call, [](std::string_view data) { std::fwrite(data.data(), 1, data.size(), stdout); });
  std::fflush(stdout);
  if (!is_whole) throw ServerUnreachable("The export broke off: what was written is not all of it.");
  return done;
}

}  // namespace

int show_list(Invocation& invocation, Target target, const std::vector<Column>& columns) {
  if (const auto format = invocation.value("--format"))
    return write_export(invocation, std::move(target), *format);
  const bool wants_all = invocation.has("--all");
  const int64_t rows_max = invocation.integer("--limit").value_or(kRowsDefault);
  if (rows_max < 1) throw Misuse("--limit must be 1 or more.");
  json::array rows;
  json::value last;
  std::optional<std::string> cursor = invocation.value("--cursor");
  while (true) {
    const int64_t wanted = wants_all ? kPageMax : rows_max - static_cast<int64_t>(rows.size());
    Target page = target;
    page.with("limit", std::to_string(std::min(wanted, kPageMax))).with("cursor", cursor);
    last = invocation.server().get(page);
    for (json::value& row : last.at("data").as_array()) rows.push_back(std::move(row));
    const json::value* next = last.as_object().if_contains("next_cursor");
    cursor = next ? std::optional(std::string(next->as_string())) : std::nullopt;
    if (!cursor || (!wants_all && static_cast<int64_t>(rows.size()) >= rows_max)) break;
  }
  last.as_object()["data"] = std::move(rows);
  invocation.out().list(last, columns);
  if (cursor) invocation.out().note("There is more: --cursor " + *cursor + ", or --all.");
  return done;
}

}  // namespace postrider::cli
