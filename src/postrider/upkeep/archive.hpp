// One compressed NDJSON file, complete or not there: written beside its name, synced and renamed at the end.
#pragma once

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

}  // namespace postrider::upkeep
