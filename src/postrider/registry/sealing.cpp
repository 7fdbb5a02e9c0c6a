#include "postrider/registry/sealing.hpp"

#include <boost/json.hpp>

namespace postrider::registry {

namespace {

namespace json = boost::json;

// Both as rotate_master.sql builds them.
std::string secret_context(model::EndpointId endpoint, model::SecretId secret) {
  return "endpoint_secret/" + endpoint.uuid.text() + "/" + secret.uuid.text();
}

std::string headers_context(model::EndpointId endpoint) {
  return "endpoint_headers/" + endpoint.uuid.text();
}

}  // namespace

std::string Sealing::seal_secret(model::SecretId id, std::string_view secret) const {
  return keys.seal(crypto::Purpose::stored_secret, secret, secret_context(endpoint, id));
}

base::Result<std::string, crypto::OpenError> Sealing::open_secret(model::SecretId id,
                                                                  std::string_view sealed) const {
  return keys.open(crypto::Purpose::stored_secret, sealed, secret_context(endpoint, id));
}

std::string Sealing::seal_headers(const CustomHeaders& headers) const {
  json::object object;
  for (const auto& [name, value] : headers) object.emplace(name, value);
  return keys.seal(crypto::Purpose::stored_secret, json::serialize(object), headers_context(endpoint));
}

base::Result<CustomHeaders, crypto::OpenError> Sealing::open_headers(std::string_view sealed) const {
  auto text = keys.open(crypto::Purpose::stored_secret, sealed, headers_context(endpoint));
  if (!text) return base::Failure{text.error()};
  CustomHeaders headers;
  // The authentication tag proves that seal_headers wrote this.
  const json::value document = json::parse(*text);
  for (const auto& [name, value] : document.as_object())
    headers.push_back({std::string(name), std::string(value.as_string())});
  return headers;
}

}  // namespace postrider::registry
