// Cursors that callers may forge: rejected, or a plain key that gives the same cursor again.
#include <string>

#include "fuzz.hpp"
#include "postrider/api/wire/page.hpp"

using namespace postrider;

namespace {

std::string after(const std::string& cursor, bool& is_good) {
  http::Request request;
  request.query.push_back({"cursor", cursor});
  api::Query query(request);
  std::string key = query.after();
  is_good = query.finish().empty();
  return key;
}

}  // namespace

void fuzz_one(std::string_view input) {
  bool is_good = false;
  for (const std::string& cursor : {std::string(input), "c1_" + std::string(input)}) {
    const std::string key = after(cursor, is_good);
    if (!is_good) continue;
    CHECK(!key.empty());
    for (const char c : key) CHECK(c > 0x20 && c < 0x7F);
    CHECK(after(api::make_cursor(key), is_good) == key && is_good);
  }
}
