#include "postrider/web/assets.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "postrider/web/sign_in_guard.hpp"

namespace postrider::web {
namespace {

using testing::HasSubstr;

http::Request request(std::string_view accept, std::string_view known = "") {
  http::Request made;
  made.method = http::Method::get;
  made.fields = {{"accept-encoding", accept}};
  if (!known.empty()) made.fields.push_back({"if-none-match", known});
  return made;
}

std::string header(const http::Response& response, std::string_view name) {
  for (const auto& [each, value] : response.headers)
    if (each == name) return value;
  return "(none)";
}

std::string gunzip(std::string_view bytes) {
  z_stream stream{};
  EXPECT_EQ(inflateInit2(&stream, 15 + 16), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::string text(4 << 20, '\0');
  stream.next_out = reinterpret_cast<Bytef*>(text.data());
  stream.avail_out = static_cast<uInt>(text.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  text.resize(stream.total_out);
  inflateEnd(&stream);
  return text;
}

const Asset& script() {
  for (const Asset& asset : assets())
    if (asset.path.ends_with(".js") && !asset.gzip.empty()) return asset;
  throw std::runtime_error("no script is embedded");
}

TEST(Assets, EveryFileIsFoundByItsPath) {
  EXPECT_GT(assets().size(), 3u);
  for (const Asset& asset : assets()) {
    EXPECT_EQ(find_asset(asset.path), &asset);
    EXPECT_FALSE(asset.identity.empty()) << asset.path;
    if (!asset.gzip.empty()) EXPECT_EQ(gunzip(asset.gzip), asset.identity) << asset.path;
  }
  EXPECT_EQ(find_asset("console/assets/other.js"), nullptr);
  EXPECT_EQ(find_asset(""), nullptr);
}

TEST(Assets, TheSmallestEncodingThatTheBrowserTakesIsSent) {
  const std::string path(script().path);
  const auto sent = [&](std::string_view accept) {
    return header(*file(request(accept), path), "content-encoding");
  };
  EXPECT_EQ(sent("gzip, deflate, br"), "br");
  EXPECT_EQ(sent("gzip;q=0.8, br;q=0"), "gzip");
  EXPECT_EQ(sent(""), "identity");
  EXPECT_EQ(file(request("br"), path)->body, script().brotli);
}

TEST(Assets, FilesAreKeptForeverAndPagesAreAskedForAgain) {
  const auto found = file(request("br"), script().path);
  EXPECT_EQ(header(*found, "cache-control"), "public, max-age=31536000, immutable");
  const http::Response page = shell(request("br"), "console/console.html", "'none'");
  EXPECT_EQ(header(page, "cache-control"), "no-cache");
  EXPECT_THAT(header(page, "content-security-policy"),
              HasSubstr("require-trusted-types-for 'script'; trusted-types 'none'"));
  EXPECT_EQ(shell(request("br", header(page, "etag")), "console/console.html", "'none'").status, 304);
}

TEST(Assets, APageIsNoFile) {
  EXPECT_FALSE(file(request(""), "console/console.html"));
  EXPECT_FALSE(file(request(""), "console/../console/console.html"));
}

TEST(SignInGuard, ClosesForAMinuteAfterFiveFailures) {
  SignInGuard guard;
  const base::SteadyTime start{};
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(guard.is_open("192.0.2.1", start));
    guard.note_failure("192.0.2.1", start);
  }
  EXPECT_FALSE(guard.is_open("192.0.2.1", start + std::chrono::seconds(59)));
  EXPECT_TRUE(guard.is_open("192.0.2.2", start));
  EXPECT_TRUE(guard.is_open("192.0.2.1", start + std::chrono::seconds(60)));
}

}  // namespace
}  // namespace postrider::web
