#include "postrider/cli/verify.hpp"

#include <algorithm>
#include <charconv>

#include "postrider/base/encoding.hpp"
#include "postrider/cli/body_variants.hpp"
#include "postrider/cli/verify_provider.hpp"
#include "postrider/crypto/digest.hpp"
#include "postrider/crypto/ed25519.hpp"

namespace postrider::cli {

namespace {

using crypto::SignatureScheme;

constexpr size_t kEntriesMax = 20;

// The headers that a scheme reads, and the text that it signs.
struct Parts {
  std::string id, timestamp, body;
};

class Check {
 public:
  Check(const SignedRequest& request, SignatureReport& report) : request_(request), report_(report) {}

  void run() {
    scheme_ = request_.scheme.value_or(guessed());
    report_.scheme = std::string(crypto::label(scheme_));
    const bool has_all =
        is_standard() ? read("webhook-id", "webhook-timestamp", "webhook-signature")
                      : read(scheme_ == SignatureScheme::hex_v1 ? "x-webhook-event-id" : "x-webhook-id",
                             "x-webhook-timestamp", "x-webhook-signature");
    if (!has_all || !read_key()) return;
    check_time();
    const bool matches = std::any_of(entries_.begin(), entries_.end(),
                                     [this](const std::string& entry) { return fits(entry, parts_); });
    report_.is_valid = matches && report_.findings.empty();
    if (!matches) explain();
  }

 private:
  bool is_standard() const {
    return scheme_ == SignatureScheme::standard || scheme_ == SignatureScheme::standard_ed25519;
  }
  std::string_view prefix() const {
    switch (scheme_) {
      case SignatureScheme::standard:
        return "v1,";
      case SignatureScheme::standard_ed25519:
        return "v1a,";
      case SignatureScheme::hex_v1:
        return "v1=";
      case SignatureScheme::sha256:
        return "sha256=";
    }
    return "";
  }
  void say(std::string sentence) { report_.findings.push_back(std::move(sentence)); }

  SignatureScheme guessed() const {
    const auto& headers = request_.headers;
    if (headers.contains("x-webhook-event-id")) return SignatureScheme::hex_v1;
    if (headers.contains("x-webhook-signature")) return SignatureScheme::sha256;
    const bool is_asymmetric = request_.secret.starts_with("whpk_") || request_.secret.starts_with("whsk_");
    return is_asymmetric ? SignatureScheme::standard_ed25519 : SignatureScheme::standard;
  }

  bool read(const char* id, const char* timestamp, const char* signature) {
    const auto find = [this](const char* name) -> std::string {
      const auto found = request_.headers.find(name);
      if (found != request_.headers.end()) return found->second;
      say(std::string("The header ") + name + " is missing.");
      return "";
    };
    parts_ = {find(id), find(timestamp), request_.body};
    std::string text = find(signature);
    if (const auto next = request_.headers.find("x-webhook-signature-next");
        !is_standard() && next != request_.headers.end())
      text += " " + next->second;
    for (size_t at = 0; at < text.size() && entries_.size() < kEntriesMax;) {
      const size_t end = std::min(text.find(' ', at), text.size());
      const std::string entry = text.substr(at, end - at);
      if (entry.starts_with(prefix())) entries_.push_back(entry.substr(prefix().size()));
      at = end + 1;
    }
    if (!report_.findings.empty()) return false;
    if (entries_.empty())
      say("The signature header has no entry that begins with " + std::string(prefix()) +
          ", as this scheme requires.");
    return !entries_.empty();
  }

  bool read_key() {
    if (request_.secret.starts_with("whpk_")) {
      const auto bytes = base::base64_decode(std::string_view(request_.secret).substr(5));
      if (bytes) public_key_ = *bytes;
      if (!bytes || bytes->size() != 32)
        say("The public key is invalid: expected whpk_ and the base64 of 32 bytes.");
      return report_.findings.empty();
    }
    const auto key = crypto::SigningKey::from_secret(scheme_, request_.secret);
    if (!key.ok()) {
      explain_unusable_secret(key.error());
      return false;
    }
    if (key->is_asymmetric())
      public_key_ = std::string(key->ed25519().public_key().view());
    else
      hmac_key_ = key->hmac_key();
    return true;
  }

  void explain_unusable_secret(const std::string& error) {
    const std::string& secret = request_.secret;
    const bool is_quoted =
        secret.size() > 1 && (secret[0] == '"' || secret[0] == '\'') && secret.back() == secret[0];
    say(is_quoted ? "The secret has quotes around it; remove them."
                  : "The secret is not valid for this scheme: " + error);
  }

