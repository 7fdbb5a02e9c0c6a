#include "postrider/base/uuid.hpp"

#include "postrider/base/encoding.hpp"

namespace postrider::base {

std::string Uuid::hex() const {
  return hex_encode({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

std::string Uuid::text() const {
  std::string out = hex();
  for (const size_t dash : {20, 16, 12, 8}) out.insert(dash, 1, '-');
  return out;
}

std::optional<Uuid> Uuid::from_hex(std::string_view text) {
  std::string compact;
  if (text.size() == 36) {
    for (size_t i = 0; i < text.size(); ++i) {
      const bool dash_here = i == 8 || i == 13 || i == 18 || i == 23;
      if (dash_here != (text[i] == '-')) return std::nullopt;
      if (!dash_here) compact += text[i];
    }
    text = compact;
  }
  if (text.size() != 32) return std::nullopt;
  const auto raw = hex_decode(text);
  if (!raw) return std::nullopt;
  Uuid id;
  std::memcpy(id.bytes.data(), raw->data(), id.bytes.size());
  return id;
}

}  // namespace postrider::base
