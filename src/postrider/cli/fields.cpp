#include "postrider/cli/fields.hpp"

#include <algorithm>
#include <boost/json/array.hpp>
#include <charconv>

#include "postrider/cli/human.hpp"

namespace postrider::cli {

namespace {

template <class Number>
Number parse_number(const std::string& name, const std::string& text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    throw Misuse("Invalid value \"" + text + "\" for " + name + ": expected a number.");
  return number;
}

// NAME=VALUE or, as headers are written, NAME: VALUE.
void add_pair(const Field& field, std::string_view pair, json::object& pairs) {
  const size_t at = pair.find_first_of("=:");
  if (at == std::string_view::npos || at == 0)
    throw Misuse("Invalid value \"" + std::string(pair) + "\" for " + field.option +
                 ": expected NAME=VALUE.");
  std::string_view value = pair.substr(at + 1);
  if (pair[at] == ':')
    while (value.starts_with(' ')) value.remove_prefix(1);
  pairs[pair.substr(0, at)] = value;
}

json::value list_value(const Field& field, const std::vector<std::string>& given) {
  if (field.kind == Field::Kind::words) {
    json::array words;
    for (const std::string& word : given) words.emplace_back(word);
    return words;
  }
  json::object pairs;
  for (const std::string& pair : given) add_pair(field, pair, pairs);
  return pairs;
}

json::value field_value(const Invocation& in, const Field& field, const std::vector<std::string>& given) {
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
    case Field::Kind::yes_no:
      return last == "true";
    case Field::Kind::seconds:
      return std::chrono::duration_cast<std::chrono::seconds>(*in.duration(field.option)).count();
    case Field::Kind::milliseconds:
      return in.duration(field.option)->count();
    case Field::Kind::time:
      return json::value(*in.time(field.option));
    case Field::Kind::words:
    case Field::Kind::pairs:
      return list_value(field, given);
  }
  return nullptr;
}

std::string value_name_of(const Field& field) {
  if (!field.value_name.empty()) return field.value_name;
  switch (field.kind) {
    case Field::Kind::integer:
    case Field::Kind::number:
      return "N";
    case Field::Kind::json:
      return "JSON";
    case Field::Kind::pairs:
      return "NAME=VALUE";
    case Field::Kind::seconds:
    case Field::Kind::milliseconds:
      return "DURATION";
    case Field::Kind::time:
      return "TIME";
    default:
      return "TEXT";
  }
}

}  // namespace

std::string Field::name() const {
  if (!field.empty()) return field;
  std::string same = option.substr(2);
  std::replace(same.begin(), same.end(), '-', '_');
  return same;
}

std::vector<Parameter> field_parameters(const std::vector<Field>& fields) {
  return field_parameters(fields, {});
}

std::vector<Parameter> field_parameters(const std::vector<Field>& fields,
                                        const std::vector<std::string>& required) {
  std::vector<Parameter> parameters;
  for (const Field& field : fields) {
    const bool is_list = field.kind == Field::Kind::words || field.kind == Field::Kind::pairs;
    Parameter parameter{is_list ? Parameter::Kind::list : Parameter::Kind::option, field.option, field.help,
                        value_name_of(field), field.choices};
    if (field.kind == Field::Kind::yes_no) parameter.choices = {"true", "false"};
    parameter.field = field.name();
    parameter.is_required = std::count(required.begin(), required.end(), field.option) > 0;
    parameters.push_back(std::move(parameter));
  }
  return parameters;
}

void set_fields(const Invocation& invocation, const std::vector<Field>& fields, json::object& document) {
  for (const Field& field : fields) {
    const std::vector<std::string> given = invocation.values(field.option);
    if (!given.empty()) document[field.name()] = field_value(invocation, field, given);
  }
}

json::object read_document(const Invocation& invocation, const std::vector<Field>& fields) {
  json::object document;
  if (const auto path = invocation.value("--file")) {
    json::value whole = read_json("--file", "@" + *path);
    if (!whole.is_object()) throw Misuse("--file must contain a JSON object.");
    document = std::move(whole.get_object());
  }
  set_fields(invocation, fields, document);
  return document;
}

void set_secret(const Invocation& invocation, json::object& body) {
  if (const auto file = invocation.value("--secret-file")) body["secret"] = read_secret(*file);
}

}  // namespace postrider::cli
