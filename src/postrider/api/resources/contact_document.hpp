// Contacts as JSON, in requests and responses.
#pragma once

#include <optional>
#include <string>

#include "postrider/api/wire/document.hpp"
#include "postrider/registry/contacts.hpp"

namespace postrider::api {

// `contacts` of a tenant: addresses, as plain strings or as the objects that a tenant shows. Stored as a JSON
// array of strings. The state in an object is not read: a caller cannot confirm an address by writing it.
void read_contacts(Fields& fields, std::optional<std::string>& contacts, FieldProblems& problems);

std::string contact_json(const registry::Contact& contact);

}  // namespace postrider::api
