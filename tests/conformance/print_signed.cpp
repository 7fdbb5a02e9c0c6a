// Prints signed requests, one JSON object per line, for judge.mjs: the parts that a receiver sees, and its
// secrets.
#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <vector>

#include "postrider/base/encoding.hpp"
#include "postrider/base/time.hpp"
#include "postrider/delivery/attempt/sign.hpp"

namespace {

using namespace postrider;
using crypto::SignatureScheme;

struct Case {
  SignatureScheme scheme;
  int secrets;
  std::string body;
};

std::string json_list(const std::vector<std::string>& texts) {
  std::string out;
  for (const std::string& text : texts) out += (out.empty() ? "" : ",") + base::json_quoted(text);
  return "[" + out + "]";
}

void print(const Case& c, int number) {
  delivery::Signer signer{.scheme = c.scheme, .keys = {}};
  std::vector<std::string> secrets;
  std::vector<std::string> public_keys;
  for (int i = 0; i < c.secrets; ++i) {
    secrets.push_back(crypto::generate_secret(c.scheme));
    auto key = crypto::SigningKey::from_secret(c.scheme, secrets.back());
    public_keys.push_back(key->public_text());
    signer.keys.push_back(std::move(key).value());
  }
  const std::string event_id = fmt::format("evt_{:032x}", number);
  const std::string delivery_id = fmt::format("dlv_{:032x}", number);
  const auto now = std::chrono::duration_cast<std::chrono::seconds>(base::wall_now().time_since_epoch());
  std::string head;
  const bool is_signed = delivery::append_signature_headers(head, signer,
                                                            {.event_id = event_id,
                                                             .delivery_id = delivery_id,
                                                             .unix_seconds = now.count(),
                                                             .attempt = number + 1,
                                                             .body = c.body});
  CHECK(is_signed);
  fmt::print("{{\"scheme\":{},\"secrets\":{},\"public_keys\":{},\"head\":{},\"body_base64\":{}}}\n",
             base::json_quoted(crypto::label(c.scheme)), json_list(secrets), json_list(public_keys),
             base::json_quoted(head), base::json_quoted(base::base64_encode(c.body)));
}

}  // namespace

int main() {
  const std::string bodies[] = {
      "{}",
      R"({"id":"evt_1","type":"invoice.paid","data":{"amount":19.99,"big":12345678901234567890}})",
      "{\"data\":\"gr\u00fc\u00dfe \u65e5\u672c\u8a9e \U0001F4EE \\u0000 \\ud83d\"}",
      "{\"data\":\"" + std::string(200'000, 'x') + "\"}",
  };
  int number = 0;
  for (const auto scheme : {SignatureScheme::standard, SignatureScheme::standard_ed25519,
                            SignatureScheme::hex_v1, SignatureScheme::sha256})
    for (const int secrets : {1, 2, 3})
      for (const std::string& body : bodies)
        print({.scheme = scheme, .secrets = secrets, .body = body}, number++);
}
