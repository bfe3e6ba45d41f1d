/// A file's bytes as memory, without reading them first.
#pragma once
#if !__has_include(<sys/mman.h>)
#error "typeformer/io reads files through POSIX mmap: this platform has no <sys/mman.h>. Leave io.hpp and text.hpp out."
#endif
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "typeformer/core/annotate.hpp"
#include "typeformer/core/error.hpp"
#include "typeformer/io/quote_name.hpp"

namespace typeformer::inline TYPEFORMER_ABI::io {

/// One regular file, mapped read-only from its first to its last byte. Move only; a moved mapping keeps its address.
/// Pages are read when touched and are the kernel's to drop again: they count as resident memory, never as swap.
/// A file that another process shortens while it is mapped would end the program on access (SIGBUS): check_unchanged()
/// before each batch of reads turns that into an Error, apart from the instant between check and read.
class MappedFile {
 public:
  /// Throws Error when `path` does not exist, cannot be read, or is no regular file. A FIFO or device is never opened.
  explicit MappedFile(const std::filesystem::path& path) : path_(path) {
    require_regular_file();
    descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (descriptor_ < 0) refuse("a readable file", system_message(errno));
    try {
      map();
    } catch (...) {
      ::close(descriptor_);
      throw;
    }
  }
  MappedFile(MappedFile&& other) noexcept
      : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)),
        begin_(std::exchange(other.begin_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  MappedFile& operator=(MappedFile&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(descriptor_, other.descriptor_);
    std::swap(begin_, other.begin_);
    std::swap(size_, other.size_);
    return *this;
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile() {
    if (begin_ != nullptr) ::munmap(begin_, size_);
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  /// The whole file as it was when opened; empty for an empty file. Valid as long as this object or what it was moved
  /// to.
  std::span<const std::byte> bytes() const noexcept { return {static_cast<const std::byte*>(begin_), size_}; }
  const std::filesystem::path& path() const noexcept { return path_; }

  /// Throws Error when the file has no longer the size it was opened with.
  void check_unchanged() const {
    const struct stat now = status_of_descriptor();
    if (std::cmp_equal(now.st_size, size_)) return;
    refuse("still " + std::to_string(size_) + " bytes", std::to_string(now.st_size) + " bytes: it changed while open");
  }

  /// Lets the kernel take back the pages that lie wholly inside `part`; a later read fetches them from the file again.
  /// `part` must lie inside bytes(). For readers that pass once over more data than fits in memory.
  void release(std::span<const std::byte> part) const noexcept {
    const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    const auto first = reinterpret_cast<std::uintptr_t>(part.data());
    const std::uintptr_t from = (first + page - 1) / page * page, to = (first + part.size()) / page * page;
    if (from < to) ::madvise(static_cast<std::byte*>(begin_) + (from - address()), to - from, MADV_DONTNEED);
  }

 private:
  std::uintptr_t address() const noexcept { return reinterpret_cast<std::uintptr_t>(begin_); }

  void require_regular_file() const {
    std::error_code error;
    const auto type = std::filesystem::status(path_, error).type();
    switch (type) {
      case std::filesystem::file_type::regular:
        return;
      case std::filesystem::file_type::not_found:
        refuse("a file", "nothing of that name");
      case std::filesystem::file_type::directory:
        refuse("a regular file", "a directory");
      case std::filesystem::file_type::fifo:
        refuse("a regular file", "a FIFO");
      case std::filesystem::file_type::socket:
        refuse("a regular file", "a socket");
      case std::filesystem::file_type::block:
      case std::filesystem::file_type::character:
        refuse("a regular file", "a device");
      default:
        refuse("a regular file", error ? error.message() : "something else");
    }
  }

  void map() {
    const struct stat status = status_of_descriptor();
    if (!S_ISREG(status.st_mode)) refuse("a regular file", "something else: it was replaced while being opened");
    if (std::cmp_greater(status.st_size, std::numeric_limits<std::ptrdiff_t>::max()))
      refuse("a file that fits into the address space", std::to_string(status.st_size) + " bytes");
    const auto size = static_cast<std::size_t>(status.st_size);
    if (size == 0) return;  // mmap refuses length 0
    void* const begin = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor_, 0);
    if (begin == MAP_FAILED) refuse("a file that can be mapped", system_message(errno));
    begin_ = begin;
    size_ = size;
  }

  struct stat status_of_descriptor() const {
    struct stat status {};
    if (descriptor_ < 0) refuse("an open file", "one that was moved from");
    if (::fstat(descriptor_, &status) != 0) refuse("a file whose size can be asked", system_message(errno));
    return status;
  }

  static std::string system_message(int code) { return std::error_code(code, std::generic_category()).message(); }
  [[noreturn]] void refuse(std::string_view expected, std::string_view got) const {
    throw Error("map_file", quote_name(path_.native()), expected, got);
  }

  std::filesystem::path path_;
  int descriptor_ = -1;
  void* begin_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace typeformer
