"""Spack package of scalemark; from a clone: spack repo add scripts/packaging/spack && spack dev-build scalemark@main."""

from spack.package import *


class Scalemark(CMakePackage, CudaPackage):
    """Synthetic-data training benchmark: how training of standard models scales over ranks, and why it falls short."""

    license("Apache-2.0")
    version("main")

    variant("tcmalloc", default=True, description="tcmalloc_minimal as the engine's allocator")
    variant("c10d", default=False, description="--reducer c10d over Gloo")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.21:", type="build")
    depends_on("ninja", type="build")
    depends_on("mpi@3:")
    depends_on("py-torch@2.8: +mpi", type=("build", "link", "run"))
    depends_on("py-torch +cuda +nccl", when="+cuda")
    depends_on("nccl", when="+cuda")
    depends_on("cuda@12:", when="+cuda")
    depends_on("gloo", when="+c10d")
    depends_on("gperftools", when="+tcmalloc")
    depends_on("py-matplotlib@3.7:", type="run")
    depends_on("py-jinja2", type="run")
    depends_on("fmt@8.1:")
    depends_on("nlohmann-json@3.10.5:")
    depends_on("cxxopts@2.2.0:")
    depends_on("boost@1.74:")
    depends_on("openssl")
    depends_on("hwloc@2:")

    generator("ninja")

    def cmake_args(self):
        torch = join_path(self.spec["python"].package.platlib, "torch")
        arguments = [
            self.define("TORCH_ROOT", join_path(self.spec["py-torch"].prefix, torch)),
            self.define_from_variant("SCALEMARK_CUDA", "cuda"),
            self.define_from_variant("SCALEMARK_TCMALLOC", "tcmalloc"),
        ]
        if "+cuda" in self.spec:
            arguments += [self.define("CUDA_ROOT", self.spec["cuda"].prefix), self.define("NCCL_ROOT", self.spec["nccl"].prefix)]
        return arguments
