// A request comes to the same, whatever the pieces it arrives in; and what is accepted has a path and one
// Host.
#include <algorithm>
#include <string>

#include "fuzz.hpp"
#include "postrider/http/server/request_reader.hpp"

using namespace postrider::http;

namespace {

std::string read(std::string_view input, size_t piece) {
  RequestReader reader({.bytes_max = 2048, .fields_max = 20, .target_bytes_max = 512});
  std::string kept;  // a body in one piece is not copied: its bytes must stay
  kept.reserve(input.size());
  std::string result;
  in_pieces(input, piece, [&](std::string_view bytes) {
    while (!bytes.empty()) {
      const size_t taken = reader.feed(bytes);
      CHECK(taken <= bytes.size());
      bytes.remove_prefix(taken);
      if (reader.stage() == RequestReader::Stage::decide) {
        const Request& request = reader.request();
        CHECK(request.path.starts_with('/') || request.path == "*");
        const auto is_host = [](const Field& field) {
          return field.name.size() == 4 && (field.name[0] | 0x20) == 'h' && (field.name[1] | 0x20) == 'o' &&
                 (field.name[2] | 0x20) == 's' && (field.name[3] | 0x20) == 't';
        };
        CHECK(reader.is_http_1_0() ||
              std::count_if(request.fields.begin(), request.fields.end(), is_host) == 1);
        result += std::string(method_name(request.method)) + " " + std::string(request.path) + " " +
                  std::to_string(request.fields.size()) + (reader.keeps_alive() ? "+" : "-");
        reader.accept_body(512);
      }
      if (reader.stage() == RequestReader::Stage::rejected) {
        result += " rejected " + std::to_string(reader.rejection().status);
        return false;
      }
      if (reader.stage() == RequestReader::Stage::complete) {
        CHECK(reader.request().body.size() <= 512);
        result += " body " + std::string(reader.request().body) + "\n";
        reader.reset();
      } else if (taken == 0) {
        CHECK(!"a reader that takes nothing and wants nothing would spin");
      }
    }
    return true;
  });
  return result;
}

}  // namespace

void fuzz_one(std::string_view input) {
  const std::string whole = read(input, input.size() + 1);
  for (const size_t piece : {1u, 7u}) CHECK(read(input, piece) == whole);
}
