#include "postrider/http/client/preview.hpp"

#include <algorithm>
#include <cstdint>

#include "postrider/base/text.hpp"

namespace postrider::http {

namespace {

constexpr size_t kPreviewBytesMax = 1024;
constexpr std::string_view kRedacted = "[redacted]";
constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_word(char c) {
  return is_digit(c) || is_letter(c) || c == '_' || c == '-';
}
bool is_token(char c) {
  return is_word(c) || c == '.' || c == '/' || c == '+' || c == '=' || c == '~';
}
bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n';
}

template <class Predicate>
size_t run_length(std::string_view text, Predicate predicate) {
  return static_cast<size_t>(std::find_if_not(text.begin(), text.end(), predicate) - text.begin());
}

using base::lowered;

std::string printable(std::string_view raw) {
  std::string text;
  text.reserve(raw.size());
  while (!raw.empty()) {
    const size_t length = base::character_length(raw);
    const bool is_control = length == 1 && ((raw[0] >= 0 && raw[0] < ' ') || raw[0] == 0x7f);
    if (length == 0 || (is_control && raw[0] != '\t' && raw[0] != '\n' && raw[0] != '\r'))
      text += kReplacement;
    else if (raw[0] != '\r')
      text += raw.substr(0, length);
    raw.remove_prefix(std::max<size_t>(length, 1));
  }
  return text;
}

bool passes_luhn(std::string_view digits) {
  int sum = 0;
  bool is_doubled = false;
  for (size_t i = digits.size(); i-- > 0; is_doubled = !is_doubled) {
    const int digit = digits[i] - '0';
    sum += is_doubled ? (digit > 4 ? 2 * digit - 9 : 2 * digit) : digit;
  }
  return sum % 10 == 0;
}

// The length of a card number at the start of `text`: 13 to 19 digits, possibly in groups separated by single
// spaces or dashes. Another number, such as its date or code, may follow in the same way, so each group may
// be the last.
size_t card_length(std::string_view text, bool is_complete) {
  if (text.front() < '2' || text.front() > '6') return 0;  // what card numbers begin with
  std::string digits;
  size_t length = 0, card = 0;
  for (size_t i = 0; i < text.size() && digits.size() <= 19; ++i) {
    if (is_digit(text[i])) {
      digits += text[i];
      length = i + 1;
      const bool ends_group = length == text.size() || !is_digit(text[length]);
      if (ends_group && digits.size() >= 13 && digits.size() <= 19 && passes_luhn(digits)) card = length;
    } else if ((text[i] != ' ' && text[i] != '-') || i + 1 >= text.size() || !is_digit(text[i + 1])) {
      break;
    }
  }
  const bool is_cut = !is_complete && length == text.size();
  return is_cut && digits.size() >= 8 ? length : card;
}

// A word ends before a number that may be a card's: card_4111…
size_t word_length(std::string_view text) {
  constexpr size_t kCardDigitsMin = 13;
  const size_t length = run_length(text, is_word);
  for (size_t i = 1; i < length; ++i)
    if (is_digit(text[i]) && !is_digit(text[i - 1]) && run_length(text.substr(i), is_digit) >= kCardDigitsMin)
      return i;
  return length;
}

bool starts_like_a_secret(std::string_view word) {
  constexpr std::string_view prefixes[] = {
      "whsec_", "whsk_",  "sk_live_", "sk_test_",    "rk_live_", "rk_test_", "sk-",   "ghp_",  "gho_",
      "ghu_",   "ghs_",   "ghr_",     "glpat-",      "xoxb-",    "xoxp-",    "xoxa-", "xoxr-", "xoxs-",
      "shpat_", "shpss_", "npm_",     "github_pat_", "AKIA",     "ASIA",     "AIza"};
  return std::any_of(std::begin(prefixes), std::end(prefixes), [&](std::string_view prefix) {
    return word.starts_with(prefix) && word.size() >= prefix.size() + 6;
  });
}

bool is_json_web_token(std::string_view token) {
  return token.starts_with("eyJ") && token.size() >= 20 && token.find('.') != std::string_view::npos;
}

enum class Keyword : uint8_t { none, weak, strong };

// Decided by the end of the name: client_secret, accessToken, x-api-key.
Keyword keyword_of(std::string_view word) {
  const std::string name = lowered(word);
  for (const std::string_view ending :
       {"password", "passwd", "passphrase", "pwd", "secret", "private_key", "privatekey"})
    if (name.ends_with(ending)) return Keyword::strong;
  for (const std::string_view ending : {"token", "apikey", "api_key", "api-key", "access_key", "access-key",
                                        "accesskey", "authorization", "credential", "credentials", "session",
                                        "sessionid", "session_id", "cookie", "signature", "auth", "key"})
    if (name.ends_with(ending)) return Keyword::weak;
  return Keyword::none;
}

// A quote at the start, with its escapes.
std::string_view quote_at(std::string_view text) {
  const size_t slashes = run_length(text, [](char c) { return c == '\\'; });
  const bool is_quoted = slashes < text.size() && (text[slashes] == '"' || text[slashes] == '\'');
  return text.substr(0, is_quoted ? slashes + 1 : 0);
}

// Up to the quote that closes `opening`, or to the end: a value that was cut off counts, too.
size_t quoted_length(std::string_view text, std::string_view opening) {
  const size_t escapes = opening.size() - 1;  // of the closing quote, too; within the value it has more
  size_t slashes = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == opening.back() && slashes == escapes) return i - slashes;
    slashes = text[i] == '\\' ? slashes + 1 : 0;
  }
  return text.size();
}

