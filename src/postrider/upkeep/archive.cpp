#include "postrider/upkeep/archive.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace postrider::upkeep {

namespace {

constexpr size_t kLineBytesMax = 64 << 20;

// Never over an older file: the same day may have been archived before.
std::string free_path(const std::string& directory, const std::string& name) {
  std::string path = directory + "/" + name + ".ndjson.gz";
  if (!std::filesystem::exists(path)) return path;
  return directory + "/" + name + "-" + std::to_string(std::time(nullptr)) + ".ndjson.gz";
}

// Payloads of all tenants: readable by the owner only, whatever the umask is. A file from an earlier run, or
// a link that another user created, is removed and never written to. Null: errno has the reason.
gzFile create_private(const std::string& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return nullptr;
  const int file =
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (file < 0) return nullptr;
  const gzFile compressed = ::gzdopen(file, "wb6");
  if (compressed == nullptr) ::close(file);
  return compressed;
}

bool sync(const std::string& path, int flags) {
  const int file = ::open(path.c_str(), flags | O_CLOEXEC);
  if (file < 0) return false;
  const bool is_synced = ::fsync(file) == 0;
  return ::close(file) == 0 && is_synced;
}

}  // namespace

ArchiveFile::ArchiveFile(const std::string& directory, const std::string& name)
    : directory_(directory), path_(free_path(directory, name)), unfinished_(path_ + ".part") {
  file_ = create_private(unfinished_);
  if (file_ == nullptr) fail("cannot be opened");
}

ArchiveFile::~ArchiveFile() {
  if (file_ == nullptr) return;
  ::gzclose(file_);
  ::unlink(unfinished_.c_str());
}

void ArchiveFile::fail(const char* what) const {
  throw std::runtime_error("the archive " + unfinished_ + " " + what + ": " + std::strerror(errno));
}

void ArchiveFile::add_line(std::string_view json) {
  const bool is_written =
      ::gzwrite(file_, json.data(), static_cast<unsigned>(json.size())) == static_cast<int>(json.size()) &&
      ::gzputc(file_, '\n') == '\n';
  if (!is_written) fail("cannot be written");
}

void ArchiveFile::finish() {
  gzFile_s* const file = file_;
  file_ = nullptr;
  if (::gzclose(file) != Z_OK || !sync(unfinished_, O_RDONLY)) {
    ::unlink(unfinished_.c_str());
    fail("cannot be written");
  }
  if (std::rename(unfinished_.c_str(), path_.c_str()) != 0) fail("cannot be renamed");
  if (!sync(directory_, O_RDONLY | O_DIRECTORY)) fail("cannot be synced");
}

ArchiveReader::ArchiveReader(std::string path) : path_(std::move(path)) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path_, error);
  if (error) fail(error.message());
  bytes_ = static_cast<int64_t>(size);
  file_ = ::gzopen(path_.c_str(), "rb");
  if (file_ == nullptr) fail(std::strerror(errno));
}

ArchiveReader::~ArchiveReader() {
  if (file_ != nullptr) ::gzclose(file_);
}

void ArchiveReader::fail(const std::string& what) const {
  throw std::runtime_error("the archive " + path_ + " cannot be read: " + what);
}

bool ArchiveReader::next(std::string& line) {
  line.clear();
  std::array<char, 8192> part{};
  while (::gzgets(file_, part.data(), static_cast<int>(part.size())) != nullptr) {
    line += part.data();
    if (line.size() > kLineBytesMax) fail("a line is too long");
    if (!line.ends_with('\n')) continue;
    line.pop_back();
    if (!line.empty()) return true;
  }
  int code = Z_OK;
  const char* const message = ::gzerror(file_, &code);
  if (code != Z_OK && code != Z_STREAM_END) fail(message);
  return !line.empty();
}

int64_t ArchiveReader::bytes_read() const {
  return ::gzoffset(file_);
}

}  // namespace postrider::upkeep
