// Internal to comm/: MPI's C interface, without the C++ bindings that Open MPI 4 still drags in.
#pragma once

#ifndef OMPI_SKIP_MPICXX
#define OMPI_SKIP_MPICXX 1
#endif
#include <mpi.h>
