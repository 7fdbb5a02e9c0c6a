// Values that are read from a message: the type of its event, its ID, and its deduplication key.
#include "postrider/inbox/message.hpp"

#include <gtest/gtest.h>

#include "postrider/inbox/event_type.hpp"
#include "postrider/inbox/pick.hpp"
#include "postrider/inbox/verify_testing.hpp"

namespace postrider::inbox {
namespace {

struct Picked {
  std::string body;
  Headers headers = {};
};

std::string type_of(std::string_view text, const Picked& from) {
  std::vector<http::Field> fields;
  for (const auto& [name, value] : from.headers) fields.push_back({name, value});
  Arrival arrival;
  arrival.body = from.body;
  arrival.fields = fields;
  Picker picker(arrival);
  return event_type(text, picker);
}

TEST(EventType, IsFilledFromBodyAndHeaders) {
  EXPECT_EQ(type_of("stripe.{type}", {R"({"type":"payment_intent.succeeded"})"}),
            "stripe.payment_intent.succeeded");
  EXPECT_EQ(type_of("github.{header:X-GitHub-Event}.{action}",
                    {R"({"action":"opened"})", {{"x-github-event", "issues"}}}),
            "github.issues.opened");
  EXPECT_EQ(type_of("a.{/data/object}", {R"({"data":{"object":"charge"}})"}), "a.charge");
}

TEST(EventType, IsAlwaysAType) {
  EXPECT_EQ(type_of("a.{type}", {R"({"type":"orders/create x"})"}), "a.orders_create_x");
  EXPECT_EQ(type_of("a.{type}", {R"({"type":"..x.."})"}), "a._.x._");
  EXPECT_EQ(type_of("a.{type}", {"{}"}), "a.unknown");
  EXPECT_EQ(type_of("a.{type}", {"not JSON"}), "a.unknown");
  EXPECT_EQ(type_of("{type}", {R"({"type":")" + std::string(500, 'x') + R"("})"}).size(), 128U);
}

TEST(EventType, TemplatesAreChecked) {
  EXPECT_EQ(check_type_template("stripe.{type}"), "");
  EXPECT_NE(check_type_template("stripe.{type"), "");
  EXPECT_NE(check_type_template("stripe {type}"), "");
  EXPECT_NE(check_type_template("stripe.{}"), "");
}

NewMessage message_of(const Case& given, std::optional<Deduplicate> deduplicate = {}) {
  std::vector<http::Field> fields;
  for (const auto& [name, value] : given.headers) fields.push_back({name, value});
  Arrival arrival;
  arrival.body = given.body;
  arrival.fields = fields;
  arrival.public_url = given.url;
  Source source{.id = "s", .provider = given.provider};
  source.settings.signature = given.scheme;
  source.settings.deduplicate = deduplicate;
  NewMessage message = make_message(loaded_source(source, {}), arrival);
  message.body = {};  // it would outlive the case
  return message;
}

Case with_header(Case given, const std::string& name, const std::string& value) {
  std::erase_if(given.headers, [&](const auto& header) { return header.first == name; });
  given.headers.emplace_back(name, value);
  return given;
}

TEST(Content, StaysTheSameWhateverIsChangedOutsideTheSignature) {
  for (const Case& given : cases()) {
    const auto content = message_of(given, Deduplicate::content).content;
    ASSERT_TRUE(content) << given.name;
    for (const auto* name :
         {"x-github-delivery", "x-shopify-webhook-id", "i-twilio-idempotency-token", "x-other"}) {
      const Case changed = with_header(given, name, "another");
      ASSERT_FALSE(inspect(changed)) << given.name;
      EXPECT_EQ(message_of(changed, Deduplicate::content).content, content) << given.name << " " << name;
    }
    Case other = given;
    other.body += "&x=1";
    if (given.name == "twilio JSON") other.url += "x";  // its body is signed by a hash in the URL
    EXPECT_NE(message_of(other, Deduplicate::content).content, content) << given.name;
  }
}

// Twilio signs sorted parameters: they can be reordered, repeated and spelled in other ways.
TEST(Content, OfATwilioFormIsWhatIsSignedNotItsBytes) {
  const Case given = twilio_form_case();
  for (const auto* body :
       {"To=A&From=%2B1&To=B&Body=Hi%20there", "Body=Hi+there&From=%2b1&To=A&To=A&To=%42"}) {
    Case changed = given;
    changed.body = body;
    ASSERT_FALSE(inspect(changed));
    EXPECT_EQ(message_of(changed).content, message_of(given).content) << body;
  }
}

TEST(Content, OfAStripeMessageIgnoresSignaturesThatAreAdded) {
  Case changed = stripe_case();
  changed.headers[0].second += ",v1=" + std::string(64, 'a') + ",v0=x";
  ASSERT_FALSE(inspect(changed));
  EXPECT_EQ(message_of(changed, Deduplicate::content).content,
            message_of(stripe_case(), Deduplicate::content).content);
}

TEST(Content, SurvivesARotationOfTheSecret) {
  Case old_secret = cases()[3], new_secret = cases()[3];
  ASSERT_EQ(old_secret.name, "github");
  new_secret.headers = {{"X-Hub-Signature-256", "sha256=" + hex_mac("the next secret", kBody)}};
  EXPECT_EQ(message_of(old_secret).content, message_of(new_secret).content);
}

TEST(Content, OfShopifyHasATopic) {
  const Case given = cases()[4];
  ASSERT_EQ(given.name, "shopify");
  const auto created = message_of(with_header(given, "X-Shopify-Topic", "orders/create")).content;
  const auto paid = message_of(with_header(given, "X-Shopify-Topic", "orders/paid")).content;
  EXPECT_EQ(created->digest, paid->digest);
  EXPECT_EQ(created->topic, "orders/create");
  EXPECT_EQ(paid->topic, "orders/paid");
}

TEST(Deduplicate, IsByContentWhereTheIdIsNotSigned) {
  using Where = std::optional<std::string>;
  const auto of = [](Provider provider, const Where& where = {}) {
    return default_deduplicate(provider, where);
  };
  for (const Provider provider : {Provider::github, Provider::shopify, Provider::twilio}) {
    EXPECT_EQ(of(provider), Deduplicate::content);
    EXPECT_EQ(of(provider, "/id"), Deduplicate::id) << "the body is signed";
  }
  for (const Provider provider : {Provider::standard, Provider::svix, Provider::stripe, Provider::slack}) {
    EXPECT_EQ(of(provider), Deduplicate::id);
    EXPECT_EQ(of(provider, "x-request-id"), Deduplicate::content) << "an unsigned header";
  }
  EXPECT_EQ(of(Provider::hmac), Deduplicate::id);
  EXPECT_EQ(of(Provider::hmac, "x-request-id"), Deduplicate::id) << "equal bodies are common";
}

TEST(Message, HasTheIdOfTheSignedHeaders) {
  Case given = svix_case();
  for (auto& [name, value] : given.headers) name.replace(0, 4, "webhook");
  ASSERT_FALSE(inspect(given));
  EXPECT_EQ(message_of(given).key, "msg_1");
  given.headers.insert(given.headers.begin(), {"svix-id", "made up"});
  ASSERT_FALSE(inspect(given));
  EXPECT_EQ(message_of(given).key, "msg_1");
}

TEST(Message, KeepsItsIdUnderAnotherContentType) {
  const Case changed = with_header(stripe_case(), "content-type", "application/x-www-form-urlencoded");
  ASSERT_FALSE(inspect(changed));
  EXPECT_EQ(message_of(changed).key, "evt_1");
}

TEST(Message, IsKnownByItsProvidersIdOrElseByItsContent) {
  const LoadedSource stripe = loaded_source({.id = "s", .provider = Provider::stripe}, {});
  Arrival arrival;
  arrival.body = kBody;
  EXPECT_EQ(make_message(stripe, arrival).key, "evt_1");
  arrival.body = "{}";
  const NewMessage unnamed = make_message(stripe, arrival);
  EXPECT_TRUE(unnamed.key.starts_with("content:"));
  EXPECT_FALSE(unnamed.provider_id);
  arrival.body = "{ }";
  EXPECT_NE(make_message(stripe, arrival).key, unnamed.key);
}

TEST(Message, KeepsTheHeadersThatMatterAndNoCredentials) {
  Source source{.id = "s", .provider = Provider::github};
  source.settings.headers = {"x-mine", "authorization"};
  const std::vector<http::Field> fields = {{"X-GitHub-Event", "push"},
                                           {"Authorization", "Bearer x"},
                                           {"X-Mine", "1"},
                                           {"Cookie", "a"},
                                           {"X-Other", "2"}};
  Arrival arrival;
  arrival.fields = fields;
  EXPECT_EQ(make_message(loaded_source(source, {}), arrival).headers,
            R"({"x-github-event":"push","x-mine":"1"})");
}

TEST(Message, LongKeysAreReplacedByTheirHash) {
  EXPECT_EQ(storable_key("short"), "short");
  EXPECT_EQ(storable_key(std::string(256, 'x')).size(), 71U);
  EXPECT_EQ(storable_key(std::string("a\0b", 3)).size(), 71U);
  EXPECT_EQ(storable_key("content:" + std::string(64, '0')).size(), 71U) << "looks like a made one";
}

TEST(Message, BodiesAreText) {
  const LoadedSource source = loaded_source({.id = "s"}, {});
  EXPECT_FALSE(invalid_body(source, "grüße"));
  EXPECT_TRUE(invalid_body(source, "\xff"));
  EXPECT_TRUE(invalid_body(source, std::string_view("a\0", 2)));
  EXPECT_EQ(invalid_body(source, std::string((1 << 20) + 1, ' '))->reason, RejectReason::body_too_large);
}

}  // namespace
}  // namespace postrider::inbox
