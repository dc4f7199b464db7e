-- An environment module (Lmod) of an installed scalemark; name it scalemark/0.1.0.lua and set prefix.
local prefix = "/opt/scalemark/0.1.0"
whatis("scalemark: how training of standard models scales over ranks")
help([[scalemark run, scale, infer, sweep: see man scalemark]])
if isAvail("openmpi") then depends_on("openmpi") end
prepend_path("PATH", pathJoin(prefix, "bin"))
prepend_path("MANPATH", pathJoin(prefix, "share/man"))
prepend_path("XDG_DATA_DIRS", pathJoin(prefix, "share"))
-- Where LibTorch is not where scalemark was linked with it:
-- setenv("SCALEMARK_TORCH", "/opt/libtorch")
