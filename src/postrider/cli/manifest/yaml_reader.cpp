#include <yaml-cpp/yaml.h>

#include <boost/json/array.hpp>
#include <charconv>

#include "postrider/cli/manifest/manifest.hpp"

namespace postrider::cli {

namespace {

namespace json = boost::json;

// Aliases are copied, so that a small file could become a large document.
constexpr size_t kNodesMax = 1'000'000;

[[noreturn]] void fail(const YAML::Mark& mark, const std::string& what) {
  throw ManifestError("line " + std::to_string(mark.line + 1) + ": " + what);
}

template <class Number>
bool read_number(std::string_view text, json::value& into) {
  Number number{};
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return false;
  into = number;
  return true;
}

bool is_number_like(std::string_view text) {
  return text.find_first_not_of("+-.0123456789eE") == std::string_view::npos &&
         text.find_first_of("0123456789") != std::string_view::npos;
}

json::value plain_scalar(const std::string& text) {
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") return nullptr;
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  json::value number;
  if (read_number<int64_t>(text, number)) return number;
  if (is_number_like(text) && read_number<double>(text, number)) return number;
  return json::value(text);
}

class Reader {
 public:
  json::value read(const YAML::Node& node) {
    if (++nodes_ > kNodesMax) fail(node.Mark(), "the document has more than a million values");
    switch (node.Type()) {
      case YAML::NodeType::Scalar:
        return node.Tag() == "?" ? plain_scalar(node.Scalar()) : json::value(node.Scalar());
      case YAML::NodeType::Sequence:
        return read_sequence(node);
      case YAML::NodeType::Map:
        return read_map(node);
      default:
        return nullptr;
    }
  }

 private:
  json::array read_sequence(const YAML::Node& node) {
    json::array array;
    for (const YAML::Node& item : node) array.push_back(read(item));
    return array;
  }

  json::object read_map(const YAML::Node& node) {
    json::object object;
    for (const auto& member : node) {
      if (!member.first.IsScalar()) fail(member.first.Mark(), "a key must be a string");
      const std::string& key = member.first.Scalar();
      if (object.contains(key)) fail(member.first.Mark(), "the key `" + key + "` is repeated");
      object.emplace(key, read(member.second));
    }
    return object;
  }

  size_t nodes_ = 0;
};

}  // namespace

json::value parse_yaml(const std::string& text) {
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(text);
    if (documents.size() > 1) throw ManifestError("the file has several documents; one is expected");
    return documents.empty() ? json::value() : Reader().read(documents.front());
  } catch (const YAML::Exception& error) {
    fail(error.mark, error.msg);
  }
}

}  // namespace postrider::cli
