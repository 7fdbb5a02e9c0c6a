#include "postrider/pg/display_url.hpp"

#include <libpq-fe.h>

#include <map>
#include <memory>
#include <string_view>

namespace postrider::pg {

std::optional<std::string> display_url(const std::string& url) {
  const std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)> options(
      PQconninfoParse(url.c_str(), nullptr), &PQconninfoFree);
  if (!options) return std::nullopt;
  std::map<std::string_view, std::string> given;
  for (const PQconninfoOption* option = options.get(); option->keyword != nullptr; ++option)
    if (option->val != nullptr) given[option->keyword] = option->val;
  std::string shown = "postgresql://";
  if (given.contains("user")) shown += given["user"] + "@";
  shown += given.contains("host") ? given["host"] : given["hostaddr"];
  if (given.contains("port")) shown += ":" + given["port"];
  return shown + "/" + given["dbname"];
}

}  // namespace postrider::pg
