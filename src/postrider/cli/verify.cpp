#include "postrider/cli/verify.hpp"

#include <algorithm>
#include <charconv>

#include "postrider/base/encoding.hpp"
#include "postrider/crypto/digest.hpp"
#include "postrider/crypto/ed25519.hpp"

namespace postrider::cli {

namespace {

using crypto::SignatureScheme;

constexpr size_t kEntriesMax = 20;

// What a scheme reads, and what it signs.
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
      say("The signature has no entry that begins with " + std::string(prefix()) + " as the scheme wants.");
    return !entries_.empty();
  }

  bool read_key() {
    if (request_.secret.starts_with("whpk_")) {
      const auto bytes = base::base64_decode(std::string_view(request_.secret).substr(5));
      if (bytes) public_key_ = *bytes;
      if (!bytes || bytes->size() != 32) say("The public key is not whpk_ and the base64 of 32 bytes.");
      return report_.findings.empty();
    }
    const auto key = crypto::SigningKey::from_secret(scheme_, request_.secret);
    if (!key.ok()) {
      say("The secret does not fit the scheme: " + key.error());
      return false;
    }
    if (key->is_asymmetric())
      public_key_ = std::string(key->ed25519().public_key().view());
    else
      hmac_key_ = key->hmac_key();
    return true;
  }

  void check_time() {
    int64_t seconds = 0;
    const std::string& text = parts_.timestamp;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
    if (error != std::errc() || end != text.data() + text.size()) {
      say("The timestamp is not a number of seconds since 1970.");
    } else if (std::abs(request_.now - seconds) > request_.tolerance_seconds) {
      say("The timestamp is " + std::to_string(std::abs(request_.now - seconds)) + " s " +
          (seconds < request_.now ? "old" : "ahead") + "; receivers allow " +
          std::to_string(request_.tolerance_seconds) + " s.");
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
    Parts other = parts_;
    const auto blames = [&](const Parts& parts, const char* sentence) {
      const bool fits = any_fits(message(parts), hmac_key_);
      if (fits) say(sentence);
      return fits;
    };
    while (other.body.ends_with('\n') || other.body.ends_with('\r')) other.body.pop_back();
    if (other.body != parts_.body &&
        blames(other, "The body differs: it has a line break at its end that was not signed."))
      return;
    other.body = parts_.body + "\n";
    if (blames(other, "The body differs: a line break at its end was signed and is missing.")) return;
    other.body.clear();
    if (blames(other, "The body differs: what was signed is empty.")) return;
    other = parts_;
    if (is_standard() && any_fits(parts_.timestamp + "." + parts_.body, hmac_key_))
      return say("The id is not in what was signed: this is timestamp.body, a hex scheme's message.");
    if (any_fits(parts_.body, hmac_key_))
      return say("Id and timestamp are not in what was signed: only the body is.");
    if (scheme_ == SignatureScheme::standard && any_fits(message(parts_), request_.secret))
      return say("The secret was used as it is; this scheme decodes the base64 behind whsec_.");
    if (!is_standard() && request_.secret.starts_with("whsec_")) {
      const auto decoded = base::base64_decode(std::string_view(request_.secret).substr(6));
      if (decoded && any_fits(message(parts_), *decoded))
        return say("The secret was decoded from base64; this scheme uses it as it is.");
    }
    say("The signature was made with another secret, or id, timestamp or body were changed on the way. Take "
        "the body "
        "as it came, byte by byte, before anything parses it, and compare the secret's ends with the "
        "endpoint's.");
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
  SignatureReport report;
  Check(request, report).run();
  return report;
}

}  // namespace postrider::cli
