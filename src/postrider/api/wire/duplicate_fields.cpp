#include "postrider/api/wire/duplicate_fields.hpp"

#include <boost/json/parse.hpp>
#include <set>
#include <vector>

#include "postrider/base/encoding.hpp"

namespace postrider::api {

namespace {

// An object or array that is open, and where in it we are.
struct Level {
  bool is_object;
  std::set<std::string> names;  // of an object
  std::string name;             // of the member that is being read
  size_t index = 0;             // of an array's element
  bool expects_name = true;     // of an object: the next string is a name
};

std::string pointer_to(const std::vector<Level>& levels) {
  std::string pointer;
  for (const Level& level : levels)
    pointer += "/" + (level.is_object ? base::json_pointer_token(level.name) : std::to_string(level.index));
  return pointer;
}

// The string that begins at text[at], quotes included; `at` is moved behind it.
std::string_view take_string(std::string_view text, size_t& at) {
  const size_t begin = at++;
  while (text[at] != '"') at += text[at] == '\\' ? 2 : 1;
  return text.substr(begin, ++at - begin);
}

std::string decoded(std::string_view quoted) {
  if (quoted.find('\\') == std::string_view::npos) return std::string(quoted.substr(1, quoted.size() - 2));
  return std::string(boost::json::parse(quoted).as_string());
}

}  // namespace

std::optional<std::string> find_duplicate_field(std::string_view json) {
  std::vector<Level> levels;
  for (size_t at = 0; at < json.size();) {
    const char c = json[at];
    if (c == '"') {
      const std::string_view quoted = take_string(json, at);
      if (levels.empty() || !levels.back().is_object || !levels.back().expects_name) continue;
      Level& object = levels.back();
      object.name = decoded(quoted);
      object.expects_name = false;
      if (!object.names.insert(object.name).second) return pointer_to(levels);
      continue;
    }
    if (c == '{' || c == '[') levels.push_back({c == '{', {}, {}, 0, true});
    if (c == '}' || c == ']') levels.pop_back();
    if (c == ',') {
      levels.back().expects_name = true;
      ++levels.back().index;
    }
    ++at;
  }
  return std::nullopt;
}

}  // namespace postrider::api
