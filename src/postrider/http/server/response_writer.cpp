#include "postrider/http/server/response_writer.hpp"

#include <fmt/format.h>
#include <time.h>
#include <zlib.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "postrider/base/check.hpp"
#include "postrider/http/request_grammar.hpp"

namespace postrider::http {

namespace {

constexpr size_t kCompressBytesMin = 1024;
constexpr size_t kCompressPieceBytes = 8 << 10;
constexpr int kCompressLevel = 4;         // half the time of the default for a few percent more bytes
constexpr int kGzipWindowBits = 15 + 16;  // selects the gzip format in zlib

bool has_body(int status) {
  return status >= 200 && status != 204 && status != 304;
}

void append_field(std::string& out, std::string_view name, std::string_view value) {
  out += name;
  out += ": ";
  // A value that came from outside must not end the line.
  for (const char c : value) out += grammar::is(c, grammar::value) ? c : ' ';
  out += "\r\n";
}

bool is_compressible(std::string_view content_type) {
  return content_type.starts_with("text/") || content_type.find("json") != std::string_view::npos ||
         content_type.find("javascript") != std::string_view::npos || content_type.starts_with("image/svg");
}

// "gzip", "gzip;q=0.5" or "*" in the list, unless its weight is zero.
bool accepts_gzip(std::string_view accept_encoding) {
  while (!accept_encoding.empty()) {
    const size_t end = std::min(accept_encoding.find(','), accept_encoding.size());
    std::string_view element = accept_encoding.substr(0, end);
    accept_encoding.remove_prefix(std::min(end + 1, accept_encoding.size()));
    while (!element.empty() && element.front() == ' ') element.remove_prefix(1);
    const std::string_view coding = element.substr(0, element.find_first_of("; \t"));
    if (!equals_ignoring_case(coding, "gzip") && coding != "*") continue;
    const size_t weight = element.find("q=");
    if (weight == std::string_view::npos) return true;
    return element.find_first_not_of("0. \t", weight + 2) != std::string_view::npos;
  }
  return false;
}

// Large bodies are compressed in pieces, so that other connections of the loop are served in between.
runtime::Task<std::optional<std::string>> gzip(std::string_view text, runtime::Loop& loop) {
  z_stream stream{};
  if (deflateInit2(&stream, kCompressLevel, Z_DEFLATED, kGzipWindowBits, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    co_return std::nullopt;
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  runtime::Pause pause(loop);
  int result = Z_OK;
  while (result == Z_OK && !text.empty()) {
    const std::string_view piece = text.substr(0, kCompressPieceBytes);
    text.remove_prefix(piece.size());
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(piece.data()));
    stream.avail_in = static_cast<uInt>(piece.size());
    result = deflate(&stream, text.empty() ? Z_FINISH : Z_NO_FLUSH);
    co_await pause;
  }
  out.resize(stream.total_out);
  deflateEnd(&stream);
  if (result != Z_STREAM_END) co_return std::nullopt;
  co_return out;
}

}  // namespace

void append_response(std::string& out, const Response& response, const ResponseFraming& framing) {
  fmt::format_to(std::back_inserter(out), "HTTP/1.1 {} {}\r\n", response.status,
                 reason_phrase(response.status));
  if (!response.content_type.empty()) append_field(out, "content-type", response.content_type);
  if (response.stream) {
    if (!framing.is_http_1_0) append_field(out, "transfer-encoding", "chunked");
  } else if (has_body(response.status)) {
    fmt::format_to(std::back_inserter(out), "content-length: {}\r\n", response.body.size());
  }
  for (const auto& [name, value] : response.headers) append_field(out, name, value);
  if (!framing.request_id.empty()) append_field(out, "x-request-id", framing.request_id);
  append_field(out, "date", framing.date);
  if (framing.close)
    append_field(out, "connection", "close");
  else if (framing.is_http_1_0)
    append_field(out, "connection", "keep-alive");
  out += "\r\n";
  if (!framing.is_head && !response.stream && has_body(response.status)) out += response.body;
}

void append_chunk(std::string& out, std::string_view piece) {
  fmt::format_to(std::back_inserter(out), "{:x}\r\n", piece.size());
  out += piece;
  out += "\r\n";
}

runtime::Task<void> compress_if_accepted(Response& response, const Request& request, runtime::Loop& loop) {
  if (response.stream || response.body.size() < kCompressBytesMin || !is_compressible(response.content_type))
    co_return;
  const bool is_encoded = std::any_of(response.headers.begin(), response.headers.end(),
                                      [](const auto& header) { return header.first == "content-encoding"; });
  if (is_encoded) co_return;
  response.header("vary", "accept-encoding");
  const auto accepted = request.header("accept-encoding");
  if (!accepted || !accepts_gzip(*accepted)) co_return;
  std::optional<std::string> compressed = co_await gzip(response.body, loop);
  if (compressed && compressed->size() < response.body.size()) {
    response.body = std::move(*compressed);
    response.header("content-encoding", "gzip");
  }
}

std::string http_date(int64_t unix_seconds) {
  const time_t seconds = unix_seconds;
  tm parts{};
  CHECK(gmtime_r(&seconds, &parts) != nullptr);
  constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  return fmt::format("{}, {:02} {} {} {:02}:{:02}:{:02} GMT", kDays[parts.tm_wday], parts.tm_mday,
                     kMonths[parts.tm_mon], parts.tm_year + 1900, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

}  // namespace postrider::http
