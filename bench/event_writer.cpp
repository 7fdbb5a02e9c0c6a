#include "event_writer.hpp"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <utility>

namespace bench {

EventWriter::EventWriter(EventShape shape, const std::string& host, const std::string& key)
    : shape_(std::move(shape)),
      common_fields_(" HTTP/1.1\r\nhost: " + host + "\r\nauthorization: Bearer " + key +
                     "\r\ncontent-type: application/json\r\ncontent-length: ") {}

void EventWriter::append_fields(std::string& out, NumberedEvent event) const {
  out += "\"type\":\"bench.e";
  out += std::to_string(event.number / shape_.tenants % shape_.types);
  out += "\",\"data\":";
  const std::size_t start = out.size();
  out += "{\"bench_t\":";
  out += std::to_string(event.published_ns);
  out += ",\"bench_seq\":";
  out += std::to_string(event.number);
  out += ",\"pad\":\"";
  const std::size_t used = out.size() - start + 2;
  if (used < shape_.data_bytes) out.append(shape_.data_bytes - used, 'x');
  out += "\"}";
}

void EventWriter::frame(const std::string& target) {
  request_.assign("POST ");
  request_ += target;
  request_ += common_fields_;
  request_ += std::to_string(body_.size());
  request_ += "\r\n\r\n";
  request_ += body_;
}

const std::string& EventWriter::inbound(NumberedEvent event) {
  body_.assign("{");
  append_fields(body_, event);
  body_ += "}";
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int length = 0;
  HMAC(EVP_sha256(), shape_.secret.data(), static_cast<int>(shape_.secret.size()),
       reinterpret_cast<const unsigned char*>(body_.data()), body_.size(), digest, &length);
  constexpr char digits[] = "0123456789abcdef";
  std::string signature;
  for (unsigned int i = 0; i < length; ++i) {
    signature += digits[digest[i] >> 4];
    signature += digits[digest[i] & 15];
  }
  request_ = "POST /in/" + shape_.source + " HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\n" +
             "x-github-delivery: " + std::to_string(event.number) +
             "\r\nx-hub-signature-256: sha256=" + signature +
             "\r\ncontent-length: " + std::to_string(body_.size()) + "\r\n\r\n" + body_;
  return request_;
}

const std::string& EventWriter::single(NumberedEvent event) {
  if (!shape_.source.empty()) return inbound(event);
  body_.assign("{");
  append_fields(body_, event);
  body_ += "}";
  frame("/v1/tenants/" + shape_.tenant_prefix + std::to_string(tenant_of(event.number)) + "/events");
  return request_;
}

const std::string& EventWriter::batch(std::uint64_t first_number, std::size_t count,
                                      std::uint64_t published_ns) {
  body_.assign("[");
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) body_ += ",";
    body_ += "{\"tenant_id\":\"";
    body_ += shape_.tenant_prefix;
    body_ += std::to_string(tenant_of(first_number + i));
    body_ += "\",";
    append_fields(body_, {.number = first_number + i, .published_ns = published_ns});
    body_ += "}";
  }
  body_ += "]";
  frame("/v1/events/batch");
  return request_;
}

}  // namespace bench
