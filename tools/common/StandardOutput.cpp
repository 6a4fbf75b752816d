#include "common/StandardOutput.h"

#include "Support/Diag.h"
#include "Support/Diagnostic.h"

#include <cstdio>
#include <fcntl.h>
#include <unistd.h>

namespace fusec::tools {

StandardOutput::StandardOutput() {
  // open() takes the lowest free number. One that cannot be written keeps what is lost visible.
  for (int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(stream, F_GETFD) < 0 && ::open("/dev/null", O_RDONLY) < 0)
      return;
}

int StandardOutput::finish(int code, bool json) const {
  const bool lost = std::fflush(stdout) != 0 || std::ferror(stdout) != 0;
  if (!lost || code != static_cast<int>(ExitCode::Done))
    return code;
  const Diagnostic d{Diag::CannotWrite, "standard output",
                     "cannot be written to its end; is the disk full, or the stream closed?"};
  std::fprintf(stderr, "%s\n", (json ? formatJson(d) : format(d)).c_str());
  return static_cast<int>(exitCode(d.id));
}

} // namespace fusec::tools
