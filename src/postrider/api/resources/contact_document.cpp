#include "postrider/api/resources/contact_document.hpp"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <set>
#include <string_view>
#include <utility>

#include "postrider/api/wire/json_writer.hpp"
#include "postrider/http/url.hpp"

namespace postrider::api {

namespace {

namespace json = boost::json;

constexpr size_t kContactsMax = 20;
constexpr size_t kMailMax = 254;

constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

bool consists_of(std::string_view text, std::string_view more) {
  return std::all_of(text.begin(), text.end(), [more](char c) {
    return kLetters.find(c) != std::string_view::npos || more.find(c) != std::string_view::npos;
  });
}

// The plain form of RFC 5321: no quotes, no comments, no address literals. Whether it exists only a mail
// shows.
bool is_mail_address(std::string_view text) {
  const size_t at = text.find('@');
  if (at == std::string_view::npos || at == 0 || text.size() > kMailMax) return false;
  const std::string_view local = text.substr(0, at), domain = text.substr(at + 1);
  return consists_of(local, ".!#$%&'*+/=?^_`{|}~-") && consists_of(domain, ".-") &&
         domain.find('.') != std::string_view::npos && !domain.starts_with('.') && !domain.ends_with('.');
}

// The address of an element, or no value after a problem was added.
std::optional<std::string> read_contact(Fields& fields, const json::value& element, size_t index,
                                        FieldProblems& problems) {
  const auto* text = element.if_string();
  std::string address(text ? std::string_view(*text) : std::string_view());
  if (const auto* object = element.if_object()) {
    const size_t problems_before = problems.size();
    Fields of_contact(*object, fields.pointer("contacts") + "/" + std::to_string(index), problems);
    std::optional<std::string> ignored;
    of_contact.require("address");
    of_contact.read("address", address, {.bytes_max = http::kUrlBytesMax});
    of_contact.read("confirmed_at", ignored, {.bytes_max = 64});
    of_contact.read("unsubscribed_at", ignored, {.bytes_max = 64});
    of_contact.finish();
    if (problems.size() > problems_before) return std::nullopt;
  }
  if (is_mail_address(address) || http::parse_url(address)) return address;
  fields.reject("contacts", index, "must be an e-mail address or a URL");
  return std::nullopt;
}

}  // namespace

void read_contacts(Fields& fields, std::optional<std::string>& contacts, FieldProblems& problems) {
  const auto* value = fields.take("contacts");
  if (!value) return;
  if (value->is_null()) return contacts.reset();
  const auto* array = value->if_array();
  if (!array || array->size() > kContactsMax)
    return fields.reject("contacts", "must be an array of at most " + std::to_string(kContactsMax) +
                                         " e-mail addresses or URLs");
  json::array addresses;
  std::set<std::string> seen;
  for (size_t i = 0; i < array->size(); ++i) {
    const std::optional<std::string> address = read_contact(fields, (*array)[i], i, problems);
    if (!address) continue;
    if (!seen.insert(registry::contact_key(*address)).second) fields.reject("contacts", i, "is listed twice");
    addresses.emplace_back(*address);
  }
  if (addresses.size() == array->size() && seen.size() == array->size())
    contacts = json::serialize(addresses);
}

std::string contact_json(const registry::Contact& contact) {
  JsonObject json;
  json.add("address", contact.address)
      .add("confirmed_at", contact.confirmed_at)
      .add("unsubscribed_at", contact.unsubscribed_at);
  return json.text();
}

}  // namespace postrider::api