bool is_quoting(char c) {
  return c == '"' || c == '\'' || c == '\\';
}

class Redactor {
 public:
  Redactor(std::string_view text, bool is_complete) : rest_(text), is_complete_(is_complete) {}

  std::string run() {
    while (!rest_.empty() && out_.size() <= kPreviewBytesMax) step();
    return std::move(out_);
  }

 private:
  void keep(size_t length) {
    out_ += rest_.substr(0, length);
    rest_.remove_prefix(length);
  }
  void redact(size_t length) {
    out_ += kRedacted;
    rest_.remove_prefix(length);
  }

  void step() {
    if (rest_.starts_with("-----BEGIN") &&
        rest_.substr(0, 64).find("PRIVATE KEY") != std::string_view::npos) {
      const size_t end = rest_.find("-----END");
      redact(end == std::string_view::npos ? rest_.size() : std::min(rest_.find('\n', end), rest_.size()));
    } else if (rest_.starts_with("://")) {
      step_user_info();
    } else if (!is_word(rest_.front())) {
      keep(1);
    } else if (const size_t card = is_digit(rest_.front()) ? card_length(rest_, is_complete_) : 0) {
      redact(card);
    } else {
      step_word();
    }
  }

  void step_user_info() {
    keep(3);
    const size_t length = run_length(
        rest_, [](char c) { return c != '@' && c != '/' && c != '"' && c != '?' && !is_blank(c); });
    const std::string_view info = rest_.substr(0, length);
    if (length < rest_.size() && rest_[length] == '@' && info.find(':') != std::string_view::npos)
      redact(length);
  }

  void step_word() {
    const size_t length = word_length(rest_);
    const std::string_view word = rest_.substr(0, run_length(rest_, is_word));
    const size_t token_length = run_length(rest_, is_token);
    if (starts_like_a_secret(word) || is_json_web_token(rest_.substr(0, token_length)))
      return redact(token_length);
    const std::string name = lowered(rest_.substr(0, length));
    const Keyword keyword = keyword_of(name);
    keep(length);
    if (name == "bearer" || name == "basic") return step_credentials();
    if (keyword != Keyword::none) step_value(keyword);
  }

  void step_credentials() {
    const size_t blanks = run_length(rest_, is_blank);
    const size_t length = run_length(rest_.substr(blanks), is_token);
    if (blanks == 0 || length < 8) return;
    keep(blanks);
    redact(length);
  }

  // The text after a keyword: `": "value"`, `=value`, `: value`.
  void step_value(Keyword keyword) {
    size_t at = run_length(rest_, [](char c) { return is_quoting(c) || is_blank(c); });
    if (at == rest_.size() || (rest_[at] != ':' && rest_[at] != '=')) return;
    ++at;
    at += run_length(rest_.substr(at), is_blank);
    const std::string_view opening = quote_at(rest_.substr(at));
    // After a strong word everything in quotes is secret: a passphrase may contain spaces.
    if (keyword == Keyword::strong && !opening.empty()) {
      const size_t quoted = quoted_length(rest_.substr(at + opening.size()), opening);
      if (quoted > 0) {
        keep(at + opening.size());
        return redact(quoted);
      }
    }
    step_bare_value(at + run_length(rest_.substr(at), is_quoting), keyword);
  }

  void step_bare_value(size_t at, Keyword keyword) {
    const std::string_view after = rest_.substr(at);
    const size_t length = run_length(after, [](char c) {
      return !is_quoting(c) && c != '&' && c != ',' && c != ';' && c != '<' && c != '}' && !is_blank(c);
    });
    const std::string_view value = after.substr(0, length);
    const std::string scheme = lowered(value);
    if (scheme == "bearer" || scheme == "basic") return;  // the word itself is met next
    const bool is_opaque = length >= 8 && std::any_of(value.begin(), value.end(), is_digit);
    if (length == 0 || value.starts_with(kRedacted) || (keyword == Keyword::weak && !is_opaque)) return;
    keep(at);
    redact(length);
  }

  std::string_view rest_;
  bool is_complete_;
  std::string out_;
};

}  // namespace

std::string redacted_preview(std::string_view raw, bool is_complete) {
  // A character cut in the middle by the cap is not an error of the endpoint.
  if (!is_complete)
    for (size_t cut = 1; cut <= 3 && cut <= raw.size(); ++cut) {
      const auto byte = static_cast<uint8_t>(raw[raw.size() - cut]);
      if ((byte & 0xc0) == 0x80) continue;
      if (byte >= 0xc0 && base::character_length(raw.substr(raw.size() - cut)) == 0) raw.remove_suffix(cut);
      break;
    }
  const std::string text = printable(raw);
  std::string preview = Redactor(text, is_complete).run();
  if (preview.size() <= kPreviewBytesMax) return preview;
  size_t end = kPreviewBytesMax;
  while (end > 0 && (static_cast<uint8_t>(preview[end]) & 0xc0) == 0x80) --end;
  preview.resize(end);
  return preview;
}

}  // namespace postrider::http
