#include "postrider/cli/listen_secret.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "postrider/base/encoding.hpp"
#include "postrider/cli/profiles.hpp"
#include "postrider/crypto/digest.hpp"
#include "postrider/crypto/signing_key.hpp"

namespace postrider::cli {

namespace {

std::string random_seed() {
  return crypto::generate_secret(crypto::SignatureScheme::standard);
}

// Two that start at once both write a seed of their own and keep the one that was linked first.
std::string kept_seed(const std::filesystem::path& file) {
  if (std::filesystem::exists(file)) return read_secret(file.string());
  std::filesystem::create_directories(file.parent_path());
  const std::string fresh = file.string() + "." + std::to_string(::getpid());
  const int descriptor = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  const std::string seed = random_seed();
  const bool is_written =
      descriptor >= 0 && ::write(descriptor, seed.data(), seed.size()) == static_cast<ssize_t>(seed.size());
  if (descriptor >= 0) ::close(descriptor);
  if (is_written && ::link(fresh.c_str(), file.c_str()) != 0 && errno != EEXIST) {
    ::unlink(fresh.c_str());
    return seed;
  }
  ::unlink(fresh.c_str());
  return is_written ? read_secret(file.string()) : seed;
}

}  // namespace

std::string listen_secret(Invocation& in, const std::string& scope) {
  if (const auto file = in.value("--secret-file")) return read_secret(*file);
  const std::string profiles = profiles_path(in.environment());
  if (profiles.empty()) return random_seed();
  const std::string seed = kept_seed(std::filesystem::path(profiles).replace_filename("listen.seed"));
  const ServerChoice& server = in.server_choice();
  const std::string& name = server.profile.empty() ? server.options.url : server.profile;
  const auto digest = crypto::hmac_sha256(seed, {name, "\n", scope});
  return "whsec_" + base::base64_encode(digest.view());
}

}  // namespace postrider::cli
