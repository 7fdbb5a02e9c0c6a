#include "postrider/upkeep/mail.hpp"

#include <curl/curl.h>

#include <algorithm>
#include <ctime>
#include <memory>

#include "postrider/base/encoding.hpp"
#include "postrider/crypto/random.hpp"

namespace postrider::upkeep {

namespace {

constexpr const char* kSystemAuthorities = "/etc/ssl/certs";

struct Rest {
  std::string text;
  size_t at = 0;
};

size_t read_rest(char* buffer, size_t size, size_t count, void* source) {
  auto& rest = *static_cast<Rest*>(source);
  const size_t length = std::min(size * count, rest.text.size() - rest.at);
  std::copy_n(rest.text.data() + rest.at, length, buffer);
  rest.at += length;
  return length;
}

std::string one_line(std::string text) {
  std::replace_if(text.begin(), text.end(), [](char c) { return c == '\r' || c == '\n' || c == '\0'; }, ' ');
  return text;
}

// RFC 2047, so that any UTF-8 can stand in a subject.
std::string encoded_word(const std::string& text) {
  const bool is_plain = std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c < 0x7F; });
  return is_plain ? text : "=?UTF-8?B?" + base::base64_encode(text) + "?=";
}

std::string date_now() {
  char text[64];
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S +0000", &parts);
  return text;
}

struct Cleanup {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

}  // namespace

std::string mail_text(const Mail& mail, const std::string& date, const std::string& message_id) {
  std::string out = "From: " + one_line(mail.from) + "\r\nTo: " + one_line(mail.to) +
                    "\r\nSubject: " + encoded_word(one_line(mail.subject)) + "\r\nDate: " + date +
                    "\r\nMessage-ID: <" + message_id + "@postrider>\r\nAuto-Submitted: auto-generated\r\n" +
                    "MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n" +
                    "Content-Transfer-Encoding: 8bit\r\n";
  if (!mail.unsubscribe_url.empty())
    out += "List-Unsubscribe: <" + one_line(mail.unsubscribe_url) +
           ">\r\nList-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n";
  out += "\r\n";
  for (const char c : mail.text) {
    if (c == '\n') out += '\r';
    if (c != '\r') out += c;
  }
  return out;
}

std::optional<std::string> send_mail(const MailServer& server, const Mail& mail,
                                     std::chrono::seconds timeout) {
  const std::unique_ptr<CURL, Cleanup> handle(curl_easy_init());
  if (!handle) return "libcurl cannot start";
  const std::string from = "<" + one_line(mail.from) + ">", to = "<" + one_line(mail.to) + ">";
  const std::unique_ptr<curl_slist, Cleanup> recipients(curl_slist_append(nullptr, to.c_str()));
  Rest rest{mail_text(mail, date_now(), base::hex_encode(crypto::random_bytes(16)))};
  const bool has_password = server.url.find('@') != std::string::npos;
  char why[CURL_ERROR_SIZE] = {};
  CURL* const curl = handle.get();
  curl_easy_setopt(curl, CURLOPT_URL, server.url.c_str());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "smtp,smtps");
  curl_easy_setopt(curl, CURLOPT_USE_SSL, static_cast<long>(has_password ? CURLUSESSL_ALL : CURLUSESSL_TRY));
  if (!server.ca_file.empty()) {
    curl_easy_setopt(curl, CURLOPT_CAINFO, server.ca_file.c_str());
    curl_easy_setopt(curl, CURLOPT_CAPATH, kSystemAuthorities);
  }
  curl_easy_setopt(curl, CURLOPT_MAIL_FROM, from.c_str());
  curl_easy_setopt(curl, CURLOPT_MAIL_RCPT, recipients.get());
  curl_easy_setopt(curl, CURLOPT_READFUNCTION, read_rest);
  curl_easy_setopt(curl, CURLOPT_READDATA, &rest);
  curl_easy_setopt(curl, CURLOPT_UPLOAD, 1L);
  curl_easy_setopt(curl, CURLOPT_TIMEOUT, static_cast<long>(timeout.count()));
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_PROXY, "");  // proxy variables are never read
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, why);
  const CURLcode code = curl_easy_perform(curl);
  if (code == CURLE_OK) return std::nullopt;
  return why[0] != '\0' ? std::string(why) : std::string(curl_easy_strerror(code));
}

}  // namespace postrider::upkeep
