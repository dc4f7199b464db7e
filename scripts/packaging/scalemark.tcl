#%Module1.0
# An environment module (Environment Modules) of an installed scalemark; name it scalemark/0.1.0 and set prefix.
set prefix /opt/scalemark/0.1.0
module-whatis "scalemark: how training of standard models scales over ranks"
proc ModulesHelp {} { puts stderr "scalemark run, scale, infer, sweep: see man scalemark" }
if {[is-avail openmpi]} { module load openmpi }
prepend-path PATH $prefix/bin
prepend-path MANPATH $prefix/share/man
prepend-path XDG_DATA_DIRS $prefix/share
# Where LibTorch is not where scalemark was linked with it:
# setenv SCALEMARK_TORCH /opt/libtorch
