// Dial profiles of those whose requests may reach networks of their own, besides those of the guard.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "postrider/http/client/client.hpp"

namespace postrider::http {

// An owner keeps its profile until its networks change. Equal lists of two owners make two profiles.
class OwnerProfiles {
 public:
  OwnerProfiles(const AddressGuard& guard, const TlsContext& tls) : guard_(guard), tls_(tls) {}

  struct Found {
    std::shared_ptr<const DialProfile> profile;  // null: the owner has no networks of its own
    std::vector<uint64_t> retired;               // profiles that are not used for new requests any more
  };
  Found of(std::string_view owner, std::span<const Network> networks);
  size_t size() const { return owned_.size(); }

 private:
  struct Owned {
    Owned(const AddressGuard& base, const TlsContext& tls, std::span<const Network> opened)
        : networks(opened.begin(), opened.end()), guard(base, opened), profile(guard, tls) {}
    std::vector<Network> networks;
    AddressGuard guard;
    DialProfile profile;
  };
  void drop_unused(std::vector<uint64_t>& retired);

  const AddressGuard& guard_;
  const TlsContext& tls_;
  // Shared with configurations and exchanges, which go on with the old profile after a change.
  std::unordered_map<std::string, std::shared_ptr<const Owned>> owned_;
  size_t sweep_at_ = kUnusedMax;

  static constexpr size_t kUnusedMax = 1'000;
};

}  // namespace postrider::http
