#include "postrider/model/ids.hpp"

#include <algorithm>
#include <chrono>

namespace postrider::model {

namespace {

constexpr size_t kHeadBytes = 10;  // of a delivery id: its event's
constexpr size_t kCallerIdMax = 64;

bool is_plain(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-';
}

// FNV-1a with a finishing mix: stable across versions and machines, which std::hash is not.
uint64_t stable_hash(const base::Uuid& id) {
  uint64_t hash = 0xCBF29CE484222325ULL;
  for (const uint8_t byte : id.bytes) hash = (hash ^ byte) * 0x100000001B3ULL;
  hash ^= hash >> 32;
  hash *= 0xD6E8FEB86659FD93ULL;
  return hash ^ (hash >> 29);
}

}  // namespace

bool is_caller_id(std::string_view text) {
  return !text.empty() && text.size() <= kCallerIdMax && std::all_of(text.begin(), text.end(), is_plain);
}

bool is_tenant_id(std::string_view text) {
  const auto allowed = [](char c) { return is_plain(c) || c == '.' || c == ':' || c == '@'; };
  return !text.empty() && text.size() <= kCallerIdMax && is_plain(text.front()) &&
         std::all_of(text.begin(), text.end(), allowed);
}

base::Uuid id_floor(base::Timestamp time) {
  const auto ms =
      std::max<int64_t>(0, std::chrono::ceil<std::chrono::milliseconds>(time).time_since_epoch().count());
  base::Uuid id;
  for (size_t i = 0; i < 6; ++i) id.bytes[i] = static_cast<uint8_t>(ms >> (40 - 8 * i));
  return id;
}

int bucket_of(EndpointId endpoint, int buckets) {
  return static_cast<int>(stable_hash(endpoint.uuid) % static_cast<uint64_t>(buckets));
}

std::string delivery_tail_of(EndpointId endpoint) {
  base::Uuid tail;
  const uint64_t hash =
      stable_hash(endpoint.uuid) * 0x9E3779B97F4A7C15ULL;  // not the bits that chose the bucket
  for (size_t i = 0; i < 6; ++i) tail.bytes[i] = static_cast<uint8_t>(hash >> (56 - 8 * i));
  return tail.hex().substr(0, 12);
}

std::string delivery_head_of(EventId event) {
  return event.uuid.hex().substr(0, 2 * kHeadBytes);
}

EventId version_id(EventId event, int number) {
  for (size_t i = event.uuid.bytes.size(); number > 0 && i-- > kHeadBytes; number >>= 8) {
    number += event.uuid.bytes[i];
    event.uuid.bytes[i] = static_cast<uint8_t>(number);
  }
  return event;
}

DeliveryId delivery_id_like(DeliveryId sample, EventId event) {
  std::copy_n(event.uuid.bytes.begin(), kHeadBytes, sample.uuid.bytes.begin());
  return sample;
}

DeliveryRange delivery_range(EventId first, EventId last) {
  std::fill(first.uuid.bytes.begin() + kHeadBytes, first.uuid.bytes.end(), uint8_t{0});
  std::fill(last.uuid.bytes.begin() + kHeadBytes, last.uuid.bytes.end(), uint8_t{0xFF});
  return {DeliveryId{first.uuid}, DeliveryId{last.uuid}};
}

}  // namespace postrider::model
