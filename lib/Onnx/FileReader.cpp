#include "Onnx/FileReader.h"

#include "Support/Diag.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace fusec {

File::~File() {
  if (fd >= 0)
    ::close(fd);
}

/// Reads exactly `size` bytes at `offset`; false when the file ends early or fails.
static bool readFully(int fd, uint8_t *to, int64_t size, int64_t offset) {
  while (size > 0) {
    ssize_t n = ::pread(fd, to, static_cast<size_t>(std::min<int64_t>(size, 1 << 30)), offset);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return false;
    to += n;
    offset += n;
    size -= n;
  }
  return true;
}

static std::string kindOf(mode_t mode) {
  if (S_ISDIR(mode))
    return "a directory";
  if (S_ISFIFO(mode))
    return "a FIFO";
  if (S_ISCHR(mode) || S_ISBLK(mode))
    return "a device";
  return "not a regular file";
}

Result<Bytes> readWholeFile(const std::string &path, int64_t limit, const std::string &noun) {
  auto fail = [&](Diag id, std::string text) { return Diagnostic{id, path, std::move(text)}; };
  File file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  struct stat info;
  if (file.get() < 0 || ::fstat(file.get(), &info) != 0)
    return fail(Diag::UnreadableFile, "cannot open the " + noun + ": " + std::strerror(errno));
  if (!S_ISREG(info.st_mode))
    return fail(Diag::UnreadableFile,
                "cannot read the " + noun + ": it is " + kindOf(info.st_mode));
  if (info.st_size >= limit)
    return fail(Diag::LimitExceeded, "the " + noun + " has " + std::to_string(info.st_size) +
                                         " bytes, > " + std::to_string(limit >> 30) +
                                         " GiB; store large weights as external data");
  auto bytes = std::make_shared<std::vector<uint8_t>>(static_cast<size_t>(info.st_size));
  if (!readFully(file.get(), bytes->data(), info.st_size, 0))
    return fail(Diag::UnreadableFile,
                "cannot read the " + noun + ": it changed or the disk failed");
  return Bytes(std::move(bytes));
}

