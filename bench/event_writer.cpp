#include "event_writer.hpp"

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

const std::string& EventWriter::single(NumberedEvent event) {
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
