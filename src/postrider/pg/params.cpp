#include "postrider/pg/params.hpp"

#include <cstring>
#include <limits>

#include "postrider/base/check.hpp"

namespace postrider::pg {

Params& Params::end(size_t start) {
  const size_t length = bytes_.size() - start;
  CHECK(length <= static_cast<size_t>(std::numeric_limits<int32_t>::max()));
  slots_.back().length = static_cast<int32_t>(length);
  return *this;
}

void Params::put_int32(size_t at, int32_t value) {
  const uint32_t network_order = __builtin_bswap32(static_cast<uint32_t>(value));
  std::memcpy(bytes_.data() + at, &network_order, sizeof network_order);
}

}  // namespace postrider::pg