  void check_time() {
    int64_t seconds = 0;
    const std::string& text = parts_.timestamp;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
    if (error != std::errc() || end != text.data() + text.size()) {
      say("The timestamp is not a Unix time in seconds.");
    } else if (std::abs(request_.now - seconds) > request_.tolerance_seconds) {
      say("The timestamp is " + std::to_string(std::abs(request_.now - seconds)) + " s " +
          (seconds < request_.now ? "old" : "in the future") + "; at most " +
          std::to_string(request_.tolerance_seconds) + " s are allowed.");
    }
  }

  std::string message(const Parts& parts) const {
    return is_standard() ? parts.id + "." + parts.timestamp + "." + parts.body
                         : parts.timestamp + "." + parts.body;
  }

  bool fits(const std::string& entry, const Parts& parts) const {
    return fits_message(entry, message(parts), hmac_key_);
  }

  bool fits_message(const std::string& entry, const std::string& text, const std::string& key) const {
    if (scheme_ == SignatureScheme::standard_ed25519) {
      const auto signature = base::base64_decode(entry);
      return signature && crypto::ed25519_verify(public_key_, text, *signature);
    }
    const auto digest = crypto::hmac_sha256(key, {text});
    const std::string wanted =
        is_standard() ? base::base64_encode(digest.view()) : base::hex_encode(digest.view());
    return crypto::constant_time_equal(entry, wanted);
  }

  bool any_fits(const std::string& text, const std::string& key) const {
    return std::any_of(entries_.begin(), entries_.end(),
                       [&](const std::string& entry) { return fits_message(entry, text, key); });
  }

  // Tries what commonly goes wrong, one part at a time.
  void explain() {
    if (explain_body() || explain_message() || explain_secret()) return;
    say("The signature was made with another secret, or the ID, the timestamp or the body was changed. "
        "Compare the "
        "first and last characters of the secret with `postrider endpoint secrets list`, and verify the body "
        "exactly "
        "as received, before parsing it.");
  }

  bool explain_body() {
    Parts other = parts_;
    for (const BodyVariant& variant : body_variants(parts_.body)) {
      other.body = variant.body;
      if (!any_fits(message(other), hmac_key_)) continue;
      say(variant.explanation);
      return true;
    }
    return false;
  }

  bool explain_message() {
    const auto blames = [&](const std::string& text, const char* sentence) {
      const bool fits = any_fits(text, hmac_key_);
      if (fits) say(sentence);
      return fits;
    };
    if (is_standard() && blames(parts_.timestamp + "." + parts_.body,
                                "The ID was not signed: timestamp.body was, as in the hex schemes."))
      return true;
    if (blames(parts_.body, "The ID and the timestamp were not signed: only the body was.")) return true;
    Parts other = parts_;
    for (const char* header : {"webhook-delivery-id", "x-webhook-delivery-id", "x-request-id"}) {
      const auto found = request_.headers.find(header);
      if (!is_standard() || found == request_.headers.end()) continue;
      other.id = found->second;
      if (blames(message(other), "The ID differs: webhook-id was replaced with another header's value."))
        return true;
    }
    return false;
  }

  bool explain_secret() {
    const auto blames = [&](const std::string& key, const char* sentence) {
      const bool fits = any_fits(message(parts_), key);
      if (fits) say(sentence);
      return fits;
    };
    if (scheme_ == SignatureScheme::standard &&
        blames(request_.secret,
               "The sender used the secret as text; this scheme decodes the base64 after whsec_."))
      return true;
    if (!is_standard() && request_.secret.starts_with("whsec_")) {
      const auto decoded = base::base64_decode(std::string_view(request_.secret).substr(6));
      if (decoded &&
          blames(*decoded, "The sender decoded the secret from base64; this scheme uses it as text."))
        return true;
    }
    return false;
  }

  const SignedRequest& request_;
  SignatureReport& report_;
  SignatureScheme scheme_ = SignatureScheme::standard;
  Parts parts_;
  std::vector<std::string> entries_;
  std::string hmac_key_, public_key_;
};

}  // namespace

SignatureReport verify_signature(const SignedRequest& request) {
  if (const auto provider = provider_of(request)) return verify_provider(request, *provider);
  SignatureReport report;
  Check(request, report).run();
  return report;
}

}  // namespace postrider::cli
