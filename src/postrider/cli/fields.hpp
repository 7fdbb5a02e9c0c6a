// Options that become fields of a request body.
#pragma once

#include <string>
#include <vector>

#include "postrider/cli/invocation.hpp"

namespace postrider::cli {

struct Field {
  enum class Kind { text, integer, number, words, json, pairs, yes_no, seconds, milliseconds, time };
  Kind kind = Kind::text;
  std::string option;  // "--max-in-flight"
  std::string help;
  std::vector<std::string> choices = {};
  std::string field = {};  // the API's name, if it is not the option's with underscores
  std::string value_name = {};

  std::string name() const;
};

std::vector<Parameter> field_parameters(const std::vector<Field>& fields);
// The same, with those of these names marked as required.
std::vector<Parameter> field_parameters(const std::vector<Field>& fields,
                                        const std::vector<std::string>& required);
// Adds the given options to the document; `none` is null, except for a text.
void set_fields(const Invocation& invocation, const std::vector<Field>& fields, json::object& document);
// --file FILE, then the fields over it.
json::object read_document(const Invocation& invocation, const std::vector<Field>& fields);
// --secret-file, as the field `secret`: a secret on the command line would be visible in the process list.
void set_secret(const Invocation& invocation, json::object& body);

}  // namespace postrider::cli
