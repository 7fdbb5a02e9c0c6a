#include "postrider/cli/verify_provider.hpp"

#include "postrider/cli/body_variants.hpp"
#include "postrider/inbox/verify.hpp"

namespace postrider::cli {

namespace {

using inbox::Provider;

std::optional<inbox::InboundRejection> check(const SignedRequest& request, Provider provider,
                                             const std::string& body, const std::string& secret) {
  inbox::Verification how;
  how.provider = provider;
  how.tolerance = std::chrono::seconds(request.tolerance_seconds);
  const auto key = inbox::key_of_secret(provider, how.scheme, secret);
  if (!key) return inbox::InboundRejection{inbox::RejectReason::no_secret, key.error()};
  std::vector<http::Field> fields;
  for (const auto& [name, value] : request.headers) fields.push_back({name, value});
  const inbox::Arrival arrival{.body = body,
                               .fields = fields,
                               .public_url = "",
                               .now = base::Timestamp(std::chrono::seconds(request.now))};
  const inbox::VerifyKey keys[] = {*key};
  return inbox::verify(how, keys, arrival);
}

std::string explain_mismatch(const SignedRequest& request, Provider provider) {
  for (const BodyVariant& variant : body_variants(request.body))
    if (!check(request, provider, variant.body, request.secret)) return variant.explanation;
  return "The signature was made with another secret, or the body or a header was changed. Compare the "
         "secret with the "
         "one in the provider's dashboard, and verify the body exactly as received, before parsing it.";
}

}  // namespace

std::optional<Provider> provider_of(const SignedRequest& request) {
  if (request.provider) return inbox::parse_provider(*request.provider);
  if (request.scheme) return std::nullopt;
  const std::pair<const char*, Provider> marks[] = {{"stripe-signature", Provider::stripe},
                                                    {"x-hub-signature-256", Provider::github},
                                                    {"x-shopify-hmac-sha256", Provider::shopify},
                                                    {"x-slack-signature", Provider::slack},
                                                    {"svix-signature", Provider::svix}};
  for (const auto& [header, provider] : marks)
    if (request.headers.contains(header)) return provider;
  return std::nullopt;
}

SignatureReport verify_provider(const SignedRequest& request, Provider provider) {
  SignatureReport report;
  report.scheme = std::string(inbox::label(provider));
  const auto rejection = check(request, provider, request.body, request.secret);
  report.is_valid = !rejection;
  if (!rejection) return report;
  if (rejection->reason == inbox::RejectReason::signature_mismatch)
    report.findings.push_back(explain_mismatch(request, provider));
  else
    report.findings.push_back("The request is rejected (" + std::string(inbox::label(rejection->reason)) +
                              "): " + rejection->detail + ".");
  return report;
}

}  // namespace postrider::cli
