// Includes MPI's C interface without the C++ bindings that Open MPI 4 includes by default. It is
// internal to comm/.
#pragma once

#ifndef OMPI_SKIP_MPICXX
#define OMPI_SKIP_MPICXX 1
#endif
#include <mpi.h>
