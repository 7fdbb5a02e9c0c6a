// One compressed NDJSON file, complete or not there: written beside its name, synced and renamed at the end.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

struct gzFile_s;

namespace postrider::upkeep {

class ArchiveFile {
 public:
  // Throws std::runtime_error, as all of these, with what the system says.
  ArchiveFile(const std::string& directory, const std::string& name);
  ~ArchiveFile();  // unfinished: removed
  ArchiveFile(const ArchiveFile&) = delete;
  ArchiveFile& operator=(const ArchiveFile&) = delete;

  void add_line(std::string_view json);
  void finish();
  const std::string& path() const { return path_; }

 private:
  [[noreturn]] void fail(const char* what) const;

  std::string directory_, path_, unfinished_;
  gzFile_s* file_ = nullptr;
};

// Reads such a file, or a plain one, line by line.
class ArchiveReader {
 public:
  // Throws std::runtime_error, as next().
  explicit ArchiveReader(std::string path);
  ~ArchiveReader();
  ArchiveReader(const ArchiveReader&) = delete;
  ArchiveReader& operator=(const ArchiveReader&) = delete;

  bool next(std::string& line);  // false at the end
  // The bytes of the file that were read, and its size.
  int64_t bytes_read() const;
  int64_t bytes() const { return bytes_; }

 private:
  [[noreturn]] void fail(const std::string& what) const;

  std::string path_;
  gzFile_s* file_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace postrider::upkeep
