// A schema and an instance, apart by a line of `---`: hostile ones neither crash nor hang the validator.
#include <boost/json/parse.hpp>
#include <string>

#include "fuzz.hpp"
#include "postrider/schema/schema.hpp"

using namespace postrider;

void fuzz_one(std::string_view input) {
  const size_t gap = input.find("\n---\n");
  const std::string_view text = input.substr(0, gap);
  const std::string_view instance = gap == std::string_view::npos ? "{}" : input.substr(gap + 5);
  const auto compiled = schema::Schema::compile(text);
  if (!compiled) return;
  boost::json::error_code error;
  const boost::json::value value = boost::json::parse(instance, error);
  if (!error) (void)compiled->check(value);
}
