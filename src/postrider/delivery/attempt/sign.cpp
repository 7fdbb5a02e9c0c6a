#include "postrider/delivery/attempt/sign.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "postrider/base/check.hpp"
#include "postrider/http/client/client.hpp"

namespace postrider::delivery {
namespace {

using crypto::SignatureScheme;
using crypto::SigningKey;
using http::append_header;

// A number as text without an allocation.
class Digits {
 public:
  explicit Digits(int64_t number) {
    length_ = static_cast<size_t>(std::to_chars(text_.data(), text_.data() + text_.size(), number).ptr -
                                  text_.data());
  }
  std::string_view view() const { return {text_.data(), length_}; }

 private:
  std::array<char, 20> text_;
  size_t length_;
};

void append_hex(std::string& out, std::string_view bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    out += digits[byte >> 4];
    out += digits[byte & 15];
  }
}

void append_base64(std::string& out, std::string_view bytes) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k)
      group = group << 8 | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    for (size_t k = 0; k < 4; ++k) out += k <= count ? digits[group >> (18 - 6 * k) & 63] : '=';
  }
}

bool append_standard(std::string& head, const Signer& signer, const SignInput& input,
                     std::string_view timestamp) {
  const bool is_good = append_header(head, "webhook-id", input.event_id) &&
                       append_header(head, "webhook-timestamp", timestamp);
  if (!is_good) return false;
  head.append("webhook-signature: ");
  // The oldest first: a receiver that reads only one entry has not changed its secret yet either.
  for (auto key_at = signer.keys.rbegin(); key_at != signer.keys.rend(); ++key_at) {
    const SigningKey& key = *key_at;
    if (key_at != signer.keys.rbegin()) head += ' ';
    if (key.is_asymmetric()) {
      // Ed25519 reads the message twice, so it needs it in one piece.
      thread_local std::string message;
      message.assign(input.event_id).append(".").append(timestamp).append(".").append(input.body);
      append_base64(head.append("v1a,"), key.ed25519().sign(message).view());
    } else {
      const auto digest =
          crypto::hmac_sha256(key.hmac_key(), {input.event_id, ".", timestamp, ".", input.body});
      append_base64(head.append("v1,"), digest.view());
    }
  }
  head.append("\r\n");
  return true;
}

void append_hex_signatures(std::string& head, const Signer& signer, const SignInput& input,
                           std::string_view timestamp) {
  const std::string_view prefix = signer.scheme == SignatureScheme::hex_v1 ? "v1=" : "sha256=";
  const auto append = [&](std::string_view name, const SigningKey& key) {
    head.append(name).append(": ").append(prefix);
    append_hex(head, crypto::hmac_sha256(key.hmac_key(), {timestamp, ".", input.body}).view());
    head.append("\r\n");
  };
  append("x-webhook-signature", signer.keys.back());
  if (signer.keys.size() > 1) append("x-webhook-signature-next", signer.keys.front());
}

}  // namespace

bool append_signature_headers(std::string& head, const Signer& signer, const SignInput& input) {
  CHECK(!signer.keys.empty());
  const Digits timestamp(input.unix_seconds);
  bool is_good = false;
  switch (signer.scheme) {
    case SignatureScheme::standard:
    case SignatureScheme::standard_ed25519:
      is_good = append_standard(head, signer, input, timestamp.view());
      break;
    case SignatureScheme::hex_v1:
      is_good = append_header(head, "x-webhook-event-id", input.event_id) &&
                append_header(head, "x-webhook-delivery-id", input.delivery_id) &&
                append_header(head, "x-webhook-timestamp", timestamp.view());
      append_hex_signatures(head, signer, input, timestamp.view());
      break;
    case SignatureScheme::sha256:
      is_good = append_header(head, "x-webhook-id", input.event_id) &&
                append_header(head, "x-webhook-timestamp", timestamp.view());
      append_hex_signatures(head, signer, input, timestamp.view());
      break;
  }
  return is_good && append_header(head, "webhook-attempt", Digits(input.attempt).view()) &&
         append_header(head, "webhook-delivery-id", input.delivery_id);
}

}  // namespace postrider::delivery
