// The cost of validating an event by its schema: parsing the data and checking it, per event, on one core.
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "postrider/registry/catalogue.hpp"

namespace {

using postrider::registry::Catalogue;
using postrider::registry::EventType;
using postrider::registry::Validation;

constexpr const char* kSchema = R"({
  "type": "object", "required": ["id", "amount", "currency", "customer", "lines"], "additionalProperties": false,
  "properties": {
    "id": {"type": "string", "pattern": "^in_[a-z0-9]+$"},
    "amount": {"type": "integer", "minimum": 0},
    "currency": {"enum": ["eur", "usd", "gbp"]},
    "customer": {"$ref": "#/$defs/customer"},
    "lines": {"type": "array", "items": {"$ref": "#/$defs/line"}, "maxItems": 1000}},
  "$defs": {
    "customer": {"type": "object", "required": ["id"],
                 "properties": {"id": {"type": "string"}, "email": {"type": "string", "maxLength": 200}}},
    "line": {"type": "object", "required": ["sku", "count"],
             "properties": {"sku": {"type": "string", "maxLength": 40}, "count": {"type": "integer", "minimum": 1}}}}})";

std::string event_data(int lines) {
  std::string text =
      R"({"id":"in_8c1f0a","amount":4200,"currency":"eur","customer":{"id":"cus_1","email":"a@b.example"},"lines":[)";
  for (int i = 0; i < lines; ++i) text += std::string(i ? "," : "") + R"({"sku":"A-100-BLUE","count":2})";
  return text + "]}";
}

double microseconds_per_event(const Catalogue& catalogue, const std::string& data, int rounds) {
  const auto start = std::chrono::steady_clock::now();
  size_t fine = 0;
  for (int i = 0; i < rounds; ++i)
    fine += catalogue.validate({"invoice.paid", std::nullopt, data}, false).violations.empty() ? 1 : 0;
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
  if (fine != static_cast<size_t>(rounds) && fine != 0) std::abort();
  return took.count() / rounds;
}

}  // namespace

int main() {
  EventType type;
  type.name = "invoice.paid";
  type.settings.versions = {{"1", kSchema, std::nullopt, std::nullopt}};
  for (const Validation validation : {Validation::off, Validation::reject}) {
    type.settings.validation = validation;
    const Catalogue catalogue({type}, nullptr);
    for (const int lines : {5, 30, 300}) {
      const std::string data = event_data(lines);
      microseconds_per_event(catalogue, data, 1'000);
      std::printf("%-7s %6zu bytes  %8.3f us per event\n", std::string(label(validation)).c_str(),
                  data.size(), microseconds_per_event(catalogue, data, 20'000));
    }
  }
  return 0;
}