ExternalFiles::ExternalFiles(const std::string &modelPath, std::string outputPath)
    : outputPath(std::move(outputPath)) {
  size_t slash = modelPath.rfind('/');
  folder = slash == std::string::npos ? "." : slash == 0 ? "/" : modelPath.substr(0, slash);
  folderFile = File(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  struct stat info;
  if (::stat(modelPath.c_str(), &info) == 0) {
    modelDevice = info.st_dev;
    modelInode = info.st_ino;
  }
}
ExternalFiles::~ExternalFiles() = default;

/// Why `location` may not be followed, or empty.
static std::string refusal(const std::string &location) {
  if (location.empty())
    return "the location is empty";
  if (location.find('\0') != std::string::npos)
    return "the location contains a NUL byte";
  if (location[0] == '/')
    return "the location is an absolute path; it must be relative to the model's folder";
  if (location.find('\\') != std::string::npos)
    return "the location contains a backslash; separate folders by '/'";
  if (location.size() > 1 && location[1] == ':')
    return "the location begins with a drive letter; it must be relative to the model's folder";
  for (size_t pos = 0; pos <= location.size();) {
    size_t end = std::min(location.find('/', pos), location.size());
    if (location.substr(pos, end - pos) == "..")
      return "the location leaves the model's folder by '..'";
    pos = end + 1;
  }
  return "";
}

/// Opens `location` below `folder` without following any symbolic link.
static int openBeneath(int folder, const std::string &location, int more = 0) {
  const int flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | more;
  struct open_how how = {};
  how.flags = flags;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  int fd = static_cast<int>(::syscall(SYS_openat2, folder, location.c_str(), &how, sizeof how));
  if (fd >= 0 || (errno != ENOSYS && errno != EPERM))
    return fd;
  // Kernels before 5.6 and some sandboxes: the same by hand, one component at a time.
  File at(::fcntl(folder, F_DUPFD_CLOEXEC, 0));
  for (size_t pos = 0;;) {
    size_t end = location.find('/', pos);
    if (end == std::string::npos)
      return ::openat(at.get(), location.c_str() + pos, flags);
    std::string part = location.substr(pos, end - pos);
    pos = end + 1;
    if (part.empty() || part == ".")
      continue;
    File inner(::openat(at.get(), part.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (inner.get() < 0) {
      struct stat info;
      int error = errno;
      bool isLink = ::fstatat(at.get(), part.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 &&
                    S_ISLNK(info.st_mode);
      errno = isLink ? ELOOP : error;
      return -1;
    }
    at = std::move(inner);
  }
}

/// Returns when no name beside `location` is being given to another file or taken away. The kernel lowers the link
/// count of a file that loses its name before the name goes, and lists a folder before or after both.
static void awaitRenames(int folder, const std::string &location) {
  const size_t slash = location.rfind('/');
  const File parent(openBeneath(
      folder, slash == std::string::npos ? "." : location.substr(0, slash), O_DIRECTORY));
  std::array<char, 1024> entries;
  ::syscall(SYS_getdents64, parent.get(), entries.data(), entries.size());
}

Result<const ExternalFiles::Opened *> ExternalFiles::open(const std::string &location,
                                                          const std::string &where) {
  auto fail = [&](std::string text) {
    return Diagnostic{Diag::BadExternalData, where, "external data '" + location + "': " + text};
  };
  if (auto it = opened.find(location); it != opened.end())
    return &it->second;
  if (std::string why = refusal(location); !why.empty())
    return fail(why);
  File file(openBeneath(folderFile.get(), location));
  struct stat info;
  if (file.get() < 0) {
    if (errno == ELOOP || errno == EXDEV)
      return fail("the path contains a symbolic link; put the file itself into the model's folder");
    return fail(std::string("cannot open it in the model's folder: ") + std::strerror(errno));
  }
  if (::fstat(file.get(), &info) != 0)
    return fail(std::string("cannot read it: ") + std::strerror(errno));
  if (!S_ISREG(info.st_mode))
    return fail("it is " + kindOf(info.st_mode) + "; a regular file is needed");
  if (info.st_dev == modelDevice && info.st_ino == modelInode)
    return fail("it is the model itself");
  struct stat output;
  if (!outputPath.empty() && ::stat(outputPath.c_str(), &output) == 0 &&
      info.st_dev == output.st_dev && info.st_ino == output.st_ino)
    return Diagnostic{Diag::BadOption, "-o " + outputPath,
                      "holds data of the model (" + where +
                          "), which the bundle would replace; give another name"};
  // Somebody may put another file there between the opening and the look at it: a link to a foreign file, opened and
  // then unlinked, has one name left, elsewhere. So the name is asked once more, in one call, when it is gone; a link
  // that has come back has changed the file's time of change.
  awaitRenames(folderFile.get(), location);
  struct stat named;
  if (::fstatat(folderFile.get(), location.c_str(), &named, AT_SYMLINK_NOFOLLOW) != 0 ||
      named.st_dev != info.st_dev || named.st_ino != info.st_ino ||
      named.st_ctim.tv_sec != info.st_ctim.tv_sec || named.st_ctim.tv_nsec != info.st_ctim.tv_nsec)
    return fail("the file is being replaced");
  if (info.st_nlink != 1 || named.st_nlink != 1)
    return fail("the file has several hard links; copy it into the model's folder");
  auto it =
      opened.emplace(location, Opened{std::move(file), static_cast<int64_t>(info.st_size)}).first;
  return &it->second;
}

Result<Bytes> ExternalFiles::read(const std::string &location, int64_t offset, int64_t length,
                                  int64_t expected, const std::string &where) {
  FUSEC_TRY(const Opened *o, open(location, where));
  auto fail = [&](std::string text) {
    return Diagnostic{Diag::BadExternalData, where, "external data '" + location + "': " + text};
  };
  if (offset > o->size)
    return fail("offset " + std::to_string(offset) + " is past the end of the file (" +
                std::to_string(o->size) + " bytes)");
  // Without a length the data is what the tensor needs: several tensors may follow in one file.
  int64_t size = length < 0 ? expected : length;
  if (size != expected)
    return fail("length " + std::to_string(size) + " is not the tensor's size of " +
                std::to_string(expected) + " bytes");
  if (size > o->size - offset)
    return fail("offset " + std::to_string(offset) + " and length " + std::to_string(size) +
                " reach past the end of the file (" + std::to_string(o->size) + " bytes)");
  std::weak_ptr<const std::vector<uint8_t>> &known = taken[{location, offset, size}];
  if (Bytes bytes = known.lock())
    return bytes;
  auto bytes = std::make_shared<std::vector<uint8_t>>(static_cast<size_t>(size));
  if (!readFully(o->file.get(), bytes->data(), size, offset))
    return fail("cannot read it: the file changed or the disk failed");
  known = bytes;
  return Bytes(std::move(bytes));
}

} // namespace fusec
