#include "arrival_ledger.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <system_error>

namespace bench {
namespace {

void* map_sparse(int fd, std::size_t bytes) {
  if (ftruncate(fd, static_cast<off_t>(bytes)) < 0)
    throw std::system_error(errno, std::generic_category(), "ftruncate");
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
  return at;
}

void empty_sparse(int fd, std::size_t bytes) {
  if (ftruncate(fd, 0) < 0 || ftruncate(fd, static_cast<off_t>(bytes)) < 0)
    throw std::system_error(errno, std::generic_category(), "ftruncate");
}

constexpr std::size_t times_bytes = ArrivalLedger::numbers_max * sizeof(std::uint64_t);
constexpr std::size_t open_bytes = ArrivalLedger::numbers_max;

}  // namespace

ArrivalLedger::ArrivalLedger(const std::string& times_path)
    : times_file_(times_path.empty()
                      ? memfd_create("arrivals", MFD_CLOEXEC)
                      : open(times_path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)),
      open_file_(memfd_create("in_flight", MFD_CLOEXEC)) {
  times_ = static_cast<std::uint64_t*>(map_sparse(times_file_.get(), times_bytes));
  open_ = static_cast<std::uint8_t*>(map_sparse(open_file_.get(), open_bytes));
}

ArrivalLedger::~ArrivalLedger() {
  munmap(times_, times_bytes);
  munmap(open_, open_bytes);
}

void ArrivalLedger::arrive(std::uint64_t number, std::uint64_t at_ns) {
  if (number >= numbers_max) {
    ++counts_.out_of_range;
    return;
  }
  if (open_[number] > 0) ++counts_.overlaps;
  if (open_[number] < 255) ++open_[number];
  if (times_[number] != 0) {
    ++counts_.duplicates;
    return;
  }
  times_[number] = at_ns;
  ++counts_.unique;
}

void ArrivalLedger::leave(std::uint64_t number) {
  if (number < numbers_max && open_[number] > 0) --open_[number];
}

void ArrivalLedger::clear() {
  empty_sparse(times_file_.get(), times_bytes);
  empty_sparse(open_file_.get(), open_bytes);
  counts_ = {};
}

}  // namespace bench
